/* Programs as text: what each step computes, in lines that its lowering writes (GB_PASSES=program,
 * docs/program-text.md). */
#ifndef GB_RUNTIME_PROGRAM_TEXT_H
#define GB_RUNTIME_PROGRAM_TEXT_H

#include "runtime/program.h"

#include <stdio.h>

/* Where lines go, and the step that they are about. */
typedef struct gb_printer {
    FILE *file;
    const gb_program *program;
    const gb_step *step;
} gb_printer;

/* Writes lines on a problem, each ended, without indentation. `problem` is of the type that the
 * function is for. */
typedef void gb_print_fn(const gb_printer *printer, const void *problem);

/* Has `print` write what the step computes, once all of its uses of buffers that the problem names
 * are added, and before gb_program_add(). Nothing is done unless programs are printed. The text of
 * a further call goes behind. GB_OUT_OF_MEMORY. */
gb_status gb_step_describe(
        const gb_program *program, gb_step *step, gb_print_fn *print, const void *problem);

/* Pieces of lines: */
/* A buffer of the program: %ID of the tensor that lies there, or @NUMBER. */
void gb_print_buffer(const gb_printer *printer, uint32_t buffer);
/* The same of a use of the step. */
void gb_print_slot(const gb_printer *printer, uint32_t slot);
/* 2x3x4; 1 when there are none. */
void gb_print_sizes(const gb_printer *printer, int n, const int64_t *sizes);
/* [12,4,1], in elements. */
void gb_print_strides(const gb_printer *printer, int n, const int64_t *strides);

#endif
