/* Scales and zero points that are attributes: a buffer of the program for them. */
#ifndef GB_KERNELS_PARAMETERS_H
#define GB_KERNELS_PARAMETERS_H

#include "runtime/program.h"

/* A temporary that a constant step fills with copies of the values. */
gb_status gb_parameters_add(
        gb_program *program, const float *values, size_t count, uint32_t *buffer);

#endif
