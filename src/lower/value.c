/* Tensors of values: what the file holds, what the forward pass makes of it, and what rules ask about
 * their node.
 *
 * Takes notes and what reads of weights stand for. Gives the tensor of each value that an operation has made, or makes it. A value
 * that is known keeps its tensor until an operation overwrites it. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "load/load.h"
#include "lower/lowering.h"
#include "ops/op.h"

/* --- Values ------------------------------------------------------------------------------------ */

static bool is_tensor(const onv_value *value)
{
    return value->type.kind == ONV_TYPE_TENSOR || value->type.kind == ONV_TYPE_SPARSE_TENSOR;
}

/* Of a sequence or an optional: a list holds its tensors. Maps are on the host. */
static uint64_t other_bytes(const onv_lowering *l, onv_value_id id)
{
    uint32_t row = l->live->of_value[id.index];
    uint64_t bytes = row != UINT32_MAX ? l->live->timeline.buffers.at[row].bytes : 0;
    return bytes <= INT64_MAX ? bytes : INT64_MAX;
}

bool onv_value_shape(onv_lowering *l, onv_value_id id, onv_shape *shape)
{
    if (l->emit.status != ONV_OK || !onv_is_value(id)) return false;
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (!is_tensor(value) && l->emit.options->inference) {
        *shape = (onv_shape){1, {(int64_t)other_bytes(l, id)}};
        return true;
    }
    if (value->type.kind == ONV_TYPE_SEQUENCE || value->type.kind == ONV_TYPE_MAP) {
        l->emit.status = onv_fail(l->emit.err, ONV_ERR_USAGE,
                                  "'%s' is not a tensor; cannot size training", value->name);
        return false;
    }
    bool known = onv_type_has_rank(&value->type);
    shape->rank = known ? (uint32_t)value->type.rank : 0;
    for (uint32_t i = 0; known && i < shape->rank; i++) {
        onv_dim dim = onv_dim_substitute_bounds(&l->emit.model->dims, value->type.dims[i]);
        known = onv_dim_is_const(dim) && dim.raw >= 0;
        shape->dims[i] = dim.raw;
    }
    if (!known && l->emit.options->inference && value->type.dtype == ONV_STRING) {
        *shape = (onv_shape){1, {0}}; /* text is on the host, however much of it there is */
        return true;
    }
    if (!known)
        l->emit.status = onv_fail(
            l->emit.err, ONV_ERR_USAGE,
            "the size of '%s' is not a number; bind its dims to see PyTorch's memory", value->name);
    return known;
}

/* Places by which the exporter writes a view, which has none; and factors of a size. */
static bool is_place(const onv_lowering *l, onv_value_id id)
{
    onv_node_id user = l->fusions->user[id.index];
    if (!onv_is_node(user) || l->emit.options->as_exported) return false;
    const onv_node *node = onv_model_node(l->emit.model, user);
    bool resizes = node->code == ONV_OP_Resize && node->inputs[0].index != id.index;
    return resizes || onv_node_is_aten(node, "as_strided");
}

/* Single numbers and small integers are arguments, not tensors on the device. */
static bool is_host_weight(onv_lowering *l, onv_value_id id)
{
    const onv_value *value = onv_model_value(l->emit.model, id);
    const onv_tensor *tensor = value->tensor;
    if (tensor == NULL || tensor->type.kind != ONV_TYPE_TENSOR || tensor->elems == 0) return true;
    if (is_place(l, id) || onv_weight_is_unit(l, id)) return true;
    if (!onv_dtype_is_float((onv_dtype)tensor->type.dtype))
        return tensor->elems <= 64 || onv_dtype_bits((onv_dtype)tensor->type.dtype) == 0;
    bool is_listed =
        l->signature.count > 0 && value->role == ONV_ROLE_PARAMETER; /* a factor that is trained */
    if (tensor->type.rank == 0) return !is_listed;
    if (tensor->elems > 1) return false;
    return !onv_value_may_train(l->emit.model, value) ||
           (onv_has_made_up_name(value->name) &&
            (!l->weights.has_notes || onv_weight_use_of(l, id) != ONV_WEIGHT_TRAINED));
}

