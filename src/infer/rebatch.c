/* Changing a batch that the export fixed.
 *
 * An export with a fixed batch carries it in constants: the target of a Reshape ([1, 2048]), of an
 * Expand, the shape of a ConstantOfShape. To find them, the model is inferred with a symbol for the
 * batch. A Reshape whose target no longer matches its input shows itself there, and the entry to
 * change follows from where the batch stands in the row-major order. Then the model is inferred
 * with the number. A constant of another kind shows as a failure downstream (a Concat of a new and
 * an old batch): the nearest constant upstream that holds the old batch is changed, and both runs
 * are made again.
 *
 * Constants are replaced per reader, not in place: two Reshapes may share one initializer.
 */
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "infer/driver.h"

#define REMEDY "dynamic_shapes (dynamo=True) or dynamic_axes"

/* How far upstream of a mismatch a constant is looked for, in nodes. */
enum { MAX_SEARCH = 4096 };

static onv_known *copy_known(onv_model *model, const onv_known *known)
{
    onv_known *copy = onv_arena_copy(&model->arena, known, sizeof *known);
    if (copy == NULL) return NULL;
    copy->elems = onv_arena_copy(&model->arena, known->elems, known->count * sizeof *known->elems);
    return copy->elems != NULL ? copy : NULL;
}

static onv_rewrite *find_rewrite(onv_rebatch *rebatch, uint32_t node, uint32_t input)
{
    if (rebatch->first == NULL) return NULL;
    for (int32_t i = rebatch->first[node]; i >= 0; i = rebatch->rewrites.at[i].next)
        if (rebatch->rewrites.at[i].input == input) return &rebatch->rewrites.at[i];
    return NULL;
}

static onv_status add_rewrite(onv_driver *driver, uint32_t node, uint32_t input, onv_known *known)
{
    onv_rebatch *rebatch = &driver->rebatch;
    if (rebatch->first == NULL) {
        size_t n = driver->model->nodes.count;
        rebatch->first = onv_heap_alloc(n * sizeof *rebatch->first);
        if (rebatch->first == NULL) return onv_fail_memory(driver->err);
        for (size_t i = 0; i < n; i++) rebatch->first[i] = -1;
    }
    onv_rewrite rewrite = {node, input, known, NULL, rebatch->first[node]};
    if (!onv_vec_push(&rebatch->rewrites, rewrite)) return onv_fail_memory(driver->err);
    rebatch->first[node] = (int32_t)rebatch->rewrites.count - 1;
    return ONV_OK;
}

/* An entry that holds the old batch (or a multiple), for the new one. */
static onv_dim carried(onv_driver *driver, int64_t entry)
{
    return onv_dim_mul(&driver->model->dims, driver->rebatch.symbol,
                       onv_dim_const(entry / driver->rebatch.old));
}

/* --- Reshape ----------------------------------------------------------------------------------- */

/* The elements before the dim that holds the batch; -1 where it holds none or they are symbolic. */
static int64_t elements_before_batch(onv_driver *driver, const onv_type *type)
{
    int64_t before = 1;
    for (int axis = 0; axis < type->rank; axis++) {
        if (onv_dim_contains(&driver->model->dims, type->dims[axis], driver->rebatch.symbol))
            return before;
        if (!onv_dim_is_const(type->dims[axis]) ||
            __builtin_mul_overflow(before, type->dims[axis].raw, &before))
            return -1;
    }
    return -1;
}

/* Whether the target with entry `j` changed holds as many elements as the input. */
static bool target_matches(onv_driver *driver, const onv_dim *target, uint32_t count, uint32_t j,
                           onv_dim elems)
{
    onv_dims *dims = &driver->model->dims;
    onv_dim product = onv_dim_const(1);
    for (uint32_t i = 0; i < count; i++)
        product = onv_dim_mul(dims, product, i == j ? carried(driver, target[i].raw) : target[i]);
    return onv_dim_same(product, elems);
}

/* The batch may be inside of what a Reshape splits (heads times samples): a later part of the split that
 * could as well be the batch. `i` where there is none. */
