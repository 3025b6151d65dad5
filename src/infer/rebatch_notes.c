/* What an export with a fixed batch leaves open: diagnostics.
 *
 * A constant of one sample may stand for one that the network makes for each sample: of a batch of one they
 * look the same, as both broadcast. A size that equals the old batch and does not depend on it may be the
 * batch. An input that does not begin with the batch may hold it elsewhere.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "infer/rebatch.h"

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static onv_status add_note(onv_driver *driver, const char *node, const char *message)
{
    onv_diag note = {ONV_WARNING, "batch", node, message};
    if (message == NULL || !onv_vec_push(&driver->rebatch.notes, note))
        return onv_fail_memory(driver->err);
    return ONV_OK;
}

void onv_rebatch_tell(onv_driver *driver)
{
    for (size_t i = 0; i < driver->rebatch.notes.count; i++) {
        const onv_diag *note = &driver->rebatch.notes.at[i];
        onv_model_diag(driver->model, note->severity, note->code, note->node, "%s", note->message);
    }
}

/* --- Inputs ------------------------------------------------------------------------------------ */

static bool may_hold_batch(const onv_driver *driver, const onv_type *type)
{
    for (int axis = 0; onv_type_has_rank(type) && axis < type->rank; axis++)
        if (onv_dim_is_const(type->dims[axis]) && type->dims[axis].raw > 0 &&
            type->dims[axis].raw % driver->rebatch.old == 0)
            return true;
    return false;
}

static onv_status note_inputs(onv_driver *driver)
{
    onv_model *model = driver->model;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const onv_value *input = onv_model_value(model, graph->inputs[i]);
        if (driver->rebatch.has_batch[i] || !may_hold_batch(driver, &input->type)) continue;
        ONV_TRY(add_note(
            driver, NULL,
            onv_arena_printf(&model->arena,
                             "input '%s' keeps its shape, as its first dimension is not the batch "
                             "of the export, %" PRId64 "; where it holds the batch, give its shape "
                             "with --shape %s=...",
                             input->name, driver->rebatch.old, input->name)));
    }
    return ONV_OK;
}

/* --- Sizes that equal the old batch ------------------------------------------------------------ */

static onv_status note_cut(onv_driver *driver, const onv_node *node)
{
    static const char *const cutting[] = {"Slice", "TopK", "OneHot"};
    if (driver->rebatch.old < 2 || node->n_inputs == 0 || node->n_outputs == 0 ||
        !is_one_of(node->op_type, cutting, sizeof cutting / sizeof cutting[0]) ||
        !onv_is_value(node->inputs[0]) || !onv_is_value(node->outputs[0]))
        return ONV_OK;
    const onv_type *in = &onv_model_value(driver->model, node->inputs[0])->type;
    const onv_type *out = &onv_model_value(driver->model, node->outputs[0])->type;
    if (!onv_rebatch_carries(driver, out)) return ONV_OK;
    for (int axis = 0; axis < out->rank; axis++) {
        bool is_cut = axis >= in->rank || !onv_dim_same(in->dims[axis], out->dims[axis]);
        if (!is_cut || !onv_dim_is(out->dims[axis], driver->rebatch.old)) continue;
        return add_note(driver, node->name,
                        onv_arena_printf(&driver->model->arena,
                                         "dimension %d of its result, %" PRId64
                                         ", equals the batch of the export and is kept; if it is "
                                         "the batch, export with %s",
                                         axis, driver->rebatch.old, onv_rebatch_remedy(driver)));
    }
    return ONV_OK;
}

/* --- Constants of one sample ------------------------------------------------------------------- */

typedef struct singles {
    bool *
        is_single; /* by value: computed from constants alone, and may have a sample for each input */
    bool *is_counted;
    uint64_t bytes; /* where each use has its own */
    uint64_t held;  /* as the file has them */
    uint32_t count;
    const onv_value *first;
    const onv_node *reader;
} singles;

static bool has_one(const onv_type *type)
{
    for (int axis = 0; onv_type_has_rank(type) && axis < type->rank; axis++)
        if (onv_dim_is(type->dims[axis], 1)) return true;
    return false;
}

/* Parameters and buffers have the shape that the network gives them; what has no name in the network was
 * computed by the exporter. */
bool onv_rebatch_is_computed(const onv_driver *driver, const onv_value *value)
{
    if (value->kind == ONV_VALUE_CONSTANT) return true;
    if (value->role != ONV_ROLE_NOT_NOTED) return false;
    return driver->rebatch.has_roles || strstr(value->name, "::") != NULL;
}

/* Operators that make a constant of the shape that they are told. */
static bool makes_shape(const onv_node *node)
{
    static const char *const names[] = {"Expand", "Tile", "ConstantOfShape", "Range"};
    return strncmp(node->op_type, "Random", strlen("Random")) == 0 ||
           is_one_of(node->op_type, names, sizeof names / sizeof names[0]);
}

