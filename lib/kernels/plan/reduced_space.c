/* Iteration spaces some of whose dims are reduced. */
#include "kernels/plan/reduced_space.h"

#include <inttypes.h>
#include <string.h>

void gb_reduced_space_init(gb_space *space, gb_reduced_space *reduced)
{
    gb_space_normalize(space);
    *reduced = (gb_reduced_space){.ndims = space->ndims};
    memcpy(reduced->dims, space->dims, sizeof reduced->dims);
    for (int d = 0; d < space->ndims; d++) {
        if (space->roles[d] == GB_REDUCED)
            reduced->reduced[reduced->n_reduced++] = (uint8_t)d;
        else
            reduced->kept[reduced->n_kept++] = (uint8_t)d;
    }
    reduced->n = gb_product(reduced->n_reduced, reduced->reduced, reduced->dims);
}

void gb_reduced_space_print(const gb_printer *printer, const gb_reduced_space *space)
{
    for (int d = 0, r = 0; d < space->ndims; d++) {
        bool reduced = r < space->n_reduced && space->reduced[r] == d;
        r += reduced;
        fprintf(printer->file, reduced ? "%s[%" PRId64 "]" : "%s%" PRId64, d ? "x" : "",
                space->dims[d]);
    }
    if (space->ndims == 0)
        fputs("1", printer->file);
}
