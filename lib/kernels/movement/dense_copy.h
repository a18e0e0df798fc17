/* Tensors whose strides a kernel cannot take: it reads a dense copy. */
#ifndef GB_KERNELS_MOVEMENT_DENSE_COPY_H
#define GB_KERNELS_MOVEMENT_DENSE_COPY_H

#include "runtime/program.h"

/* Adds a step that copies a value into a temporary buffer, dense in row-major order. */
gb_status gb_dense_copy_add(gb_program *program, uint32_t value, uint32_t *buffer);

#endif