static bool broadcasts(const onv_node *node)
{
    static const char *const names[] = {"Add",
                                        "Sub",
                                        "Mul",
                                        "Div",
                                        "Pow",
                                        "Mod",
                                        "Min",
                                        "Max",
                                        "Sum",
                                        "Mean",
                                        "And",
                                        "Or",
                                        "Xor",
                                        "Where",
                                        "Equal",
                                        "Less",
                                        "PRelu",
                                        "Expand",
                                        "Gemm",
                                        "BitwiseAnd",
                                        "BitwiseOr",
                                        "BitwiseXor",
                                        "MatMul",
                                        "Greater",
                                        "LessOrEqual",
                                        "GreaterOrEqual",
                                        "ScatterElements"};
    return is_one_of(node->op_type, names, sizeof names / sizeof names[0]);
}

static bool is_single_constant(const onv_driver *driver, const onv_value *value)
{
    return onv_value_is_weight(value) && onv_rebatch_is_computed(driver, value) &&
           has_one(&value->type);
}

/* Whether the dim of `in` where `out` has the batch is 1. */
static bool meets_batch(const onv_driver *driver, const onv_type *in, const onv_type *out)
{
    if (!onv_type_has_rank(in)) return false;
    for (int axis = 0; axis < out->rank; axis++) {
        int own = axis - (out->rank - in->rank);
        if (onv_dim_contains(&driver->model->dims, out->dims[axis], driver->rebatch.symbol) &&
            own >= 0 && onv_dim_is(in->dims[own], 1))
            return true;
    }
    return false;
}

static void count_single(singles *s, onv_value_id id, const onv_value *value,
                         const onv_node *reader)
{
    int64_t elems = 1;
    for (int axis = 0; axis < value->type.rank; axis++)
        if (!onv_dim_is_const(value->type.dims[axis]) ||
            __builtin_mul_overflow(elems, value->type.dims[axis].raw, &elems))
            return;
    uint64_t bits = onv_dtype_bits((onv_dtype)value->type.dtype);
    uint64_t bytes = ((uint64_t)elems * bits + 7) / 8;
    s->bytes += bytes;
    if (!s->is_counted[id.index]) s->held += bytes;
    s->is_counted[id.index] = true;
    if (s->count++ > 0) return;
    s->first = value;
    s->reader = reader;
}

static void follow_single(onv_driver *driver, singles *s, const onv_node *node)
{
    const onv_model *model = driver->model;
    if (node->n_outputs == 0 || !onv_is_value(node->outputs[0])) return;
    const onv_type *out = &onv_model_value(model, node->outputs[0])->type;
    bool carries = onv_type_has_rank(out) && onv_rebatch_carries(driver, out);
    bool is_single = makes_shape(node);
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        const onv_value *in = onv_model_value(model, node->inputs[k]);
        bool is_one = s->is_single[node->inputs[k].index] || is_single_constant(driver, in);
        is_single |= is_one;
        if (is_one && carries && broadcasts(node) && meets_batch(driver, &in->type, out))
            count_single(s, node->inputs[k], in, node);
    }
    if (carries || !is_single) return;
    for (uint32_t k = 0; k < node->n_outputs; k++)
        if (onv_is_value(node->outputs[k]))
            s->is_single[node->outputs[k].index] =
                has_one(&onv_model_value(model, node->outputs[k])->type);
}

static void find_singles(onv_driver *driver, singles *s)
{
    const onv_model *model = driver->model;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        follow_single(driver, s, onv_model_node(model, graph->nodes[i]));
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        const onv_value *value = onv_model_value(model, graph->outputs[i]);
        if (s->is_single[graph->outputs[i].index] && onv_is_node(value->producer))
            count_single(s, graph->outputs[i], value, onv_model_node(model, value->producer));
    }
}

static onv_status note_singles(onv_driver *driver)
{
    onv_model *model = driver->model;
    singles s = {.is_single = onv_heap_calloc(model->values.count, sizeof *s.is_single),
                 .is_counted = onv_heap_calloc(model->values.count, sizeof *s.is_counted)};
    bool fits = s.is_single != NULL && s.is_counted != NULL;
    if (fits) find_singles(driver, &s);
    onv_heap_free(s.is_single);
    onv_heap_free(s.is_counted);
    if (!fits) return onv_fail_memory(driver->err);
    if (s.count == 0) return ONV_OK;
    return add_note(
        driver, s.reader->name,
        onv_arena_printf(&model->arena,
                         "the export has a batch of 1: it does not tell whether the network makes "
                         "'%s' once or for each sample%s; %" PRIu64
                         " bytes are counted, where each sample may have %" PRIu64
                         "; export with %s",
                         s.first->name, s.count > 1 ? ", and others like it" : "", s.held, s.bytes,
                         onv_rebatch_remedy(driver)));
}

/* Anew for each run. */
onv_status onv_rebatch_note(onv_driver *driver)
{
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    driver->rebatch.notes.count = 0;
    driver->rebatch.splits.count = 0;
    ONV_TRY(note_inputs(driver));
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        ONV_TRY(note_cut(driver, onv_model_node(driver->model, graph->nodes[i])));
        ONV_TRY(onv_rebatch_keep_split(driver, graph->nodes[i]));
    }
    if (driver->rebatch.old != 1) return ONV_OK;
    return note_singles(driver);
}
