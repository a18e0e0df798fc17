/* Words for kernels that run along rows. */
#ifndef GB_KERNELS_ISA_VEC_PARTIAL_H
#define GB_KERNELS_ISA_VEC_PARTIAL_H

/* A function of which each use is a copy of its own, with its constant arguments folded. */
#define GB_TEMPLATE static inline __attribute__((always_inline))

/* call(n) with n as a constant, for n from 1 to 4; nothing for another n. */
#define GB_CONSTANT_TO_4(n, call)                                                                  \
    switch (n) {                                                                                   \
    case 1:                                                                                        \
        call(1);                                                                                   \
        break;                                                                                     \
    case 2:                                                                                        \
        call(2);                                                                                   \
        break;                                                                                     \
    case 3:                                                                                        \
        call(3);                                                                                   \
        break;                                                                                     \
    case 4:                                                                                        \
        call(4);                                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        break;                                                                                     \
    }

/* The first n lanes of a, the others of b. */
static inline vf vf_keep_n(vf a, vf b, int64_t n)
{
    static const int32_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vf_select(vi_gt(vi_set1((int32_t)n), vi_load(numbers)), a, b);
}

#endif
