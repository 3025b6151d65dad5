#include "live/storage.h"

#include <string.h>

#include "base/checked.h"
#include "ops/op.h"

/* What is computed from shapes stays small; a larger integer tensor is data. */
enum { MAX_HOST_ELEMS = 64 };

typedef struct sharing {
    onv_model *model;
    const onv_live *live;
    const onv_storage_rules *rules;
    onv_storages *out;
    bool *is_host;    /* by value */
    bool *is_strided; /* by value: a view that is not contiguous */
    onv_error *err;
} sharing;

/* --- The host ---------------------------------------------------------------------------------- */

/* Shape arithmetic runs on the host: what Shape and Size give, and what is computed from nothing
 * else than that and constants. */
static bool runs_on_host(const onv_model *model, const onv_node *node, const bool *is_host)
{
    if (node->op == NULL) return false;
    if ((node->op->flags & ONV_OP_HOST) != 0) return true;
    bool any = false;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        if (is_host[node->inputs[k].index])
            any = true;
        else if (!onv_value_is_weight(onv_model_value(model, node->inputs[k])))
            return false;
    }
    return any;
}

static bool is_small(onv_model *model, const onv_value *value)
{
    onv_dim elems = onv_type_elems(&model->dims, &value->type);
    return onv_dim_is_const(elems) && elems.raw <= MAX_HOST_ELEMS;
}

onv_status onv_mark_host_values(onv_model *model, const onv_live *live, bool **is_host,
                                onv_error *err)
{
    *is_host = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count);
    if (*is_host == NULL) return onv_fail_memory(err);
    for (uint32_t s = 0; s < live->n_steps; s++) {
        const onv_node *node = onv_model_node(model, live->steps[s]);
        if (!runs_on_host(model, node, *is_host)) continue;
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            if (!onv_is_value(node->outputs[k])) continue;
            const onv_value *value = onv_model_value(model, node->outputs[k]);
            (*is_host)[node->outputs[k].index] = is_small(model, value) && !value->is_output;
        }
    }
    return ONV_OK;
}

/* --- Views ------------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* PyTorch makes these without copying; the result is mostly not contiguous. */
static bool is_strided_view(const onv_node *node)
{
    static const char *const names[] = {"Transpose", "Slice", "Split", "Expand"};
    return node->domain[0] == '\0' &&
           is_one_of(node->op_type, names, sizeof names / sizeof names[0]);
}

/* The input whose memory the outputs of a node are a view of; -1: none. */
static int view_source(const sharing *s, const onv_node *node)
{
    if (node->op == NULL) return -1;
    if (s->rules->views && node->traits.view_of > 0) {
        uint32_t k = node->traits.view_of - 1u;
        if (k >= node->n_inputs || !onv_is_value(node->inputs[k])) return -1;
        if (s->is_strided[node->inputs[k].index] && strcmp(node->op_type, "Reshape") == 0)
            return -1; /* copies */
        return (int)k;
    }
    return s->rules->strided_views && is_strided_view(node) ? 0 : -1;
}

/* A view is contiguous as its source is; PyTorch's own views are not, except where nothing
 * moves. */
static bool stays_contiguous(const sharing *s, const onv_node *node, const onv_value *out, int k)
{
    const onv_value *in = onv_model_value(s->model, node->inputs[k]);
    if (s->is_strided[node->inputs[k].index]) return false;
    if (!is_strided_view(node)) return true;
    onv_dim before = onv_type_elems(&s->model->dims, &in->type);
    onv_dim after = onv_type_elems(&s->model->dims, &out->type);
    /* A slice or a chunk along the first axis that is not 1 stays dense, as does an Expand that
     * expands nothing. */
    if (strcmp(node->op_type, "Transpose") == 0) return false;
    if (onv_dim_same(before, after)) return true;
    if (strcmp(node->op_type, "Expand") == 0) return false;
    for (int axis = 0; axis < in->type.rank && axis < out->type.rank; axis++) {
        if (onv_dim_same(in->type.dims[axis], out->type.dims[axis])) {
            if (onv_dim_is(in->type.dims[axis], 1)) continue;
            return false;
        }
        for (int rest = axis + 1; rest < in->type.rank; rest++)
            if (!onv_dim_same(in->type.dims[rest], out->type.dims[rest])) return false;
        return true;
    }
    return true;
}

/* --- In place ---------------------------------------------------------------------------------- */

/* The storage that an elementwise node may overwrite: an input of as many bytes whose last use is
 * this step, and that is neither the caller's nor a result. */
static uint32_t overwritten(const sharing *s, const onv_node *node, const onv_interval *row)
{
    if (!s->rules->inplace || node->op == NULL) return ONV_NO_STORAGE;
    for (uint32_t k = 0; k < node->n_inputs && k < 32; k++) {
        if ((node->traits.inplace & ONV_BIT(k)) == 0 || !onv_is_value(node->inputs[k])) continue;
        uint32_t source = s->live->of_value[node->inputs[k].index];
        if (source == UINT32_MAX || s->out->of_row[source] == ONV_NO_STORAGE) continue;
        const onv_interval *storage = &s->out->at[s->out->of_row[source]];
        bool is_temporary = storage->kind == ONV_BUFFER_ACTIVATION;
        if (is_temporary && storage->last == row->first && storage->bytes == row->bytes)
            return s->out->of_row[source];
    }
    return ONV_NO_STORAGE;
}

