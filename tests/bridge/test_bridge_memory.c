/* Views and writes in place: random programs, run by the bridge and by an interpreter that shares
 * memory as the framework does. Results, and what is left in the inputs, must be the same. */
#include "bridge_run.h"

enum { PROGRAMS = 400, MOST_NODES = 24, INPUTS = 2 };

typedef enum kind {
    ADD,
    MUL,
    RELU,
    TANH,
    ADD_,
    MUL_,
    RELU_,
    COPY_,
    VIEW,
    TRANSPOSE,
    SLICE,
    CLONE,
    KINDS
} kind;

static const char *const targets[KINDS] = {"add.Tensor", "mul.Tensor", "relu.default",
        "tanh.default", "add_.Tensor", "mul_.Tensor", "relu_.default", "copy_.default",
        "view.default", "transpose.int", "slice.Tensor", "clone.default"};

typedef struct program_node {
    kind kind;
    char out[32], self[32], other[32];
    int n_dims;
    int64_t dims[4]; /* of a view */
} program_node;

typedef struct program {
    program_node nodes[MOST_NODES];
    int count;
    unsigned seed;
} program;

static unsigned draw(program *p, unsigned below)
{
    p->seed = p->seed * 1664525u + 1013904223u;
    return (p->seed >> 8) % below;
}

static bool is_dense(const gb_bridge_tensor *t)
{
    int64_t step = 1;
    for (int d = t->ndims - 1; d >= 0; d--) {
        if (t->dims[d] != 1 && t->strides[d] != step)
            return false;
        step *= t->dims[d];
    }
    return true;
}

static float compute(kind k, float a, float b)
{
    switch (k) {
    case ADD:
    case ADD_:
        return a + b;
    case MUL:
    case MUL_:
        return a * b;
    case RELU:
    case RELU_:
        return a > 0 ? a : 0;
    case TANH:
        return tanhf(a);
    case COPY_:
        return b;
    default:
        return a;
    }
}

static void interpret(run_env *env, const program_node *node)
{
    gb_bridge_tensor self = run_find(env, node->self)->t, other = self;
    if (*node->other)
        other = run_find(env, node->other)->t;
    bool is_in_place = node->kind >= ADD_ && node->kind <= COPY_;
    bool is_view = is_in_place || (node->kind >= VIEW && node->kind <= SLICE);
    if (!is_view) {
        run_tensor *out = run_dense(env, node->out, self.ndims, self.dims);
        for (int64_t i = 0; i < run_count(&self); i++)
            *run_at(&out->t, &self, i) =
                    compute(node->kind, *run_at(&self, &self, i), *run_at(&other, &self, i));
        return;
    }
    if (is_in_place) {
        float results[MOST_ELEMENTS]; /* operands may overlap */
        for (int64_t i = 0; i < run_count(&self); i++)
            results[i] = compute(node->kind, *run_at(&self, &self, i), *run_at(&other, &self, i));
        for (int64_t i = 0; i < run_count(&self); i++)
            *run_at(&self, &self, i) = results[i];
    }
    run_tensor *out = run_add(env, node->out);
    out->t = self;
    if (node->kind == VIEW) {
        out->t.ndims = node->n_dims;
        int64_t step = 1;
        for (int d = node->n_dims - 1; d >= 0; d--) {
            out->t.dims[d] = node->dims[d];
            out->t.strides[d] = step;
            step *= node->dims[d];
        }
    } else if (node->kind == TRANSPOSE) {
        out->t.dims[0] = self.dims[1];
        out->t.dims[1] = self.dims[0];
        out->t.strides[0] = self.strides[1];
        out->t.strides[1] = self.strides[0];
    } else if (node->kind == SLICE) {
        out->t.dims[0] = self.dims[0] - 1;
        out->t.data = (float *)self.data + self.strides[0];
    }
}

static void fill(run_env *env)
{
    const int64_t dims[] = {4, 6};
    const char *const names[] = {"x", "z"};
    for (int i = 0; i < INPUTS; i++) {
        run_tensor *t = run_dense(env, names[i], 2, dims);
        for (int e = 0; e < 24; e++)
            ((float *)t->t.data)[e] = (float)((e * 7 + i * 5) % 11 - 5) / 4;
    }
}

static bool same_dims(const gb_bridge_tensor *a, const gb_bridge_tensor *b)
{
    return a->ndims == b->ndims && memcmp(a->dims, b->dims, (size_t)a->ndims * 8) == 0;
}

static bool overlap(const gb_bridge_tensor *a, const gb_bridge_tensor *b, bool *same)
{
    *same = a->data == b->data && memcmp(a->strides, b->strides, (size_t)a->ndims * 8) == 0;
    int64_t reach_a = 0, reach_b = 0;
    for (int d = 0; d < a->ndims; d++) {
        reach_a += (a->dims[d] - 1) * a->strides[d];
        reach_b += (b->dims[d] - 1) * b->strides[d];
    }
    const float *x = a->data, *y = b->data;
    return x <= y + reach_b && y <= x + reach_a;
}

