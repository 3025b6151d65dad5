/* Proof that every constant with the old batch was found, and what no proof can tell.
 *
 * After a run with the symbol, what depends on the batch carries the symbol from the inputs on. Where it ends
 * in a result that has the old batch as a size, or stops growing, a constant held it there.
 *
 * A size that equals the old batch and does not depend on it may be the batch all the same, and an input that does not
 * begin with the batch may hold it elsewhere: diagnostics say so.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "infer/driver.h"

static bool carries(const onv_driver *driver, const onv_type *type)
{
    for (int axis = 0; onv_type_has_rank(type) && axis < type->rank; axis++)
        if (onv_rebatch_is_in(driver, type->dims[axis])) return true;
    return false;
}

static bool holds_old_batch(const onv_driver *driver, const onv_type *type)
{
    for (int axis = 0; onv_type_has_rank(type) && axis < type->rank; axis++)
        if (onv_dim_is(type->dims[axis], driver->rebatch.old)) return true;
    return false;
}

/* A dim that grows with the batch grows evenly: no constant cuts it off. */
static bool is_even(const onv_driver *driver, onv_dim d)
{
    int64_t at[4];
    for (int64_t i = 0; i < 4; i++) {
        onv_dim value = onv_rebatch_at(driver, d, i + 1);
        if (!onv_dim_is_const(value)) return true; /* other symbols: not told */
        at[i] = value.raw;
    }
    int64_t step;
    return !__builtin_sub_overflow(at[1], at[0], &step) && step != 0 && at[2] - at[1] == step &&
           at[3] - at[2] == step;
}

/* Operators that take the batch away by what they are for. */
static bool may_drop_batch(const onv_node *node)
{
    return strncmp(node->op_type, "Reduce", strlen("Reduce")) == 0 ||
           strstr(node->op_type, "Loss") != NULL ||
           ONV_IS_ANY(node, ONV_OP_ArgMax, ONV_OP_ArgMin, ONV_OP_MatMul, ONV_OP_Gemm, ONV_OP_Einsum,
                      ONV_OP_Shape, ONV_OP_Size, ONV_OP_Gather, ONV_OP_NonZero, ONV_OP_Det,
                      ONV_OP_Conv);
}

/* Operators whose results have the sizes of their data or of a constant. */
static bool keeps_sizes(const onv_node *node)
{
    return ONV_IS_ANY(node, ONV_OP_Resize, ONV_OP_Upsample, ONV_OP_Pad, ONV_OP_Expand, ONV_OP_Tile,
                      ONV_OP_Reshape);
}

/* The type of an input; NULL: it has none, or no rank. */
static const onv_type *input_type(const onv_driver *driver, const onv_node *node, uint32_t k)
{
    const onv_value *value = onv_node_input(driver->model, node, k);
    return value != NULL && onv_type_has_rank(&value->type) ? &value->type : NULL;
}

/* A Gather along an axis with the batch, by constant indices that are as many as it had entries. */
static bool gathers_samples(const onv_driver *driver, const onv_node *node)
{
    const onv_type *data = input_type(driver, node, 0), *indices = input_type(driver, node, 1);
    if (node->code != ONV_OP_Gather || data == NULL || indices == NULL) return false;
    int64_t axis = onv_node_axis(node, 0, data->rank);
    if (axis < 0 || !onv_rebatch_is_in(driver, data->dims[axis])) return false;
    onv_dim entries = onv_rebatch_at(driver, data->dims[axis], 1);
    return !onv_dim_is(entries, 1) &&
           onv_dim_same(onv_type_elems(&driver->model->dims, indices), entries);
}

/* A ScatterElements that writes to as many samples as the old batch had. */
static bool scatters_samples(onv_driver *driver, const onv_node *node)
{
    const onv_type *data = input_type(driver, node, 0), *indices = input_type(driver, node, 1);
    if (driver->rebatch.old < 2 || node->code != ONV_OP_ScatterElements || data == NULL ||
        indices == NULL || data->rank != indices->rank)
        return false;
    for (int axis = 0; axis < data->rank; axis++)
        if (onv_rebatch_is_in(driver, data->dims[axis]) &&
            onv_dim_is(indices->dims[axis], driver->rebatch.old))
            return true;
    return false;
}

