/* The vector vocabulary: kernel sources (*.isa.c) are written once in these words and compiled once
 * per ISA.
 *
 * vec_<isa>.h (chosen by the build through GB_VEC_HEADER) defines, as static inline functions:
 *
 *   types      vf  VLEN lanes of f32        vi  VLEN lanes of s32       vm  lane mask
 *   constants  VLEN (4, 8 or 16)            VREGS (registers: 16 or 32)
 *
 *   load       vf_load(p) unaligned         vf_load_n(p, n) first n lanes, others 0, nothing read
 * beyond
 *              vf_load_lanes(p, lanes)      the lanes i where lanes[i] is -1 and not 0; others 0, not read
 *   store      vf_store(p, v)               vf_store_n(p, v, n) first n lanes, nothing written
 * beyond
 *              vf_stream(p, v) past the caches, p aligned to the vector; the same as vf_store where
 * there is no such store
 *   convert    vf_load_bf16 / vf_load_bf16_n(p, n) and vf_store_bf16(p, v) / _n(p, v, n); the same
 * with _f32 (as it is), _f16, _s8, _u8, _s32,
 *              _f8_e5m2, _f8_e4m3, _boolean (load: 0 or 1; store: v != 0). Stores round to nearest even;
 * integers saturate.
 *              vf_store_pair_s8 vf_store_pair_u8(p, low, high); vf_store_four_s8 vf_store_four_u8(p, v, streamed)
 * of four vectors, past the caches or not: where GB_VEC_HAS_FOURS is set
 *   codes      gb_<type>_decode(vi) and gb_<type>_encode(vf): the same on the bits of a narrow
 * type, one per 32-bit lane
 *              gb_load_u4(p)                VLEN quantized values of 4 bits, the low half of a byte
 * first
 *   strided    vf_gather(p, stride, n)      n <= VLEN lanes p[i * stride] (f32)
 *              vf_lookup(p, vi)             lane i is p[index i] (f32)
 *              vf_permute(v, vi)            lane i is lane index i of v, 0 <= index < VLEN
 *              vf_lookup16(table, vi)       lane i is lane index i modulo 16 of the table; where
 * GB_VEC_HAS_LOOKUP16 is set
 *   arithmetic vf_set1 vf_zero vf_add vf_sub vf_mul vf_div vf_neg vf_abs vf_min vf_max (the second
 * operand when one is NaN) vf_sqrt
 *              vf_fma(a, b, c) = a b + c    vf_fnma(a, b, c) = c - a b   (baseline: two roundings)
 *              vf_round (half to even) vf_floor vf_ceil vf_scale(v, n) = v 2^n (n a vi, -252 <= n
 * <= 254; a
 *              subnormal result may be rounded twice) vf_scale_whole(v, n): the same with n a vf of
 * whole numbers
 *   compare    vf_lt vf_le vf_gt vf_ge vf_eq vf_ne vf_unordered -> vm     vf_select(m, a, b) = m ?
 * a : b vm_and vm_or vm_not vm_any
 *   integer    vi_set1 vi_add vi_sub vi_and vi_or vi_xor vi_shl(v, k) vi_shr(v, k) arithmetic
 * vi_shr_logical(v, k) vi_load vi_store vi_load_n vi_store_n
 *              vi_eq vi_gt -> vm            vi_select(m, a, b)
 *              vi_max_u8(a, b)              of each byte
 *              vi_mul(a, b, &high)          unsigned products: low words, and the high ones through
 * the pointer
 *              vi_dot2(sum, a, b)           lanes of two s16 each: sum + the two products
 *              vi_add_halves vi_sub_halves  lanes of two s16 each, which wrap around
 *              vi_load_s8_halves(p) vi_load_u8_halves(p)   2 VLEN quantized values of 8 bits as s16
 *              vi_pair_low(a, b) vi_pair_high(a, b)   lanes of two s16, one of each: 2 VLEN in all, which
 *              vi_order_pairs(&low, &high)  brings into order: the first VLEN, the others
 *              vi_dot4(sum, a, b)           lanes of four: u8 of a, s8 of b; where GB_VEC_HAS_DOT4
 * is set and the machine has it
 *              vf_dot_bf16(sum, a, b)       lanes of two bf16 each: sum + the two products; where
 * GB_VEC_HAS_DOT_BF16 is set and the machine has it
 *   casts      vf_from_vi(v) numeric        vi_from_vf(v) rounds to nearest even   vf_bits(vf) ->
 * vi vi_as_vf(vi) -> vf (bit casts)
 *   reduce     vf_sum vf_max_lane vf_min_lane vf_prod -> float, in a fixed order
 *   broadcast  vf_set1(*p) of a scalar in memory is a broadcast load
 *
 * vec_math.h adds vf_exp vf_expm1 vf_log vf_log1p vf_tanh vf_erf vf_sigmoid vf_softplus vf_gelu_erf
 * vf_gelu_tanh vf_mish vf_pow ..., each with its bound in ulps. GB_ISA_NAME(name) is
 * gb_<name>_<isa>. Only vec_*.h may use compiler extensions.
 */
#ifndef GB_KERNELS_ISA_VEC_H
#define GB_KERNELS_ISA_VEC_H

#define GB_ISA_CONCAT_(a, b, c) a##b##_##c
#define GB_ISA_CONCAT(a, b, c)  GB_ISA_CONCAT_(a, b, c)
#define GB_ISA_NAME(name)       GB_ISA_CONCAT(gb_, name, GB_ISA)
/* For bodies that are instantiated with constant arguments. */
#define GB_INLINE static inline __attribute__((always_inline))

#include GB_VEC_HEADER
#include "kernels/isa/vec_convert.h"

/* Prototypes of this ISA's kernels. */
#include "kernels/isa/kernel_types.h"
#define GB_KERNEL(name, type) type GB_ISA_NAME(name);
#include "kernels/isa/kernels.def"
#undef GB_KERNEL

#endif
