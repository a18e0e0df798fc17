/* The peaks of instructions other than f32 multiply-adds. */
#ifndef GB_CLI_RUN_ROOF_DOT_H
#define GB_CLI_RUN_ROOF_DOT_H

/* An instruction: a loop of `steps` of it on each of `chains` chains. */
typedef struct gb_roof_dot {
    const char *type, *name; /* of the operands, and of the instruction */
    int chains;
    double operations; /* of one instruction; a multiply-add counts as two */
    void (*run)(long steps);
} gb_roof_dot;

/* The instructions that this processor has, of each type the fastest one; NULL behind the last. */
const gb_roof_dot *gb_cli_roof_dot_at(unsigned index);

#endif