/* A Concat or Pad of samples, along their axis, by as many as the old batch had. */
static bool appends_old_batch(const onv_driver *driver, onv_dim d)
{
    onv_dim rest = onv_rebatch_at(driver, d, 0);
    return driver->rebatch.old > 1 && onv_dim_is_const(rest) && rest.raw > 0 &&
           rest.raw % driver->rebatch.old == 0;
}

static const char *doubt_size(const onv_driver *driver, const onv_node *node, onv_dim d)
{
    if (!onv_rebatch_is_in(driver, d)) return NULL;
    if (!is_even(driver, d)) return "a size of its result stops growing with the batch";
    bool appends = node->code == ONV_OP_Concat || node->code == ONV_OP_Pad;
    if (appends && appends_old_batch(driver, d))
        return "it appends as many samples as the old batch had";
    return NULL;
}

/* The elements of a tensor at a multiple of the old batch; -1 unknown. */
static int64_t elems_at(const onv_driver *driver, const onv_type *type, int64_t times)
{
    if (!onv_type_has_rank(type)) return -1;
    onv_dim elems = onv_rebatch_at(driver, onv_type_elems(&driver->model->dims, type), times);
    return onv_dim_is_const(elems) ? elems.raw : -1;
}

/* Whether it grows faster than the batch. */
static bool is_square(const onv_driver *driver, const onv_type *type)
{
    int64_t one = elems_at(driver, type, 1), two = elems_at(driver, type, 2);
    int64_t three = elems_at(driver, type, 3);
    return one >= 0 && two >= 0 && three >= 0 && three - two > two - one;
}

static const char *doubt_square(const onv_driver *driver, const onv_node *node)
{
    if (!driver->rebatch.is_strict) return NULL;
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        const onv_value *value = onv_node_output(driver->model, node, k);
        if (value != NULL && carries(driver, &value->type) && is_square(driver, &value->type))
            return "its result grows with the square of the batch";
    }
    return NULL;
}

/* Whether it splits an axis with the batch. */
static bool splits_batch(const onv_driver *driver, const onv_node *node)
{
    const onv_type *data = input_type(driver, node, 0);
    if (node->code != ONV_OP_Split || data == NULL) return false;
    int64_t axis = onv_node_axis(node, 0, data->rank);
    return axis >= 0 && onv_rebatch_is_in(driver, data->dims[axis]);
}

static const char *doubt_node(onv_driver *driver, const onv_node *node)
{
    bool reads = false, gives = false, old = false, host = true;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        reads |= carries(driver, input_type(driver, node, k));
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        const onv_value *value = onv_node_output(driver->model, node, k);
        if (value == NULL) continue;
        gives |= carries(driver, &value->type);
        old |= holds_old_batch(driver, &value->type);
        host &= value->known != NULL;
        for (int axis = 0; onv_type_has_rank(&value->type) && axis < value->type.rank; axis++) {
            const char *why = doubt_size(driver, node, value->type.dims[axis]);
            if (why != NULL) return why;
        }
    }
    if (driver->rebatch.old == 1 && node->n_outputs == 1 && splits_batch(driver, node))
        return "it splits the batch, so that one sample is one part";
    if (scatters_samples(driver, node)) return "it writes to the samples of the old batch";
    if (!reads || gives || host) return NULL;
    if (gathers_samples(driver, node)) return "it picks the samples of the old batch";
    if (keeps_sizes(node)) return "a constant gives the size that grows with the batch";
    return old && !may_drop_batch(node) ? "its result keeps the old batch" : NULL;
}

/* Whether a Reshape could be read in two ways. */
static bool is_ambiguous(const onv_rebatch *rebatch)
{
    for (size_t i = 0; i < rebatch->rewrites.count; i++)
        if (rebatch->rewrites.at[i].n_candidates > 1) return true;
    return false;
}

/* A result that has the old batch and not the new one; or has it first, where a Reshape could be read in
 * two ways. */
