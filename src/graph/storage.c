#include "graph/storage.h"

#include <string.h>

#include "base/checked.h"
#include "graph/strides.h"
#include "ops/op.h"

/* What is computed from shapes stays small; a larger integer tensor is data. */
enum { MAX_HOST_ELEMS = 64 };

typedef struct sharing {
    onv_model *model;
    const onv_live *live;
    const onv_storage_rules *rules;
    onv_storages *out;
    bool *is_host;        /* by value */
    onv_layout **layouts; /* by value; NULL: dense */
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

/* PyTorch makes these without copying; the result is mostly not dense. */
static bool is_strided_view(const onv_node *node)
{
    static const char *const names[] = {"Transpose", "Slice", "Split", "Expand"};
    return node->domain[0] == '\0' &&
           is_one_of(node->op_type, names, sizeof names / sizeof names[0]);
}

/* A layout with the dims of a type; NULL where they are no numbers or 0, or memory is short. */
static onv_layout *new_layout(const sharing *s, const onv_type *type)
{
    onv_arena *arena = &s->model->arena;
    onv_layout *layout = ONV_ARENA_ARRAY(arena, onv_layout, 1);
    if (type->kind != ONV_TYPE_TENSOR || type->rank < 0) return NULL;
    if (layout == NULL || !onv_layout_new(arena, type->rank, layout)) return NULL;
    for (int i = 0; i < type->rank; i++) {
        onv_dim dim = onv_dim_substitute_bounds(&s->model->dims, type->dims[i]);
        if (!onv_dim_is_const(dim) || dim.raw <= 0) return NULL;
        layout->dims[i] = dim.raw;
    }
    onv_layout_set_dense(layout);
    return layout;
}

static onv_layout *layout_of(const sharing *s, onv_value_id id)
{
    onv_layout *known = s->layouts[id.index];
    return known != NULL ? known : new_layout(s, &onv_model_value(s->model, id)->type);
}

static void transpose(const onv_node *node, const onv_layout *from, onv_layout *to)
{
    const onv_attr *perm = onv_node_attr(node, "perm");
    for (int i = 0; i < to->rank && to->rank == from->rank; i++) {
        int64_t axis = from->rank - 1 - i;
        if (perm != NULL && perm->kind == ONV_ATTR_INTS && (int64_t)perm->count == from->rank)
            axis = perm->ints[i];
        if (axis >= 0 && axis < from->rank) to->strides[i] = from->strides[axis];
    }
}

/* Element i of an input's contents; false where it is not known. */
static bool known_int(const onv_model *model, const onv_node *node, uint32_t k, uint32_t i,
                      int64_t *value)
{
    if (k >= node->n_inputs || !onv_is_value(node->inputs[k])) return false;
    const onv_known *known = onv_model_value(model, node->inputs[k])->known;
    if (known == NULL || i >= known->count || !onv_dim_is_const(known->elems[i].i)) return false;
    *value = known->elems[i].i.raw;
    return true;
}

/* False where the steps are not known or run backwards: PyTorch copies then. */
static bool slice(const onv_model *model, const onv_node *node, const onv_layout *from,
                  onv_layout *to)
{
    memcpy(to->strides, from->strides, (size_t)to->rank * sizeof *to->strides);
    if (node->n_inputs < 5 || !onv_is_value(node->inputs[4])) return true;
    const onv_known *steps = onv_model_value(model, node->inputs[4])->known;
    if (steps == NULL) return false;
    for (uint32_t i = 0; i < steps->count; i++) {
        int64_t step, axis = i;
        if (!known_int(model, node, 4, i, &step) || step < 1) return false;
        if (onv_is_value(node->inputs[3]) && !known_int(model, node, 3, i, &axis)) return false;
        if (axis < 0) axis += from->rank;
        if (axis < 0 || axis >= from->rank) return false;
        /* Where one element is left the step leads nowhere. */
        if (to->dims[axis] > 1) to->strides[axis] *= step;
    }
    return true;
}

/* How an output would lie in the memory of input k; false where it cannot. */
static bool lay_out(const sharing *s, const onv_node *node, const onv_layout *from, onv_layout *to)
{
    if (!is_strided_view(node)) return onv_layout_view(from, to);
    if (strcmp(node->op_type, "Expand") == 0)
        onv_layout_broadcast(from, to);
    else if (to->rank != from->rank)
        return false;
    else if (strcmp(node->op_type, "Transpose") == 0)
        transpose(node, from, to);
    else
        return slice(s->model, node, from, to); /* Split has no steps */
    return true;
}

/* The input whose memory an output of a node is a view of; -1: none. */
static int view_source(const sharing *s, const onv_node *node, onv_value_id out)
{
    bool strided = s->rules->strided_views && is_strided_view(node);
    uint32_t k = strided ? 0 : node->traits.view_of - 1u;
    if (node->op == NULL || (!strided && (!s->rules->views || node->traits.view_of == 0)))
        return -1;
    if (k >= node->n_inputs || !onv_is_value(node->inputs[k])) return -1;
    if (!s->rules->strided_views) return (int)k;
    const onv_layout *from = layout_of(s, node->inputs[k]);
    onv_layout *to = new_layout(s, &onv_model_value(s->model, out)->type);
    if (from == NULL || to == NULL) return strided ? -1 : (int)k;
    if (!lay_out(s, node, from, to)) return -1;
    if (!onv_layout_is_dense(to)) s->layouts[out.index] = to;
    return (int)k;
}

/* --- In place ---------------------------------------------------------------------------------- */

/* The storage that an elementwise node may overwrite: an input of as many bytes whose last use is
 * this step, and that is neither the caller's nor a result. */
static uint32_t overwritten(const sharing *s, const onv_node *node, const onv_buffer *row)
{
    if (!s->rules->inplace || node->op == NULL) return ONV_NO_STORAGE;
    for (uint32_t k = 0; k < node->n_inputs && k < 32; k++) {
        if ((node->traits.inplace & ONV_BIT(k)) == 0 || !onv_is_value(node->inputs[k])) continue;
        uint32_t source = s->live->of_value[node->inputs[k].index];
        if (source == UINT32_MAX || s->out->of_row[source] == ONV_NO_STORAGE) continue;
        const onv_buffer *storage = &s->out->at[s->out->of_row[source]];
        bool is_temporary = storage->kind == ONV_BUFFER_ACTIVATION;
        if (is_temporary && storage->last == row->first && storage->bytes == row->bytes)
            return s->out->of_row[source];
    }
    return ONV_NO_STORAGE;
}

/* --- Storages ---------------------------------------------------------------------------------- */

static void join(sharing *s, uint32_t row_index, uint32_t storage)
{
    const onv_buffer *row = &s->live->intervals[row_index];
    onv_buffer *to = &s->out->at[storage];
    s->out->of_row[row_index] = storage;
    if (row->last > to->last) to->last = row->last;
    if (row->kind == ONV_BUFFER_OUTPUT) to->kind = ONV_BUFFER_OUTPUT;
}

static void add_storage(sharing *s, uint32_t row_index)
{
    onv_buffer storage = s->live->intervals[row_index];
    if (s->rules->hold_inputs && storage.kind == ONV_BUFFER_INPUT)
        storage.last = s->live->n_steps - 1;
    s->out->of_row[row_index] = s->out->count;
    s->out->at[s->out->count++] = storage;
}

static void place(sharing *s, uint32_t row_index)
{
    const onv_buffer *row = &s->live->intervals[row_index];
    const onv_value *value = onv_model_value(s->model, row->value);
    s->out->of_row[row_index] = ONV_NO_STORAGE;
    if (s->rules->skip_host && s->is_host[row->value.index]) return;
    if (!onv_is_node(value->producer)) {
        add_storage(s, row_index);
        return;
    }
    const onv_node *node = onv_model_node(s->model, value->producer);
    int view = view_source(s, node, row->value);
    if (view >= 0) {
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

/* What a batched product copies of operand k before it starts: it wants one axis of matrices, and
 * in each of them rows or columns without gaps. 0: nothing. */
static uint64_t copied_elems(const sharing *s, const onv_node *node, uint32_t k)
{
    const onv_layout *from = layout_of(s, node->inputs[k]);
    onv_layout *spread = new_layout(s, &onv_model_value(s->model, node->outputs[0])->type);
    int64_t three[2][3] = {{1, 0, 0}, {0, 0, 0}};
    onv_layout batch = {.rank = 3, .dims = three[0], .strides = three[1]};
    if (from == NULL || spread == NULL || from->rank < 2 || spread->rank < 3) return 0;
    for (int i = 0; i < 2; i++)
        spread->dims[spread->rank - 1 - i] = batch.dims[2 - i] = from->dims[from->rank - 1 - i];
    for (int i = 0; i < spread->rank - 2; i++) batch.dims[0] *= spread->dims[i];
    onv_layout_broadcast(from, spread);
    bool one_axis = onv_layout_view(spread, &batch);
    bool rows = batch.dims[2] == 1 || batch.strides[2] == 1;
    bool columns = batch.dims[1] == 1 || batch.strides[1] == 1;
    if (one_axis && (rows || columns)) return 0;
    uint64_t elems = 1;
    for (int i = 0; i < 3; i++)
        if (!onv_u64_mul(elems, (uint64_t)batch.dims[i], &elems)) return UINT64_MAX;
    return elems;
}

static onv_status add_hidden_copies(sharing *s)
{
    for (uint32_t step = 0; step < s->live->n_steps; step++) {
        const onv_node *node = onv_model_node(s->model, s->live->steps[step]);
        if (strcmp(node->op_type, "MatMul") != 0 || node->domain[0] != '\0') continue;
        if (node->n_inputs < 2 || !onv_is_value(node->outputs[0])) continue;
        for (uint32_t k = 0; k < 2; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            uint64_t elems = copied_elems(s, node, k);
            if (elems == 0) continue;
            const onv_value *operand = onv_model_value(s->model, node->inputs[k]);
            onv_buffer copy = {.first = step,
                               .last = step,
                               .becomes = ONV_NO_BUFFER,
                               .within = ONV_NO_BUFFER,
                               .kind = ONV_BUFFER_WORKSPACE,
                               .sized = true,
                               .bound = operand->bound_used,
                               .value = ONV_NO_VALUE,
                               .label = operand->name};
            if (!onv_dtype_bytes((onv_dtype)operand->type.dtype, elems, &copy.bytes))
                return onv_fail(s->err, ONV_ERR_OVERFLOW,
                                "the bytes of a copy of '%s' do not fit 64 bits", operand->name);
            s->out->at[s->out->count++] = copy;
        }
    }
    return ONV_OK;
}

onv_status onv_intervals_peak(onv_arena *arena, const onv_buffer *rows, size_t count,
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
    storages->at = ONV_ARENA_ARRAY(&model->arena, onv_buffer, most);
    storages->of_row = ONV_ARENA_ARRAY(&model->arena, uint32_t, live->n_intervals);
    s.layouts = ONV_ARENA_ARRAY(&model->arena, onv_layout *, model->values.count);
    if (storages->at == NULL || storages->of_row == NULL || s.layouts == NULL)
        return onv_fail_memory(err);
    ONV_TRY(onv_mark_host_values(model, live, &s.is_host, err));
    for (uint32_t i = 0; i < live->n_intervals; i++) place(&s, i);
    if (rules->strided_views) ONV_TRY(add_hidden_copies(&s));
    return onv_intervals_peak(&model->arena, storages->at, storages->count, live->n_steps,
                              &storages->peak_bytes, &storages->peak_step, err);
}
