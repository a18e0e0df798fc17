/* The kernel table of AMX: that of AVX-512 but for products of VNNI groups. */
#include "kernels/isa/kernels.h"

#define GB_KERNEL(name, type) extern type gb_##name##_avx512;
#include "kernels/isa/kernels.def"
#undef GB_KERNEL

extern gb_dot_tile_fn gb_dot_tile_amx;
extern gb_dot_form_fn gb_dot_form_amx;
extern gb_dot_begin_fn gb_dot_begin_amx;
extern gb_pointwise_run_fn gb_pointwise_run_amx;
extern gb_dot_end_fn gb_dot_end_amx;
extern const gb_kernels gb_kernels_amx;

#define gb_dot_tile_avx512      gb_dot_tile_amx
#define gb_dot_form_avx512      gb_dot_form_amx
#define gb_dot_begin_avx512     gb_dot_begin_amx
#define gb_pointwise_run_avx512 gb_pointwise_run_amx
#define gb_dot_end_avx512       gb_dot_end_amx

const gb_kernels gb_kernels_amx = {
        .isa = GB_ISA_AMX,
#define GB_KERNEL(name, type) .name = gb_##name##_avx512,
#include "kernels/isa/kernels.def"
#undef GB_KERNEL
};
