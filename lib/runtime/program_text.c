/* Programs as text. */
#include "runtime/program_text.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/compiled.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static gb_status add_text(gb_step *step, const char *text, size_t length)
{
    size_t known = step->text ? strlen(step->text) : 0;
    char *all = gb_step_alloc(step, known + length + 1, 1);
    if (!all)
        return GB_OUT_OF_MEMORY;
    if (known)
        memcpy(all, step->text, known);
    memcpy(all + known, text, length);
    step->text = all;
    return GB_SUCCESS;
}

gb_status gb_step_describe(
        const gb_program *program, gb_step *step, gb_print_fn *print, const void *problem)
{
    if (!program->is_printed)
        return GB_SUCCESS;
    char *text = NULL;
    size_t length = 0;
    gb_printer printer = {open_memstream(&text, &length), program, step};
    if (!printer.file)
        return gb_fail(GB_OUT_OF_MEMORY, "text of a step");
    print(&printer, problem);
    gb_status status = fclose(printer.file) == 0 ? add_text(step, text, length)
                                                 : gb_fail(GB_OUT_OF_MEMORY, "text of a step");
    free(text);
    return status;
}

void gb_print_buffer(const gb_printer *printer, uint32_t buffer)
{
    const gb_program *program = printer->program;
    for (uint32_t v = 0; v < program->graph->n_values; v++)
        if (program->value_buffers[v] == buffer) {
            fprintf(printer->file, "%%%zu", program->graph->values[v].tensor.id);
            return;
        }
    fprintf(printer->file, "@%u", buffer);
}

void gb_print_slot(const gb_printer *printer, uint32_t slot)
{
    gb_print_buffer(printer, printer->step->uses[slot].buffer);
}

void gb_print_sizes(const gb_printer *printer, int n, const int64_t *sizes)
{
    if (n == 0)
        fputs("1", printer->file);
    for (int d = 0; d < n; d++)
        fprintf(printer->file, d ? "x%" PRId64 : "%" PRId64, sizes[d]);
}

void gb_print_strides(const gb_printer *printer, int n, const int64_t *strides)
{
    fputs("[", printer->file);
    for (int d = 0; d < n; d++)
        fprintf(printer->file, d ? ",%" PRId64 : "%" PRId64, strides[d]);
    fputs("]", printer->file);
}

static const char *const placements[] = {
        [GB_PLACEMENT_INPUT] = "input",
        [GB_PLACEMENT_OUTPUT] = "output",
        [GB_PLACEMENT_ARENA] = "arena",
        [GB_PLACEMENT_CONSTANTS] = "constants",
        [GB_PLACEMENT_LITERALS] = "literals",
};

/* "reads %3, elementwise: arena 64, 512 bytes": ports have a number, the others an offset. */
static void print_use(const gb_printer *printer, const gb_step_use *use)
{
    const gb_buffer *buffer = &printer->program->buffers[use->buffer];
    bool is_port =
            buffer->placement == GB_PLACEMENT_INPUT || buffer->placement == GB_PLACEMENT_OUTPUT;
    fputs(use->written ? "    writes " : "    reads ", printer->file);
    gb_print_buffer(printer, use->buffer);
    fprintf(printer->file, "%s: %s %zu, %zu bytes%s\n", use->elementwise ? ", elementwise" : "",
            placements[buffer->placement], is_port ? buffer->index : buffer->offset, buffer->bytes,
            buffer->constant && is_port ? ", constant" : "");
}

static void print_step(const gb_printer *printer, uint32_t number)
{
    const gb_step *step = printer->step;
    fprintf(printer->file, "step %u: %s%s\n", number, step->kernel,
            printer->program->step_is_constant[number] ? ", constant" : "");
    for (const char *line = step->text; line && *line;) {
        int length = (int)strcspn(line, "\n");
        fprintf(printer->file, "    %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
    for (uint32_t i = 0; i < step->n_uses; i++)
        print_use(printer, &step->uses[i]);
    fprintf(printer->file, "    scratch %zu bytes a thread, %zu shared; phases %d; work %.0f\n",
            step->thread_scratch, step->shared_scratch, step->n_phases ? step->n_phases : 1,
            step->work);
}

void gb_program_print(const gb_program *program, const gb_groups *groups, FILE *file)
{
    fprintf(file, "# program: arena %zu bytes, constants %zu, literals %zu\n", program->arena_bytes,
            program->constant_bytes, program->number_bytes);
    for (uint32_t s = 0; s < program->n_steps; s++) {
        const gb_step *step = &program->steps[s];
        if (s == 0 || step->group != step[-1].group)
            gb_print_group(program->graph, &groups->groups[step->group], step->group, file);
        print_step(&(gb_printer){file, program, step}, s);
    }
}
