/* Which kernel table runs: what the machine has, capped by GB_MAX_ISA. */
#include "kernels/isa/kernels.h"

#include <stdatomic.h>

extern const gb_kernels gb_kernels_baseline;
#if defined(__x86_64__)
extern const gb_kernels gb_kernels_avx2;
extern const gb_kernels gb_kernels_avx512;
extern const gb_kernels gb_kernels_amx;
#endif

static const gb_kernels *const tables[GB_ISA_COUNT] = {
        [GB_ISA_BASELINE] = &gb_kernels_baseline,
#if defined(__x86_64__)
        [GB_ISA_AVX2] = &gb_kernels_avx2,
        [GB_ISA_AVX512] = &gb_kernels_avx512,
        [GB_ISA_AMX] = &gb_kernels_amx,
#endif
};

const gb_kernels *gb_kernels_of(gb_isa isa)
{
    return isa <= gb_cpu_isa() ? tables[isa] : NULL;
}

/* Asking the machine and the environment takes longer than many a kernel. */
const gb_kernels *gb_kernels_get(void)
{
    static const gb_kernels *_Atomic chosen;
    const gb_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!kernels) {
        kernels = tables[gb_cpu_isa()];
        atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    }
    return kernels;
}
