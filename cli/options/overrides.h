/* What the list options say about a case: an option holds alternatives (comma), an alternative
 * holds overrides ('+') of single tensors or ops. */
#ifndef GB_CLI_OPTIONS_OVERRIDES_H
#define GB_CLI_OPTIONS_OVERRIDES_H

#include "cli/options/text.h"

#include <graphbench/graphbench.h>
#include <stdbool.h>

/* Every axis of the Cartesian product of cases, outermost first. */
typedef enum gb_axis {
    AXIS_IN_SHAPES,
    AXIS_OP_ATTRS,
    AXIS_EXPECTED_N_PARTITIONS,
    AXIS_FPMATH,
    AXIS_OP_KIND,
    AXIS_TENSOR_PROPERTY,
    AXIS_DT,     /* one data type for the whole graph */
    AXIS_DT_IDS, /* data types by tensor id */
    AXIS_MB,
    AXIS_COUNT
} gb_axis;

/* The pseudo kind of --op-kind=ID:undef, which removes the op. */
#define KIND_REMOVED GB_OP_LAST

enum { TAG_LIMIT = 48 };

typedef struct gb_shape_override {
    bool has_dims;
    bool has_strides;
    int ndims;
    int n_strides;
    int64_t dims[GB_MAX_NDIMS];
    int64_t strides[GB_MAX_NDIMS];
    char tag[TAG_LIMIT]; /* "" = none; with blocks as gb_logical_tensor_set_layout() has it */
    bool stray_tag; /* another one stood behind the id, where it has no effect, as in existing batch
                       files */
} gb_shape_override;

typedef struct gb_attr_override {
    gb_op_attr attr;
    size_t count;  /* of f32s, s64s or bytes of string */
    float *f32s;   /* owned, as are the next two; the attribute's type tells which is set */
    int64_t *s64s; /* bool: 0 or 1 */
    char *string;
    bool truncated; /* fractions of integers were cut off, as existing batch files expect */
} gb_attr_override;

typedef struct gb_override {
    size_t id; /* of the tensor, or of the op */
    union {
        gb_shape_override shape;
        gb_attr_override attr;
        gb_data_type type;
        gb_op_kind kind;
        gb_property property;
    } value;
} gb_override;

typedef struct gb_alternative {
    char *text; /* owned; as written, overrides sorted by id; "" = as in the file */
    size_t n_overrides;
    gb_override *overrides; /* owned */
    int64_t number;         /* AXIS_MB, AXIS_EXPECTED_N_PARTITIONS */
    gb_data_type type;      /* AXIS_DT; GB_UNDEF = as in the file */
    gb_fpmath_mode fpmath;
    bool apply_to_int;
} gb_alternative;

typedef struct gb_alternatives {
    size_t count;          /* never 0 */
    gb_alternative *items; /* owned */
} gb_alternatives;

/* Parses the value of an axis' option. The message of a failure names the character at fault. The
 * result is untouched on failure, and to be freed by the caller. */
gb_status gb_cli_alternatives_parse(gb_axis axis, const char *value, gb_alternatives *result);
/* The one alternative that leaves the file as it is. */
void gb_cli_alternatives_default(gb_axis axis, gb_alternatives *result);
void gb_cli_alternatives_free(gb_axis axis, gb_alternatives *alternatives);

/* The override of an id, or NULL; of several (attributes of an op) the first. */
const gb_override *gb_cli_find_override(const gb_alternative *alternative, size_t id);

/* What an axis means when nothing is given: mostly "as in the file" (""). The number of expected
 * partitions is -1 then. */
const char *gb_cli_axis_default(gb_axis axis);

#endif