static uint32_t later_part(onv_driver *driver, const onv_dim *target, uint32_t count, uint32_t i,
                           onv_dim merged, onv_dim elems)
{
    onv_dims *dims = &driver->model->dims;
    onv_dim at_old = onv_dim_substitute(dims, merged, driver->rebatch.symbol,
                                        onv_dim_const(driver->rebatch.old));
    int64_t product = 1;
    if (driver->rebatch.old < 2 || !onv_dim_is_const(at_old)) return i;
    for (uint32_t j = i; j < count && onv_dim_is_const(target[j]) && target[j].raw > 0; j++) {
        if (__builtin_mul_overflow(product, target[j].raw, &product) || product > at_old.raw) break;
        if (j > i && target[j].raw % driver->rebatch.old == 0 &&
            target_matches(driver, target, count, j, elems))
            return j;
    }
    return i;
}

static onv_dim dim_with_batch(const onv_driver *driver, const onv_type *type)
{
    for (int axis = 0; axis < type->rank; axis++)
        if (onv_dim_contains(&driver->model->dims, type->dims[axis], driver->rebatch.symbol))
            return type->dims[axis];
    return onv_dim_const(1);
}

/* Which entry of a constant target must change: -1 none, -2 none can. */
static int entry_to_change(onv_driver *driver, const onv_dim *target, uint32_t count,
                           const onv_type *input, onv_dim elems)
{
    onv_dims *dims = &driver->model->dims;
    int64_t before = elements_before_batch(driver, input), prefix = 1;
    bool open = false; /* holds a -1 */
    for (uint32_t i = 0; i < count; i++) open |= onv_dim_is(target[i], -1);
    onv_dim product = onv_dim_const(1);
    for (uint32_t i = 0; i < count; i++) product = onv_dim_mul(dims, product, target[i]);
    if (!open && onv_dim_same(product, elems)) return -1;

    for (uint32_t i = 0; i < count && onv_dim_is_const(target[i]); i++) {
        int64_t entry = target[i].raw;
        if (prefix == before && entry == -1) return -1;
        bool divisible = entry > 0 && entry % driver->rebatch.old == 0;
        if (prefix == before && divisible) {
            if (open && entry == driver->rebatch.old) return (int)i;
            if (!open && target_matches(driver, target, count, i, elems)) {
                onv_dim merged = dim_with_batch(driver, input);
                uint32_t later = later_part(driver, target, count, i, merged, elems);
                driver->rebatch.ambiguous |= later != i;
                return (int)(driver->rebatch.take_later ? later : i);
            }
        }
        if (entry <= 0 || __builtin_mul_overflow(prefix, entry, &prefix)) break;
    }
    if (open) return -1;
    for (uint32_t i = 0; i < count; i++)
        if (onv_dim_is_const(target[i]) && target[i].raw > 0 &&
            target[i].raw % driver->rebatch.old == 0 &&
            target_matches(driver, target, count, i, elems))
            return (int)i;
    return -2;
}

static onv_status rebatch_reshape(onv_driver *driver, onv_node_id node, onv_op_ctx *c)
{
    const onv_type *input = onv_op_in(c, 0);
    uint32_t count;
    if (!onv_op_in_ints(c, 1, &count) || count > ONV_MAX_RANK) return ONV_OK;
    onv_dim elems = onv_type_elems(c->dims, input);
    if (!onv_dim_contains(c->dims, elems, driver->rebatch.symbol)) return ONV_OK;
    onv_dim target[ONV_MAX_RANK];
    for (uint32_t i = 0; i < count; i++) {
        target[i] = onv_op_in_int(c, 1, i);
        if (onv_dim_is(target[i], 0)) target[i] = onv_op_in_dim(c, 0, (int)i);
    }
    int change = entry_to_change(driver, target, count, input, elems);
    if (change < 0) return ONV_OK; /* -2: the rule itself fails, with both shapes */
    onv_known *known = copy_known(driver->model, onv_op_in_known(c, 1));
    if (known == NULL) return onv_fail_memory(driver->err);
    known->elems[change].i = carried(driver, target[change].raw);
    c->in[1].known = known;
    return add_rewrite(driver, node.index, 1, known);
}