uint32_t onv_lost_parameter(onv_emitter *e, uint8_t dtype, int64_t size, const char *module,
                            const char *name)
{
    uint32_t tensor = onv_tensor_new(e, dtype, 1, &size, NULL);
    if (tensor != ONV_NO_TENSOR)
        onv_emit_parameter(e, tensor, onv_parameter_name(e, module, name), NULL, true);
    return tensor;
}

/* The operation that gives what the export computed from a parameter. */
static uint32_t emit_source(onv_emitter *e, const char *name, uint32_t parameter, uint32_t out,
                            uint64_t indices)
{
    onv_emit_begin(e, name);
    onv_emit_in(e, parameter, ONV_GRAD_NEW);
    if (indices > 0)
        onv_emit_extra(e, indices, sizeof(int64_t), "indices");
    else
        onv_emit_save(e, parameter);
    onv_emit_out(e, out);
    onv_emit_end(e);
    return out;
}

/* Of equal vectors that the exporter keeps once, those of statistics are not trained. */
static onv_weight_use use_for(onv_lowering *l, onv_value_id id, const onv_weight_read *read)
{
    onv_weight_use use = onv_weight_use_of(l, id);
    bool is_statistic = read != NULL && strncmp(read->slot, "running_", 8) == 0;
    return use == ONV_WEIGHT_TRAINED && is_statistic && onv_weight_is_shared(l, id)
               ? ONV_WEIGHT_BUFFER
               : use;
}

/* Rows that all samples are given. */
static uint32_t look_up_for_all(onv_emitter *e, const onv_tensor *file, const onv_shape *whole,
                                uint32_t table)
{
    onv_shape one = *whole;
    one.dims[0] = 1;
    uint32_t rows = onv_tensor_new(e, (onv_dtype)file->type.dtype, one.rank, one.dims, NULL);
    uint64_t row = (uint64_t)(whole->dims[0] * whole->dims[whole->rank - 1]);
    rows = emit_source(e, "embedding", table, rows, file->elems / row);
    return onv_emit_expand(e, rows, whole->rank, whole->dims);
}

/* What the forward pass makes of the parameter `tensor`: what the file has. */
static uint32_t compute_weight(onv_emitter *e, onv_weight_use use, const onv_weight_read *read,
                               const onv_tensor *file, const onv_shape *whole, uint32_t tensor)
{
    const onv_eager_tensor from = onv_tensor_at(e, tensor);
    if (use == ONV_WEIGHT_EXPANDED) {
        uint32_t spread = onv_emit_expand(e, tensor, whole->rank, whole->dims);
        const onv_value *value = &e->model->values.at[read->value];
        bool is_view = onv_is_call_of(value->name, "expand");
        return is_view ? spread : onv_emit_clone(e, spread);
    }
    if (use == ONV_WEIGHT_LOOKED_UP_FOR_ALL) return look_up_for_all(e, file, whole, tensor);
    uint32_t out = onv_tensor_new(e, (onv_dtype)file->type.dtype, whole->rank, whole->dims, NULL);
    uint64_t row = whole->rank > 0 ? (uint64_t)whole->dims[whole->rank - 1] : 1;
    switch (use) {
    case ONV_WEIGHT_BIASES:
        if (strstr(read->parameter, "table") != NULL)
            return emit_source(e, "index", tensor, out, 0);
        return emit_source(e, "embedding", tensor, out, file->elems / (uint64_t)from.dims[1]);
    case ONV_WEIGHT_LOOKED_UP: return emit_source(e, "embedding", tensor, out, file->elems / row);
    default: return emit_source(e, "parametrize", tensor, out, 0);
    }
}

