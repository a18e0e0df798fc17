/* Pointwise programs as text. */
#include "kernels/plan/pointwise.h"

enum { ALPHA = 1, BETA = 2 };

typedef struct opcode_text {
    const char *name;
    uint8_t sources, parameters; /* parameters: a sum of ALPHA, BETA */
} opcode_text;

static const opcode_text opcodes[GB_POINTWISE_OPCODES] = {
#define GB_POINTWISE_MOVEMENT(enumerator, name, sources, parameters)                               \
    [GB_POINTWISE_##enumerator] = {#name, sources, parameters},
#define GB_POINTWISE_ARITHMETIC(enumerator, name, sources, parameters)                             \
    [GB_POINTWISE_##enumerator] = {#name, sources, parameters},
#include "kernels/plan/pointwise_opcodes.def"
};

/* "f32 %3 [64,1]", "scratch 0", or "index [64,1]" */
static void print_operand(
        const gb_printer *printer, const gb_pointwise_program *pointwise, uint32_t index)
{
    const gb_pointwise_operand *operand = &pointwise->operands[index];
    FILE *file = printer->file;
    if (!operand->is_index && operand->slot >= GB_SCRATCH_OPERAND) {
        fprintf(file, "scratch %u", operand->slot - GB_SCRATCH_OPERAND);
        return;
    }
    if (operand->is_index) {
        fputs("index", file);
    } else {
        fprintf(file, "%s ", gb_data_type_name(operand->type));
        gb_print_slot(printer, operand->slot);
    }
    fputs(" ", file);
    gb_print_strides(printer, pointwise->ndims, operand->strides);
    fprintf(file, "%s%s", operand->in_panels ? " in panels" : "",
            operand->streamed ? " past the caches" : "");
}

/* Registers that are read, and parameters. */
static void print_sources(
        FILE *file, const opcode_text *text, const gb_pointwise_instruction *instruction)
{
    const uint8_t sources[] = {instruction->a, instruction->b, instruction->c};
    for (int i = 0; i < text->sources; i++)
        fprintf(file, "%s r%u", i ? "," : "", sources[i]);
    if (text->parameters & ALPHA)
        fprintf(file, " alpha=%.9g", (double)instruction->alpha);
    if (text->parameters & BETA)
        fprintf(file, " beta=%.9g", (double)instruction->beta);
}

static void print_instruction(const gb_printer *printer, const gb_pointwise_program *pointwise,
        const gb_pointwise_instruction *instruction)
{
    const opcode_text *text = &opcodes[instruction->opcode];
    FILE *file = printer->file;
    if (instruction->opcode != GB_POINTWISE_STORE)
        fprintf(file, "r%u = ", instruction->dst);
    fputs(text->name, file);
    print_sources(file, text, instruction);
    switch (instruction->opcode) {
    case GB_POINTWISE_LOAD:
    case GB_POINTWISE_STORE:
        fputs(instruction->opcode == GB_POINTWISE_STORE ? " to " : " ", file);
        print_operand(printer, pointwise, instruction->operand);
        fputs(instruction->type == GB_S32 ? " as s32" : "", file);
        break;
    case GB_POINTWISE_ROUND:
        fprintf(file, " to %s", gb_data_type_name((gb_data_type)instruction->type));
        break;
    case GB_POINTWISE_INDEX:
        fputs(" ", file);
        gb_print_strides(
                printer, pointwise->ndims, pointwise->operands[instruction->operand].strides);
        break;
    case GB_POINTWISE_DROPOUT:
        fputs(" seed ", file);
        print_operand(printer, pointwise, instruction->b);
        fputs(" offset ", file);
        print_operand(printer, pointwise, instruction->c);
        fputs(" ", file);
        print_operand(printer, pointwise, instruction->operand);
        break;
    default:
        break;
    }
    fputs("\n", file);
}

void gb_pointwise_print(const gb_printer *printer, const void *problem)
{
    const gb_pointwise_program *pointwise = problem;
    fputs("pointwise over ", printer->file);
    gb_print_sizes(printer, pointwise->ndims, pointwise->dims);
    fputs(":\n", printer->file);
    for (uint32_t i = 0; i < pointwise->n_instructions; i++) {
        fputs("  ", printer->file);
        print_instruction(printer, pointwise, &pointwise->instructions[i]);
    }
}
