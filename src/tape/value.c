/* Values of the program and the tensors that stand for them. */
#include <string.h>

#include "base/fail.h"
#include "tape/state.h"

bool onv_tape_number(onv_tape *t, onv_dim dim, int64_t *number)
{
    onv_dim d = onv_dim_substitute_bounds(&t->emit.model->dims, dim);
    *number = d.raw;
    if (onv_dim_is_const(d)) return true;
    if (t->emit.status == ONV_OK)
        t->emit.status =
            onv_fail(t->emit.err, ONV_ERR_USAGE,
                     "a size of the program is not a number; bind its dims (--batch, --dim) to see "
                     "PyTorch's memory");
    return false;
}

/* Rank and sizes are the program's: the view has them with dims bound. */
bool onv_tape_shape(onv_tape *t, uint32_t value, onv_shape *shape)
{
    if (t->emit.status != ONV_OK || value == ONV_NO_PROGRAM_VALUE) return false;
    const onv_program_value *v = &t->program->values.at[value];
    shape->rank = v->rank;
    if (v->rank > ONV_MAX_RANK) {
        t->emit.status = onv_fail(t->emit.err, ONV_ERR_LIMIT, "'%.200s' has %u dims, at most %d",
                                  v->name, v->rank, ONV_MAX_RANK);
        return false;
    }
    for (uint32_t i = 0; i < v->rank; i++) {
        if (!onv_tape_number(t, v->dims[i], &shape->dims[i])) return false;
        if (shape->dims[i] >= 0) continue;
        t->emit.status =
            onv_fail(t->emit.err, ONV_ERR_MODEL, "'%.200s' has a size below 0", v->name);
        return false;
    }
    return true;
}

bool onv_tape_strides(onv_tape *t, uint32_t value, int64_t *strides)
{
    const int64_t most = INT64_C(1) << 60;
    const onv_program_value *v = &t->program->values.at[value];
    for (uint32_t i = 0; i < v->rank; i++) {
        int64_t size, end;
        if (v->strides == NULL || !onv_tape_number(t, v->strides[i], &strides[i]) ||
            !onv_tape_number(t, v->dims[i], &size))
            return false;
        if (strides[i] >= 0 && !__builtin_mul_overflow(strides[i], size, &end) && end <= most)
            continue;
        t->emit.status = onv_fail(t->emit.err, ONV_ERR_MODEL,
                                  "'%.200s' has a stride that no storage has", v->name);
        return false;
    }
    return true;
}

static onv_tape_value *object_of(onv_tape *t, uint32_t value)
{
    return &t->values[t->values[value].object];
}

/* A view whose base was written through another one is a view of what the base is now. */
static uint32_t renewed(onv_tape *t, onv_tape_value *object)
{
    uint32_t base = onv_tape_tensor(t, object->base);
    onv_eager_tensor old = onv_tensor_at(&t->emit, object->tensor);
    onv_eager_tensor whole = onv_tensor_at(&t->emit, base);
    if (base == ONV_NO_TENSOR) return object->tensor;
    object->version = object_of(t, object->base)->writes;
    bool before = t->emit.has_no_grad; /* of the call that reads it, not of the view */
    t->emit.has_no_grad = false;
    object->tensor = onv_emit_view(&t->emit, "as_strided", base, old.rank, old.dims, old.strides,
                                   old.elems == whole.elems ? ONV_GRAD_ALIAS : ONV_GRAD_NEW);
    t->emit.has_no_grad = before;
    return object->tensor;
}

uint32_t onv_tape_tensor(onv_tape *t, uint32_t value)
{
    if (value == ONV_NO_PROGRAM_VALUE || t->emit.status != ONV_OK) return ONV_NO_TENSOR;
    onv_tape_value *object = object_of(t, value);
    bool is_old = object->base != ONV_NO_PROGRAM_VALUE && object->tensor != ONV_NO_TENSOR &&
                  object->version != object_of(t, object->base)->writes;
    return is_old ? renewed(t, object) : object->tensor;
}