/* Only before the operation that reads it: what is not there from the start is made by one of its own. */
static uint32_t weight_tensor(onv_lowering *l, onv_value_id id, const onv_weight_read *read)
{
    const onv_value *value = onv_model_value(l->emit.model, id);
    onv_shape shape, whole;
    if (is_host_weight(l, id) || !onv_value_shape(l, id, &whole)) return ONV_NO_TENSOR;
    onv_weight_use use = use_for(l, id, read);
    const char *layer = use == ONV_WEIGHT_TRAINED ? onv_weight_layer(&l->emit, id, read) : NULL;
    uint32_t again;
    if (layer != NULL && onv_ptr_map_get(&l->weights.layers, layer, &again) &&
        onv_tensor_has_dims(&l->emit, again, whole.rank, whole.dims))
        return again;
    if (!onv_weight_shape(l, use, read, &whole, &shape)) return ONV_NO_TENSOR;
    uint32_t tensor =
        onv_tensor_new(&l->emit, value->tensor->type.dtype, shape.rank, shape.dims, NULL);
    if (tensor == ONV_NO_TENSOR) return tensor;
    onv_eager_storage *storage = onv_storage_of(&l->emit, tensor);
    storage->label = value->name;
    storage->kind = use == ONV_WEIGHT_BUFFER ? ONV_STORAGE_BUFFER : ONV_STORAGE_CONSTANT;
    if (use == ONV_WEIGHT_BUFFER || use == ONV_WEIGHT_CONSTANT) return tensor;
    /* What one branch makes another one could not read. */
    if (l->emit.region != ONV_NO_REGION && use > ONV_WEIGHT_CONSTANT && use != ONV_WEIGHT_EXPANDED)
        return tensor;
    if (use == ONV_WEIGHT_MADE) {
        storage->kind = ONV_STORAGE_ACTIVATION;
        return onv_emit_one(&l->emit, "full", ONV_NO_TENSOR, ONV_GRAD_NONE, tensor);
    }
    onv_emit_parameter(&l->emit, tensor, onv_weight_name(l, id, read),
                       onv_weight_is_shared(l, id) ? NULL : value->name, true);
    bool is_weight = read != NULL && read->place == ONV_PLACE_WEIGHT;
    if (use == ONV_WEIGHT_DERIVED && !is_weight && onv_folded_is_of_several(l, value) &&
        l->emit.status == ONV_OK) /* a layer's weight is scaled */
        onv_storage_of(&l->emit, tensor)->is_assumed = true;
    if (layer != NULL && !onv_ptr_map_set(&l->weights.layers, layer, tensor))
        onv_emit_fail_memory(&l->emit);
    if (use == ONV_WEIGHT_TRAINED) return tensor;
    return compute_weight(&l->emit, use, read, value->tensor, &whole, tensor);
}

void onv_value_set(onv_lowering *l, onv_value_id id, uint32_t tensor)
{
    if (!onv_is_value(id)) return;
    l->values[id.index].tensor = tensor;
    l->values[id.index].is_known = true;
    if (tensor == ONV_NO_TENSOR || l->emit.status != ONV_OK) return;
    onv_eager_storage *storage = onv_storage_of(&l->emit, tensor);
    storage->is_bound |= onv_model_value(l->emit.model, id)->bound_used;
    if (!onv_is_value(storage->value)) storage->value = id;
}

static uint32_t owned_tensor(onv_lowering *l, onv_value_id id, const onv_node *node, uint32_t k)
{
    onv_weight_read *owner = onv_weight_owner(l, id, node, k);
    if (owner->tensor == ONV_NO_TENSOR) owner->tensor = weight_tensor(l, id, owner);
    return owner->tensor;
}

static uint32_t read_value(onv_lowering *l, onv_value_id id, const onv_node *node, uint32_t k)
{
    if (!onv_is_value(id) || l->emit.status != ONV_OK) return ONV_NO_TENSOR;
    const onv_value *value = onv_model_value(l->emit.model, id);
    if (l->values[id.index].is_known) return l->values[id.index].tensor;
    if (!onv_value_is_weight(value)) return ONV_NO_TENSOR;
    bool owned = onv_value_may_train(l->emit.model, value) && onv_weight_is_shared(l, id) &&
                 !is_host_weight(l, id);
    if (owned) {
        onv_weight_use use = onv_weight_use_of(l, id);
        owned = use == ONV_WEIGHT_TRAINED || use == ONV_WEIGHT_DERIVED;
    }
    if (owned) return owned_tensor(l, id, node, k);
    uint32_t tensor = weight_tensor(l, id, onv_weight_owner(l, id, node, k));
    onv_value_set(l, id, tensor);
    return tensor;
}

uint32_t onv_value_tensor(onv_lowering *l, onv_value_id id)
{
    const onv_node *node =
        onv_is_node(l->emit.node) ? onv_model_node(l->emit.model, l->emit.node) : NULL;
    return read_value(l, id, node, UINT32_MAX);
}