/* --- Resize and Expand ------------------------------------------------------------------------- */

/* Entries that give the size which a dim with the batch had at the old one: they keep the dim, whole. */
static onv_status rebatch_beside(onv_driver *driver, onv_node_id node, onv_op_ctx *c, uint32_t k)
{
    const onv_type *input = onv_op_in(c, 0);
    uint32_t count;
    if (k >= c->n_in || !onv_op_in_ints(c, k, &count) || !onv_type_has_rank(input) ||
        count < (uint32_t)input->rank)
        return ONV_OK;
    onv_known *known = NULL;
    onv_dim old = onv_dim_const(driver->rebatch.old);
    for (int axis = 0; axis < input->rank; axis++) {
        onv_dim d = input->dims[axis];
        if (!onv_dim_contains(c->dims, d, driver->rebatch.symbol)) continue;
        uint32_t entry = count - (uint32_t)input->rank + (uint32_t)axis;
        onv_dim at_old = onv_dim_substitute(c->dims, d, driver->rebatch.symbol, old);
        if (!onv_dim_is_const(at_old) || at_old.raw == 1 ||
            !onv_dim_same(onv_op_in_int(c, k, entry), at_old))
            continue;
        if (known == NULL) known = copy_known(driver->model, onv_op_in_known(c, k));
        if (known == NULL) return onv_fail_memory(driver->err);
        known->elems[entry].i = d;
    }
    if (known == NULL) return ONV_OK;
    c->in[k].known = known;
    return add_rewrite(driver, node.index, k, known);
}

onv_status onv_rebatch_inputs(onv_driver *driver, onv_node_id node, onv_op_ctx *c)
{
    onv_rebatch *rebatch = &driver->rebatch;
    if (rebatch->first != NULL && rebatch->first[node.index] >= 0) {
        for (uint32_t k = 0; k < c->n_in; k++) {
            onv_rewrite *rewrite = find_rewrite(rebatch, node.index, k);
            if (rewrite != NULL) c->in[k].known = rebatch->active ? rewrite->known : rewrite->bound;
        }
        return ONV_OK;
    }
    if (!rebatch->active || c->n_in < 2) return ONV_OK;
    const char *op = c->node->op_type;
    if (strcmp(op, "Reshape") == 0) return rebatch_reshape(driver, node, c);
    if (strcmp(op, "Expand") == 0) return rebatch_beside(driver, node, c, 1);
    if (strcmp(op, "Resize") == 0) return rebatch_beside(driver, node, c, 3);
    return ONV_OK;
}

/* --- Constants upstream ------------------------------------------------------------------------ */

/* The input of an operator that gives the shape of its output. */
static int shape_input(const onv_node *node)
{
    if (strcmp(node->op_type, "Expand") == 0) return 1;
    if (strcmp(node->op_type, "ConstantOfShape") == 0) return 0;
    if (strcmp(node->op_type, "Tile") == 0) return 1;
    if (strcmp(node->op_type, "Resize") == 0) return 3; /* sizes */
    if (strcmp(node->op_type, "Concat") == 0) return 0; /* of shape vectors */
    return -1;
}

/* The entry that is the old batch; of a batch of one only the first is told from others. */
static uint32_t entry_of_batch(const onv_driver *driver, const onv_known *known)
{
    uint32_t end = driver->rebatch.old > 1 ? known->count : 1;
    for (uint32_t i = 0; i < end && i < known->count; i++)
        if (onv_dim_is(known->elems[i].i, driver->rebatch.old)) return i;
    return known->count;
}