/* What storages are of, for reports. */
static void note_value(onv_tape *t, uint32_t value, uint32_t tensor)
{
    if (tensor == ONV_NO_TENSOR || t->emit.status != ONV_OK) return;
    if (t->is_recovered) return;
    onv_eager_storage *storage = onv_storage_of(&t->emit, tensor);
    if (!onv_is_value(storage->value) && value < t->emit.model->values.count)
        storage->value = (onv_value_id){value};
}

void onv_tape_set(onv_tape *t, uint32_t value, uint32_t tensor)
{
    if (value == ONV_NO_PROGRAM_VALUE) return;
    t->values[value].tensor = tensor;
    note_value(t, value, tensor);
}

void onv_tape_set_view(onv_tape *t, uint32_t value, uint32_t base, uint32_t tensor)
{
    if (value == ONV_NO_PROGRAM_VALUE || base == ONV_NO_PROGRAM_VALUE) return;
    const onv_tape_value *of = object_of(t, base);
    uint32_t root = of->base != ONV_NO_PROGRAM_VALUE ? of->base : t->values[base].object;
    t->values[value].base = root;
    t->values[value].version = object_of(t, root)->writes;
    t->values[value].tensor = tensor;
}

void onv_tape_set_view_inside(onv_tape *t, uint32_t value, uint32_t tensor)
{
    onv_eager_tensor x = onv_tensor_at(&t->emit, tensor);
    uint32_t inside = t->first_inside + value;
    if (tensor == ONV_NO_TENSOR || value == ONV_NO_PROGRAM_VALUE) return;
    if (t->first_inside == 0) {
        onv_tape_set(t, value, tensor);
        return;
    }
    t->values[inside].tensor = tensor;
    note_value(t, value, tensor);
    onv_tape_set_view(
        t, value, inside,
        onv_emit_view(&t->emit, "view", tensor, x.rank, x.dims, x.strides, ONV_GRAD_ALIAS));
}

void onv_tape_set_written(onv_tape *t, uint32_t value, uint32_t of, uint32_t tensor)
{
    onv_tape_value *object = object_of(t, of);
    if (value != ONV_NO_PROGRAM_VALUE) t->values[value].object = t->values[of].object;
    object->tensor = tensor;
    /* For gradients alone other views of it are made again. */
    if (object->base == ONV_NO_PROGRAM_VALUE && onv_tensor_needs_grad(&t->emit, tensor))
        object->writes++;
}

void onv_tape_set_base_written(onv_tape *t, uint32_t value, uint32_t of, uint32_t base_tensor)
{
    onv_tape_value *object = object_of(t, of), *base = object_of(t, object->base);
    if (value != ONV_NO_PROGRAM_VALUE) t->values[value].object = t->values[of].object;
    base->tensor = base_tensor;
    base->writes++;
}

uint8_t onv_tape_dtype(onv_tape *t, uint32_t value, uint8_t promoted)
{
    uint8_t dtype = t->program->values.at[value].dtype;
    bool follows = (t->is_recovered || t->emit.amp != ONV_UNDEFINED) && promoted != ONV_UNDEFINED &&
                   onv_dtype_is_float((onv_dtype)dtype) && onv_dtype_is_float((onv_dtype)promoted);
    return follows ? promoted : dtype;
}

uint32_t onv_tape_new(onv_tape *t, uint32_t value, uint8_t dtype)
{
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK];
    if (!onv_tape_shape(t, value, &shape)) return ONV_NO_TENSOR;
    bool has_strides = onv_tape_strides(t, value, strides);
    if (dtype == ONV_UNDEFINED) dtype = t->program->values.at[value].dtype;
    return onv_tensor_new(&t->emit, dtype, shape.rank, shape.dims, has_strides ? strides : NULL);
}