/* Draws a node that is legal now; false: the draw gave none. */
static bool draw_node(program *p, run_env *env, program_node *node)
{
    memset(node, 0, sizeof *node);
    node->kind = (kind)draw(p, KINDS);
    const run_tensor *self = &env->values[draw(p, (unsigned)env->count)];
    snprintf(node->self, sizeof node->self, "%s", self->name);
    snprintf(node->out, sizeof node->out, "v%d", p->count);
    bool is_binary = node->kind == ADD || node->kind == MUL || node->kind == ADD_ ||
                     node->kind == MUL_ || node->kind == COPY_;
    if (is_binary) {
        bool same;
        const run_tensor *other = &env->values[draw(p, (unsigned)env->count)];
        if (!same_dims(&self->t, &other->t))
            return false;
        if (node->kind >= ADD_ && overlap(&self->t, &other->t, &same) && !same)
            return false; /* the framework refuses it */
        snprintf(node->other, sizeof node->other, "%s", other->name);
    }
    if (node->kind == VIEW) {
        static const int64_t shapes[][4] = {{24}, {4, 6}, {2, 12}, {6, 4}, {3, 2, 4}, {18}, {3, 6}};
        static const int ranks[] = {1, 2, 2, 2, 3, 1, 2};
        unsigned s = draw(p, 7);
        int64_t count = 1;
        for (int d = 0; d < ranks[s]; d++)
            count *= shapes[s][d];
        if (!is_dense(&self->t) || run_count(&self->t) != count)
            return false;
        node->n_dims = ranks[s];
        memcpy(node->dims, shapes[s], sizeof node->dims);
    }
    return !((node->kind == TRANSPOSE && self->t.ndims < 2) ||
             (node->kind == SLICE && self->t.dims[0] < 2));
}

static void put_sizes(char *text, const gb_bridge_tensor *t)
{
    for (int d = 0; d < t->ndims; d++)
        sprintf(text + strlen(text), "%s%lld", d ? "x" : "", (long long)t->dims[d]);
    strcat(text, ":");
    for (int d = 0; d < t->ndims; d++)
        sprintf(text + strlen(text), "%s%lld", d ? "x" : "", (long long)t->strides[d]);
}

static void write_node(char *lines, const program_node *node, const gb_bridge_tensor *out)
{
    char sizes[256] = "";
    put_sizes(sizes, out);
    sprintf(lines + strlen(lines), "%s %s:f32:%s self=@%s", targets[node->kind], node->out, sizes,
            node->self);
    if (node->kind == COPY_)
        sprintf(lines + strlen(lines), " src=@%s", node->other);
    else if (*node->other)
        sprintf(lines + strlen(lines), " other=@%s", node->other);
    if (node->kind == TRANSPOSE)
        strcat(lines, " dim0=0 dim1=1");
    if (node->kind == SLICE)
        strcat(lines, " dim=0 start=1");
    strcat(lines, "\n");
}

static void run_outside(void *context, run_env *env, const char *name)
{
    const program *p = context;
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->nodes[i].out, name) == 0) {
            interpret(env, &p->nodes[i]);
            return;
        }
    cr_assert_fail("no node %s", name);
}

static void compare(run_env *expected, run_env *got, const char *name, const char *lines,
        const gb_bridge_module *module)
{
    run_tensor *e = run_find(expected, name), *g = run_find(got, name);
    cr_assert(g, "%s is not there:\n%s%s", name, lines, gb_bridge_module_describe(module));
    cr_assert(same_dims(&e->t, &g->t));
    for (int64_t i = 0; i < run_count(&e->t); i++) {
        float a = *run_at(&e->t, &e->t, i), b = *run_at(&g->t, &e->t, i);
        cr_assert(fabsf(a - b) <= 1e-4f * (1 + fabsf(a)), "%s[%d]: %g, not %g\n%s%s", name, (int)i,
                (double)b, (double)a, lines, gb_bridge_module_describe(module));
    }
}

/* Returns how many nodes were in groups. */
static int run_program(unsigned seed, gb_policy policy)
{
    static run_env expected, got;
    static char lines[1 << 14];
    program p = {.seed = seed};
    char outputs[8][32];
    int n_outputs = 1 + (int)draw(&p, 4), fused = 0;
    strcpy(lines, "input x f32 4x6\ninput z f32 4x6\n");
    fill(&expected);
    for (int tries = 0; p.count < MOST_NODES && tries < 1000; tries++) {
        program_node *node = &p.nodes[p.count];
        if (!draw_node(&p, &expected, node))
            continue;
        p.count++;
        interpret(&expected, node);
        write_node(lines, node, &run_find(&expected, node->out)->t);
    }
    for (int i = 0; i < n_outputs; i++) {
        snprintf(outputs[i], sizeof outputs[i], "v%d",
                i == 0 ? p.count - 1 : (int)draw(&p, (unsigned)p.count));
        sprintf(lines + strlen(lines), "output %s\n", outputs[i]);
    }
    gb_bridge_options options = {.size = sizeof options, .policy = policy, .keep_single_ops = 1};
    gb_bridge_module *module = make_module(lines, &options);
    fill(&got);
    run_module(module, &got, run_outside, &p);
    for (int i = 0; i < n_outputs; i++)
        compare(&expected, &got, outputs[i], lines, module);
    compare(&expected, &got, "x", lines, module);
    compare(&expected, &got, "z", lines, module);
    for (int i = 0; i < p.count; i++)
        fused += !is_outside(module, p.nodes[i].out, "");
    gb_bridge_module_destroy(module);
    run_release(&expected);
    run_release(&got);
    return fused;
}

Test(bridge_memory, random_programs)
{
    int fused = 0;
    for (unsigned seed = 1; seed <= PROGRAMS; seed++)
        fused += run_program(seed * 7919u, seed % 2 ? GB_POLICY_FUSION : GB_POLICY_MAX);
    /* Not by leaving all outside. */
    cr_assert_gt(fused, PROGRAMS * 4, "%d", fused);
}