/* Changes the first entry of that input that is the old batch, if the input was not changed yet. */
static onv_status change_constant(onv_driver *driver, uint32_t index, bool *changed)
{
    onv_node *node = &driver->model->nodes.at[index];
    int k = shape_input(node);
    if (k < 0 || (uint32_t)k >= node->n_inputs || !onv_is_value(node->inputs[k])) return ONV_OK;
    if (find_rewrite(&driver->rebatch, index, (uint32_t)k) != NULL) return ONV_OK;
    onv_value *value = onv_model_value(driver->model, node->inputs[k]);
    const onv_known *known = NULL;
    if (!onv_value_is_weight(value)) return ONV_OK;
    ONV_TRY(onv_driver_constant(driver, value, &known));
    if (known == NULL || !onv_dtype_is_integer((onv_dtype)known->dtype)) return ONV_OK;
    uint32_t entry = entry_of_batch(driver, known);
    if (entry >= known->count) return ONV_OK;
    onv_known *copy = copy_known(driver->model, known);
    if (copy == NULL) return onv_fail_memory(driver->err);
    copy->elems[entry].i = driver->rebatch.symbol;
    *changed = true;
    return add_rewrite(driver, index, (uint32_t)k, copy);
}

/* Breadth first from the node that failed, against the edges. */
static onv_status change_upstream(onv_driver *driver, bool *changed)
{
    onv_model *model = driver->model;
    uint32_t *queue = onv_heap_alloc(MAX_SEARCH * sizeof *queue);
    bool *seen = onv_heap_calloc(model->nodes.count, sizeof *seen);
    onv_status status = queue != NULL && seen != NULL ? ONV_OK : onv_fail_memory(driver->err);
    size_t count = 0;
    if (status == ONV_OK) {
        queue[count++] = driver->failed_node.index;
        seen[driver->failed_node.index] = true;
    }
    for (size_t at = 0; at < count && status == ONV_OK && !*changed; at++) {
        status = change_constant(driver, queue[at], changed);
        const onv_node *node = &model->nodes.at[queue[at]];
        for (uint32_t k = 0; k < node->n_inputs && count < MAX_SEARCH; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            onv_node_id producer = onv_model_value(model, node->inputs[k])->producer;
            if (!onv_is_node(producer) || seen[producer.index]) continue;
            seen[producer.index] = true;
            queue[count++] = producer.index;
        }
    }
    onv_heap_free(queue);
    onv_heap_free(seen);
    return status;
}

/* A constant that feeds the node directly, for the message. */
static const char *constant_of(const onv_model *model, onv_node_id id)
{
    const onv_node *node = onv_model_node(model, id);
    for (uint32_t k = node->n_inputs; k-- > 0;) {
        if (!onv_is_value(node->inputs[k])) continue;
        const onv_value *value = onv_model_value(model, node->inputs[k]);
        if (onv_value_is_weight(value)) return value->name;
    }
    return NULL;
}

static onv_status explain(onv_driver *driver, const onv_error *cause)
{
    const char *constant = constant_of(driver->model, driver->failed_node);
    onv_status status = onv_fail(driver->err, ONV_ERR_USAGE,
                                 "the export fixed the batch to %lld and it cannot be changed: "
                                 "%.300s%s%.100s%s; export with " REMEDY,
                                 (long long)driver->rebatch.old, cause->message,
                                 constant != NULL ? " (constant '" : "",
                                 constant != NULL ? constant : "", constant != NULL ? "')" : "");
    onv_error_at(driver->err, cause->node, cause->op_type);
    return status;
}

/* Gives the first dim of every input that had the old batch the new one: the symbol while constants
 * are looked for, the number afterwards. */
static onv_status set_batch(onv_driver *driver, onv_dim from, onv_dim to)
{
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        onv_type *type = &onv_model_value(driver->model, graph->inputs[i])->type;
        if (!onv_type_has_rank(type) || type->rank == 0 || !onv_dim_same(type->dims[0], from))
            continue;
        onv_dim *dims =
            onv_arena_copy(&driver->model->arena, type->dims, (size_t)type->rank * sizeof *dims);
        if (dims == NULL) return onv_fail_memory(driver->err);
        dims[0] = to;
        type->dims = dims;
    }
    return ONV_OK;
}

