/* The vectors of machines with AMX are those of AVX-512. */
#ifndef GB_KERNELS_ISA_VEC_AMX_H
#define GB_KERNELS_ISA_VEC_AMX_H

#include "kernels/isa/vec_avx512.h"

#endif