void onv_lower_weight(onv_lowering *l, onv_value_id id)
{
    if (is_host_weight(l, id)) return;
    onv_weight_use use = onv_weight_use_of(l, id);
    if (use > ONV_WEIGHT_CONSTANT) return;
    if (use != ONV_WEIGHT_TRAINED || !onv_weight_is_shared(l, id)) {
        onv_value_tensor(l, id);
        return;
    }
    onv_weight_read *owner = onv_weight_owner(l, id, NULL, UINT32_MAX);
    for (; owner != NULL && l->emit.status == ONV_OK; owner = onv_weight_next_owner(l, owner))
        if (owner->tensor == ONV_NO_TENSOR) owner->tensor = weight_tensor(l, id, owner);
}

/* --- Clones ------------------------------------------------------------------------------------ */

/* A reshape copies what it has to by itself. */
static bool reads_clone(const onv_node *node, uint32_t k)
{
    return k < 32 && (onv_noted(node)->clones & ONV_BIT(k)) != 0 &&
           strstr(onv_noted(node)->aten_op, "view") == NULL;
}

/* Values of which all readers have clones. Those in subgraphs have none. */
void onv_clones_mark(onv_lowering *l)
{
    for (uint32_t clones = 2; clones-- > 0;) /* first those that one reader has a clone of */
        for (size_t i = 0; i < l->emit.model->nodes.count; i++) {
            const onv_node *node = &l->emit.model->nodes.at[i];
            for (uint32_t k = 0; k < node->n_inputs; k++)
                if (onv_is_value(node->inputs[k]) && reads_clone(node, k) == (clones == 1))
                    l->values[node->inputs[k].index].is_cloned = clones == 1;
        }
}

/* --- What rules ask about their node ----------------------------------------------------------- */

/* A view without a gradient, which is made before the operation that reads it. */
static uint32_t detached(onv_lowering *l, onv_value_id id, uint32_t tensor)
{
    uint32_t *made = &l->values[id.index].detached;
    if (!onv_tensor_needs_grad(&l->emit, tensor)) return tensor;
    if (*made != 0 &&
        onv_tensor_at(&l->emit, *made - 1).storage == onv_tensor_at(&l->emit, tensor).storage)
        return *made - 1;
    onv_eager_tensor t = onv_tensor_at(&l->emit, tensor);
    tensor = onv_emit_view(&l->emit, "detach", tensor, t.rank, t.dims, t.strides, ONV_GRAD_NONE);
    *made = tensor + 1;
    return tensor;
}

uint32_t onv_node_in(onv_lowering *l, const onv_node *node, uint32_t k)
{
    if (k >= node->n_inputs) return ONV_NO_TENSOR;
    onv_value_id id = node->inputs[k];
    uint32_t tensor = read_value(l, id, node, k);
    bool is_detached = k < 32 && (onv_noted(node)->detached & ONV_BIT(k)) != 0 && onv_is_value(id);
    return is_detached && !l->emit.options->as_exported ? detached(l, id, tensor) : tensor;
}

void onv_node_set(onv_lowering *l, const onv_node *node, uint32_t k, uint32_t tensor)
{
    if (k >= node->n_outputs || !onv_is_value(node->outputs[k])) return;
    onv_value_id id = node->outputs[k];
    if (!l->values[id.index].is_cloned || tensor == ONV_NO_TENSOR) {
        onv_value_set(l, id, tensor);
        return;
    }
    l->values[id.index].tensor = tensor;
    if (!onv_vec_push(&l->to_clone, id)) l->emit.status = onv_fail_memory(l->emit.err);
    if (!l->emit.is_building) onv_clone_results(l);
}

void onv_clone_results(onv_lowering *l)
{
    while (l->to_clone.count > 0 && l->emit.status == ONV_OK) {
        onv_value_id id = l->to_clone.at[--l->to_clone.count];
        onv_value_set(l, id, onv_emit_contiguous(&l->emit, l->values[id.index].tensor));
    }
}

bool onv_is_drawn(const onv_emitter *e, onv_value_id id)
{
    bool is_drawn = false;
    for (uint32_t depth = 0; depth < 8 && onv_is_value(id); depth++) {
        const onv_node *node = onv_model_maker(e->model, id);
        if (node == NULL) return false;
        if (node->code == ONV_OP_ConstantOfShape)
            return is_drawn && onv_node_is_aten(node, "new_empty");
        bool goes_on = ONV_IS_ANY(node, ONV_OP_Div, ONV_OP_Mul, ONV_OP_Cast, ONV_OP_Less,
                                  ONV_OP_RandomUniformLike);
        if (!goes_on || node->n_inputs == 0) return false;
        is_drawn |= onv_node_is_aten(node, "bernoulli");
        id = node->inputs[0];
    }
    return false;
}