static onv_status bind_rewrites(onv_driver *driver, onv_dim batch)
{
    onv_rebatch *rebatch = &driver->rebatch;
    for (size_t i = 0; i < rebatch->rewrites.count; i++) {
        onv_rewrite *rewrite = &rebatch->rewrites.at[i];
        rewrite->bound = copy_known(driver->model, rewrite->known);
        if (rewrite->bound == NULL) return onv_fail_memory(driver->err);
        for (uint32_t e = 0; e < rewrite->bound->count; e++) {
            onv_dim *entry = &rewrite->bound->elems[e].i;
            *entry = onv_dim_substitute(&driver->model->dims, *entry, rebatch->symbol, batch);
        }
    }
    return ONV_OK;
}

/* --- Proof ------------------------------------------------------------------------------------- */

static bool carries_batch(const onv_driver *driver, const onv_type *type)
{
    for (int axis = 0; onv_type_has_rank(type) && axis < type->rank; axis++)
        if (onv_dim_contains(&driver->model->dims, type->dims[axis], driver->rebatch.symbol))
            return true;
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
    int64_t at[4], old = driver->rebatch.old;
    for (int64_t i = 0; i < 4; i++) {
        int64_t batch;
        if (__builtin_mul_overflow(old, i + 1, &batch)) return true;
        onv_dim value = onv_dim_substitute(&driver->model->dims, d, driver->rebatch.symbol,
                                           onv_dim_const(batch));
        if (!onv_dim_is_const(value)) return true; /* other symbols: not told */
        at[i] = value.raw;
    }
    int64_t step;
    return !__builtin_sub_overflow(at[1], at[0], &step) && step != 0 && at[2] - at[1] == step &&
           at[3] - at[2] == step;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* Operators that take the batch away by what they are for. */
static bool may_drop_batch(const char *op_type)
{
    static const char *const names[] = {"ArgMax", "ArgMin", "MatMul",  "Gemm", "Einsum", "Shape",
                                        "Size",   "Gather", "NonZero", "Det",  "Conv"};
    if (strncmp(op_type, "Reduce", strlen("Reduce")) == 0 || strstr(op_type, "Loss") != NULL)
        return true;
    return is_one_of(op_type, names, sizeof names / sizeof names[0]);
}

/* Operators whose results have the sizes of their data or of a constant. */
static bool keeps_sizes(const char *op_type)
{
    static const char *const names[] = {"Resize", "Upsample", "Pad", "Expand", "Tile", "Reshape"};
    return is_one_of(op_type, names, sizeof names / sizeof names[0]);
}

/* Indices 0, 1, ... as many as the old batch: one for each sample. */
static bool counts_samples(const onv_driver *driver, const onv_known *known)
{
    if (known == NULL || !onv_dtype_is_integer((onv_dtype)known->dtype)) return false;
    if (driver->rebatch.old < 2 || known->count != (uint64_t)driver->rebatch.old) return false;
    bool seen_all = true;
    for (uint32_t sample = 0; sample < known->count && seen_all; sample++) {
        seen_all = false;
        for (uint32_t i = 0; i < known->count && !seen_all; i++)
            seen_all = onv_dim_is(known->elems[i].i, sample);
    }
    return seen_all;
}

/* A Gather of every sample, in any order, along the axis of the batch. */
static bool gathers_samples(onv_driver *driver, const onv_node *node)
{
    if (strcmp(node->op_type, "Gather") != 0 || node->n_inputs < 2 ||
        !onv_is_value(node->inputs[0]) || !onv_is_value(node->inputs[1]))
        return false;
    const onv_value *data = onv_model_value(driver->model, node->inputs[0]);
    onv_value *indices = onv_model_value(driver->model, node->inputs[1]);
    const onv_known *known = indices->known;
    if (known == NULL && onv_value_is_weight(indices) &&
        onv_driver_constant(driver, indices, &known) != ONV_OK)
        return false;
    const onv_attr *attr = onv_node_attr(node, "axis");
    int64_t axis = attr != NULL ? attr->i : 0;
    if (!onv_type_has_rank(&data->type)) return false;
    if (axis < 0) axis += data->type.rank;
    return axis >= 0 && axis < data->type.rank &&
           onv_dim_contains(&driver->model->dims, data->type.dims[axis], driver->rebatch.symbol) &&
           counts_samples(driver, known);
}

/* A Concat or Pad of samples, along their axis, by as many as the old batch had. */
static bool appends_old_batch(const onv_driver *driver, onv_dim d)
{
    onv_dim rest =
        onv_dim_substitute(&driver->model->dims, d, driver->rebatch.symbol, onv_dim_const(0));
    return driver->rebatch.old > 1 && onv_dim_is_const(rest) && rest.raw > 0 &&
           rest.raw % driver->rebatch.old == 0;
}

typedef struct doubt {
    onv_node_id node; /* ONV_NO_NODE: none */
    const char *why;
} doubt;

static const char *doubt_size(const onv_driver *driver, const onv_node *node, onv_dim d)
{
    if (!onv_dim_contains(&driver->model->dims, d, driver->rebatch.symbol)) return NULL;
    if (!is_even(driver, d)) return "a size of its result stops growing with the batch";
    bool appends = strcmp(node->op_type, "Concat") == 0 || strcmp(node->op_type, "Pad") == 0;
    if (appends && appends_old_batch(driver, d))
        return "it appends as many samples as the old batch had";
    return NULL;
}

static const char *doubt_node(onv_driver *driver, const onv_node *node)
{
    bool reads = false, gives = false, old = false, host = true;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        if (onv_is_value(node->inputs[k]))
            reads |= carries_batch(driver, &onv_model_value(driver->model, node->inputs[k])->type);
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        if (!onv_is_value(node->outputs[k])) continue;
        const onv_value *value = onv_model_value(driver->model, node->outputs[k]);
        gives |= carries_batch(driver, &value->type);
        old |= holds_old_batch(driver, &value->type);
        host &= value->known != NULL;
        for (int axis = 0; onv_type_has_rank(&value->type) && axis < value->type.rank; axis++) {
            const char *why = doubt_size(driver, node, value->type.dims[axis]);
            if (why != NULL) return why;
        }
    }
    if (!reads || gives || host) return NULL;
    if (gathers_samples(driver, node)) return "it picks the samples of the old batch";
    if (keeps_sizes(node->op_type)) return "a constant gives the size that grows with the batch";
    return old && !may_drop_batch(node->op_type) ? "its result keeps the old batch" : NULL;
}