/* --- Storages ---------------------------------------------------------------------------------- */

static void join(sharing *s, uint32_t row_index, uint32_t storage)
{
    const onv_interval *row = &s->live->intervals[row_index];
    onv_interval *to = &s->out->at[storage];
    s->out->of_row[row_index] = storage;
    if (row->last > to->last) to->last = row->last;
    if (row->kind == ONV_BUFFER_OUTPUT) to->kind = ONV_BUFFER_OUTPUT;
}

static void add_storage(sharing *s, uint32_t row_index)
{
    onv_interval storage = s->live->intervals[row_index];
    if (s->rules->hold_inputs && storage.kind == ONV_BUFFER_INPUT)
        storage.last = s->live->n_steps - 1;
    s->out->of_row[row_index] = s->out->count;
    s->out->at[s->out->count++] = storage;
}

static void place(sharing *s, uint32_t row_index)
{
    const onv_interval *row = &s->live->intervals[row_index];
    const onv_value *value = onv_model_value(s->model, row->value);
    s->out->of_row[row_index] = ONV_NO_STORAGE;
    if (s->rules->skip_host && s->is_host[row->value.index]) return;
    if (!onv_is_node(value->producer)) {
        add_storage(s, row_index);
        return;
    }
    const onv_node *node = onv_model_node(s->model, value->producer);
    int view = view_source(s, node);
    if (view >= 0 && onv_is_value(node->inputs[view])) {
        s->is_strided[row->value.index] = !stays_contiguous(s, node, value, view);
        uint32_t source = s->live->of_value[node->inputs[view].index];
        if (source == UINT32_MAX) return; /* a view of a weight */
        if (s->out->of_row[source] != ONV_NO_STORAGE) {
            join(s, row_index, s->out->of_row[source]);
            return;
        }
    }
    uint32_t target = value->output_index == 0 ? overwritten(s, node, row) : ONV_NO_STORAGE;
    if (target != ONV_NO_STORAGE)
        join(s, row_index, target);
    else
        add_storage(s, row_index);
}

/* Copies that a batched product makes of operands which are not contiguous. */
static void add_hidden_copies(sharing *s)
{
    for (uint32_t step = 0; step < s->live->n_steps; step++) {
        const onv_node *node = onv_model_node(s->model, s->live->steps[step]);
        if (strcmp(node->op_type, "MatMul") != 0 || node->n_inputs < 2) continue;
        for (uint32_t k = 0; k < 2; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            uint32_t row = s->live->of_value[node->inputs[k].index];
            if (row == UINT32_MAX || !s->is_strided[node->inputs[k].index]) continue;
            onv_interval copy = s->live->intervals[row];
            if (onv_model_value(s->model, node->inputs[k])->type.rank < 3) continue;
            copy.first = copy.last = step;
            copy.kind = ONV_BUFFER_WORKSPACE;
            copy.value = ONV_NO_VALUE;
            s->out->at[s->out->count++] = copy;
        }
    }
}

onv_status onv_intervals_peak(onv_arena *arena, const onv_interval *rows, size_t count,
                              uint32_t n_steps, uint64_t *bytes, uint32_t *step, onv_error *err)
{
    uint64_t *born = ONV_ARENA_ARRAY(arena, uint64_t, (size_t)n_steps + 1);
    uint64_t *dead = ONV_ARENA_ARRAY(arena, uint64_t, (size_t)n_steps + 1);
    if (born == NULL || dead == NULL) return onv_fail_memory(err);
    uint64_t total = 0, now = 0;
    for (size_t i = 0; i < count; i++) {
        if (!onv_u64_add(total, rows[i].bytes, &total))
            return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of all values do not fit 64 bits");
        born[rows[i].first] += rows[i].bytes;
        dead[rows[i].last + 1] += rows[i].bytes;
    }
    *bytes = 0;
    *step = 0;
    for (uint32_t s = 0; s < n_steps; s++) {
        now += born[s] - dead[s];
        if (now <= *bytes) continue;
        *bytes = now;
        *step = s;
    }
    return ONV_OK;
}

onv_status onv_storages_compute(onv_model *model, const onv_live *live,
                                const onv_storage_rules *rules, onv_storages *storages,
                                onv_error *err)
{
    *storages = (onv_storages){0};
    sharing s = {.model = model, .live = live, .rules = rules, .out = storages, .err = err};
    /* Hidden copies: at most two per step. */
    size_t most = (size_t)live->n_intervals + 2 * (size_t)live->n_steps;
    storages->at = ONV_ARENA_ARRAY(&model->arena, onv_interval, most);
    storages->of_row = ONV_ARENA_ARRAY(&model->arena, uint32_t, live->n_intervals);
    s.is_strided = ONV_ARENA_ARRAY(&model->arena, bool, model->values.count);
    if (storages->at == NULL || storages->of_row == NULL || s.is_strided == NULL)
        return onv_fail_memory(err);
    ONV_TRY(onv_mark_host_values(model, live, &s.is_host, err));
    for (uint32_t i = 0; i < live->n_intervals; i++) place(&s, i);
    if (rules->strided_views) add_hidden_copies(&s);
    return onv_intervals_peak(&model->arena, storages->at, storages->count, live->n_steps,
                              &storages->peak_bytes, &storages->peak_step, err);
}