uint8_t onv_promoted(onv_lowering *l, const onv_node *node)
{
    bool lowers = l->emit.options->amp != ONV_UNDEFINED && node->n_inputs == 2;
    uint8_t best = ONV_UNDEFINED;
    uint32_t most = 0;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        onv_eager_tensor t = onv_tensor_at(&l->emit, onv_node_in(l, node, k));
        uint32_t bits = onv_dtype_bits((onv_dtype)t.dtype);
        if (!onv_dtype_is_float((onv_dtype)t.dtype) || bits < most) continue;
        if (lowers && k == 1 && most > 0 && onv_is_drawn(&l->emit, node->inputs[1])) continue;
        best = bits == most && best != t.dtype && best != ONV_UNDEFINED ? ONV_FLOAT : t.dtype;
        most = bits;
    }
    return best;
}

uint8_t onv_value_dtype(const onv_emitter *e, onv_value_id id)
{
    const onv_value *value = onv_model_value(e->model, id);
    return is_tensor(value) ? (uint8_t)value->type.dtype : (uint8_t)ONV_UINT8;
}

static uint8_t result_dtype(const onv_emitter *e, onv_value_id id, uint8_t dtype)
{
    uint8_t declared = onv_value_dtype(e, id);
    bool given = dtype != ONV_UNDEFINED && onv_dtype_is_float((onv_dtype)declared);
    return given ? dtype : declared;
}

uint32_t onv_value_new(onv_lowering *l, onv_value_id id, uint8_t dtype)
{
    onv_shape shape;
    if (!onv_value_shape(l, id, &shape)) return ONV_NO_TENSOR;
    return onv_tensor_new(&l->emit, result_dtype(&l->emit, id, dtype), shape.rank, shape.dims,
                          NULL);
}

uint32_t onv_node_new(onv_lowering *l, const onv_node *node, uint32_t k, uint8_t dtype)
{
    return k < node->n_outputs ? onv_value_new(l, node->outputs[k], dtype) : ONV_NO_TENSOR;
}

uint32_t onv_node_new_image(onv_lowering *l, const onv_node *node, const onv_eager_tensor *like,
                            uint8_t dtype)
{
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK];
    if (!onv_value_shape(l, node->outputs[0], &shape)) return ONV_NO_TENSOR;
    return onv_tensor_new(&l->emit, result_dtype(&l->emit, node->outputs[0], dtype), shape.rank,
                          shape.dims, onv_image_strides(like, shape.rank, shape.dims, strides));
}

/* The contents of a small constant operand, or NULL. */
static const onv_known *known_operand(onv_emitter *e, const onv_node *node, uint32_t k)
{
    if (k >= node->n_inputs || !onv_is_value(node->inputs[k]) || e->status != ONV_OK) return NULL;
    const onv_value *value = onv_model_value(e->model, node->inputs[k]);
    const onv_known *known = value->known;
    if (known == NULL && value->tensor != NULL && value->tensor->elems <= ONV_MAX_RANK)
        e->status = onv_load_known(e->model, value->tensor, &known, e->err);
    return known;
}

bool onv_node_scalar(onv_emitter *e, const onv_node *node, uint32_t k, double *number)
{
    const onv_known *known = known_operand(e, node, k);
    if (known == NULL || known->count != 1) return false;
    onv_scalar s = known->elems[0];
    if (!onv_dim_is_const(s.i)) return false;
    bool is_float = onv_dtype_is_float((onv_dtype)known->dtype);
    *number = is_float ? s.f * (double)s.i.raw : (double)s.i.raw;
    return *number == *number;
}

uint32_t onv_node_operands(onv_emitter *e, const onv_node *node, uint32_t k)
{
    const onv_known *known = known_operand(e, node, k);
    return known != NULL ? known->count : 0;
}

int64_t onv_node_operand(onv_emitter *e, const onv_node *node, uint32_t k, uint32_t i,
                         int64_t fallback)
{
    const onv_known *known = known_operand(e, node, k);
    bool good = known != NULL && i < known->count && onv_dim_is_const(known->elems[i].i);
    return good ? known->elems[i].i.raw : fallback;
}