/* A result that has the old batch and not the new one; or has it first, where a Reshape could be read in
 * two ways. */
static bool is_result_of_old_batch(const onv_driver *driver, const onv_type *type)
{
    if (driver->rebatch.old < 2 || !onv_type_has_rank(type) || type->rank == 0) return false;
    if (carries_batch(driver, type))
        return driver->rebatch.ambiguous && onv_dim_is(type->dims[0], driver->rebatch.old);
    return holds_old_batch(driver, type);
}

/* After a run with the symbol: every constant that carries the old batch was found. What depends on
 * the batch carries the symbol from the inputs on; where it ends in a result that has the old batch as
 * a size, or stops growing, a constant held it there. */
static doubt find_doubt(onv_driver *driver)
{
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const char *why = doubt_node(driver, onv_model_node(driver->model, graph->nodes[i]));
        if (why != NULL) return (doubt){graph->nodes[i], why};
    }
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        const onv_value *value = onv_model_value(driver->model, graph->outputs[i]);
        if (is_result_of_old_batch(driver, &value->type))
            return (doubt){value->producer, "a result of the network keeps the old batch"};
    }
    return (doubt){ONV_NO_NODE, NULL};
}

/* As if inference had failed there, so that a constant upstream is looked for. */
static onv_status disbelieve(onv_driver *driver, doubt found)
{
    if (!onv_is_node(found.node))
        return onv_fail(driver->err, ONV_ERR_USAGE,
                        "the export fixed the batch to %lld and it cannot be changed: a result of "
                        "the network is a constant of that batch; export with " REMEDY,
                        (long long)driver->rebatch.old);
    const onv_node *node = onv_model_node(driver->model, found.node);
    driver->failed_node = found.node;
    onv_status status = onv_fail(driver->err, ONV_ERR_MODEL, "%s", found.why);
    onv_error_at(driver->err, node->name, node->op_type);
    return status;
}