static bool is_result_of_old_batch(const onv_driver *driver, const onv_type *type)
{
    if (!onv_type_has_rank(type) || type->rank == 0) return false;
    bool is_first = onv_dim_is(type->dims[0], driver->rebatch.old);
    if (carries(driver, type)) return is_ambiguous(&driver->rebatch) && is_first;
    return driver->rebatch.old > 1 ? holds_old_batch(driver, type) : is_first;
}

/* By value: whether it depends on an input with the batch. */
static bool *find_dependent(onv_driver *driver)
{
    const onv_model *model = driver->model;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    bool *depends = ONV_ARENA_ARRAY(&driver->scratch, bool, model->values.count);
    for (uint32_t i = 0; depends != NULL && i < graph->n_nodes; i++) {
        const onv_node *node = onv_model_node(model, graph->nodes[i]);
        bool reads = false;
        for (uint32_t k = 0; k < node->n_inputs; k++)
            reads |=
                onv_is_value(node->inputs[k]) &&
                (depends[node->inputs[k].index] || carries(driver, input_type(driver, node, k)));
        for (uint32_t k = 0; reads && k < node->n_outputs; k++)
            if (onv_is_value(node->outputs[k])) depends[node->outputs[k].index] = true;
    }
    return depends;
}

/* Of a batch of one only what depends on the inputs is doubted. */
static onv_status doubt_results(onv_driver *driver, onv_doubt *found)
{
    onv_rebatch *rebatch = &driver->rebatch;
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    bool *depends = find_dependent(driver);
    if (depends == NULL) return onv_fail_memory(driver->err);
    for (uint32_t i = 0; i < graph->n_outputs && found->why == NULL; i++) {
        onv_value_id id = graph->outputs[i];
        const onv_value *value = onv_model_value(driver->model, id);
        bool has_new = carries(driver, &value->type), is_one = rebatch->old == 1;
        if (!is_result_of_old_batch(driver, &value->type) || (is_one && !depends[id.index]) ||
            (is_one && has_new && !rebatch->is_strict))
            continue;
        rebatch->is_unlikely = is_one && has_new;
        *found = (onv_doubt){value->producer, "a result of the network keeps the old batch"};
    }
    return ONV_OK;
}

onv_status onv_rebatch_doubt(onv_driver *driver, onv_doubt *found)
{
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    driver->rebatch.is_unlikely = false;
    *found = (onv_doubt){ONV_NO_NODE, NULL};
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const onv_node *node = onv_model_node(driver->model, graph->nodes[i]);
        const char *why = doubt_node(driver, node);
        bool is_hard = why != NULL;
        if (!is_hard) why = doubt_square(driver, node);
        if (why == NULL) continue;
        driver->rebatch.is_unlikely = !is_hard;
        *found = (onv_doubt){graph->nodes[i], why};
        return ONV_OK;
    }
    return doubt_results(driver, found);
}

/* --- What an export with a fixed batch leaves open --------------------------------------------- */

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

static onv_status note_cut(onv_driver *driver, const onv_node *node)
{
    const onv_type *in = input_type(driver, node, 0);
    const onv_value *out = onv_node_output(driver->model, node, 0);
    if (driver->rebatch.old < 2 || !ONV_IS_ANY(node, ONV_OP_Slice, ONV_OP_TopK, ONV_OP_OneHot) ||
        in == NULL || out == NULL || !carries(driver, &out->type))
        return ONV_OK;
    for (int axis = 0; axis < out->type.rank; axis++) {
        onv_dim dim = out->type.dims[axis];
        bool is_cut = axis >= in->rank || !onv_dim_same(in->dims[axis], dim);
        if (!is_cut || !onv_dim_is(dim, driver->rebatch.old)) continue;
        return add_note(driver, node->name,
                        onv_arena_printf(&driver->model->arena,
                                         "dimension %d of its result, %" PRId64
                                         ", equals the batch of the export and is kept; if it is "
                                         "the batch, export with %s",
                                         axis, driver->rebatch.old, onv_rebatch_remedy(driver)));
    }
    return ONV_OK;
}

/* Anew for each run. */
onv_status onv_rebatch_note(onv_driver *driver)
{
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    driver->rebatch.notes.count = 0;
    ONV_TRY(note_inputs(driver));
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        ONV_TRY(note_cut(driver, onv_model_node(driver->model, graph->nodes[i])));
    return ONV_OK;
}