/* One run with the symbol, which finds Reshapes, and one with the number. */
static onv_status attempt(onv_driver *driver)
{
    const onv_graph_id main_graph = {0};
    onv_dim batch = onv_dim_const(driver->options->batch), symbol = driver->rebatch.symbol;
    size_t n_diags = driver->model->diags.count;
    driver->runs = 0;
    driver->failed_node = ONV_NO_NODE;
    driver->rebatch.active = true;
    onv_status status = onv_driver_run_graph(driver, main_graph);
    onv_arena_reset(&driver->scratch);
    driver->rebatch.active = false;
    driver->model->diags.count = n_diags; /* the run with the number says them again */
    driver->unknown_ops.count = 0;
    if (status == ONV_OK) {
        doubt found = find_doubt(driver);
        ONV_TRY(set_batch(driver, symbol, batch));
        ONV_TRY(bind_rewrites(driver, batch));
        status = onv_driver_run_graph(driver, main_graph);
        onv_arena_reset(&driver->scratch);
        if (status == ONV_OK && found.why == NULL) return ONV_OK;
        if (status == ONV_OK) status = disbelieve(driver, found);
        driver->model->diags.count = n_diags;
        driver->unknown_ops.count = 0;
        ONV_TRY(set_batch(driver, batch, symbol));
    }
    return status;
}

/* How far a batch was filled up is a matter of the network's code, not of a shape upstream. */
static bool is_pad(const onv_driver *driver)
{
    return strcmp(onv_model_node(driver->model, driver->failed_node)->op_type, "Pad") == 0;
}

/* Attempts until nothing is left to change. */
static onv_status attempts(onv_driver *driver, onv_error *cause)
{
    onv_status status;
    bool changed;
    driver->rebatch.ambiguous = false;
    do {
        *cause = (onv_error){0};
        changed = false;
        driver->err = cause;
        status = attempt(driver);
        if (status == ONV_ERR_MODEL && onv_is_node(driver->failed_node) && !is_pad(driver)) {
            onv_status search = change_upstream(driver, &changed);
            if (search != ONV_OK) status = search;
        }
    } while (changed);
    return status;
}

/* Reshapes that can be read in two ways are read the other way, where the first leads nowhere. */
static onv_status attempt_both(onv_driver *driver, onv_error *cause)
{
    onv_rebatch *rebatch = &driver->rebatch;
    onv_status status = attempts(driver, cause);
    if (status != ONV_ERR_MODEL || !rebatch->ambiguous) return status;
    onv_error other = {0};
    onv_node_id failed = driver->failed_node;
    onv_rebatch_cleanup(rebatch);
    rebatch->take_later = true;
    onv_status second = attempts(driver, &other);
    if (second == ONV_ERR_MODEL) {
        driver->failed_node = failed;
        return status;
    }
    *cause = other;
    return second;
}

onv_status onv_rebatch_run(onv_driver *driver)
{
    onv_error *report = driver->err;
    onv_error cause;
    driver->branches_must_fit = true;
    onv_status status = attempt_both(driver, &cause);
    driver->branches_must_fit = false;
    if (status == ONV_ERR_MODEL && driver->model->graphs.count > 1) {
        /* Nothing is left to change: a branch may be impossible with that batch. */
        onv_error other = {0};
        onv_node_id failed = driver->failed_node;
        driver->err = &other;
        onv_status second = attempt(driver);
        if (second != ONV_ERR_MODEL) {
            status = second;
            cause = other;
        } else {
            driver->failed_node = failed;
        }
    }
    driver->err = report;
    if (status == ONV_ERR_MODEL && onv_is_node(driver->failed_node)) return explain(driver, &cause);
    if (status != ONV_OK) *report = cause;
    return status;
}

void onv_rebatch_cleanup(onv_rebatch *rebatch)
{
    onv_vec_cleanup(&rebatch->rewrites);
    onv_heap_free(rebatch->first);
    rebatch->first = NULL;
}
