/* Calls of ATen: arguments, and how they are emitted. */
#include "lower/recover.h"

#include <string.h>

#include "base/fail.h"
#include "lower/lowering.h"

static void fail_memory(onv_lowering *l)
{
    if (l->emit.status == ONV_OK) l->emit.status = onv_fail_memory(l->emit.err);
}

void onv_recover_cleanup(onv_lowering *l)
{
    onv_vec_cleanup(&l->recovery.program.values);
    onv_vec_cleanup(&l->recovery.values);
    onv_vec_cleanup(&l->recovery.arguments);
    onv_vec_cleanup(&l->tape.operands);
}

/* A value of the call; ONV_NO_PROGRAM_VALUE: no memory. */
static uint32_t add_value(onv_lowering *l, onv_program_value value, uint32_t tensor)
{
    onv_recovery *r = &l->recovery;
    uint32_t index = (uint32_t)r->values.count;
    onv_tape_value state = {.tensor = tensor, .object = index, .base = ONV_NO_PROGRAM_VALUE};
    if (onv_vec_push(&r->values, state) && onv_vec_push(&r->program.values, value)) return index;
    fail_memory(l);
    return ONV_NO_PROGRAM_VALUE;
}

static void add_argument(onv_lowering *l, onv_argument argument)
{
    if (!onv_vec_push(&l->recovery.arguments, argument)) fail_memory(l);
}

void onv_recover_tensor(onv_lowering *l, const char *name, uint32_t tensor)
{
    onv_argument a = {.name = name};
    if (l->emit.status != ONV_OK) return;
    if (tensor != ONV_NO_TENSOR) {
        onv_eager_tensor t = onv_tensor_at(&l->emit, tensor);
        a.kind = ONV_ARGUMENT_TENSOR;
        a.value = add_value(l, (onv_program_value){.dtype = t.dtype, .rank = t.rank}, tensor);
    }
    add_argument(l, a);
}

/* In the model's arena, as they are known to be sizes that were counted. */
static onv_dim *dims_of(onv_lowering *l, const int64_t *numbers, uint32_t count)
{
    onv_dim *dims = ONV_ARENA_ARRAY(&l->emit.model->arena, onv_dim, count);
    if (dims == NULL) fail_memory(l);
    for (uint32_t i = 0; dims != NULL && i < count; i++) dims[i] = onv_dim_const(numbers[i]);
    return dims;
}

void onv_recover_int(onv_lowering *l, const char *name, int64_t number)
{
    onv_argument a = {.name = name, .kind = ONV_ARGUMENT_INT, .number = onv_dim_const(number)};
    add_argument(l, a);
}

void onv_recover_ints(onv_lowering *l, const char *name, const int64_t *numbers, uint32_t count)
{
    onv_dim *dims = dims_of(l, numbers, count);
    if (dims == NULL) return;
    add_argument(l, (onv_argument){
                        .name = name, .kind = ONV_ARGUMENT_INTS, .count = count, .numbers = dims});
}

void onv_recover_real(onv_lowering *l, const char *name, double number)
{
    add_argument(l, (onv_argument){.name = name, .kind = ONV_ARGUMENT_FLOAT, .real = number});
}

void onv_recover_text(onv_lowering *l, const char *name, const char *text)
{
    add_argument(l, (onv_argument){.name = name, .kind = ONV_ARGUMENT_STRING, .text = text});
}

/* Strides of a result that has the order of memory of `like`, or NULL: the row tells, or it is contiguous. */
static onv_dim *strides_like(onv_lowering *l, uint32_t like, const onv_shape *shape)
{
    int64_t strides[ONV_MAX_RANK];
    onv_eager_tensor t = onv_tensor_at(&l->emit, like);
    if (like == ONV_NO_TENSOR || t.rank != shape->rank) return NULL;
    t.dims = shape->dims;
    t.elems = 1; /* strides of an empty tensor would say nothing */
    onv_strides_like(&t, strides);
    return dims_of(l, strides, shape->rank);
}

static uint32_t add_result(onv_lowering *l, const onv_shape *shape, uint8_t dtype)
{
    onv_program_value value = {.name = "",
                               .dtype = dtype,
                               .rank = shape->rank,
                               .dims = dims_of(l, shape->dims, shape->rank),
                               .strides = strides_like(l, l->recovery.like, shape)};
    return add_value(l, value, ONV_NO_TENSOR);
}

static void forget(onv_recovery *r)
{
    r->program.values.count = r->values.count = r->arguments.count = 0;
    r->like = ONV_NO_TENSOR;
    r->dtype = ONV_UNDEFINED;
    r->has_second = r->in_place = false;
}

static uint32_t emit(onv_lowering *l, onv_aten_id op, const onv_shape *shape, uint8_t dtype)
{
    onv_recovery *r = &l->recovery;
    if (r->dtype != ONV_UNDEFINED) dtype = r->dtype;
    uint32_t results[2] = {add_result(l, shape, dtype), ONV_NO_PROGRAM_VALUE},
             tensor = ONV_NO_TENSOR;
    if (r->has_second) results[1] = add_result(l, shape, ONV_INT64);
    if (l->emit.status == ONV_OK) {
        onv_program_call call = {.name = "",
                                 .op_name = onv_aten_ops[op].name,
                                 .arguments = r->arguments.at,
                                 .results = results,
                                 .n_arguments = (uint32_t)r->arguments.count,
                                 .n_results = r->has_second ? 2 : 1,
                                 .module = UINT32_MAX};
        l->tape.program = &r->program;
        l->tape.values = r->values.at;
        onv_tape_emit(&l->tape, &call, &onv_aten_ops[op], r->in_place);
        tensor = onv_tape_tensor(&l->tape, results[0]);
        r->second = onv_tape_tensor(&l->tape, results[1]);
    }
    forget(r);
    return tensor;
}

uint32_t onv_recover_call(onv_lowering *l, onv_aten_id op, onv_value_id out)
{
    onv_shape shape;
    if (onv_value_shape(l, out, &shape)) return emit(l, op, &shape, onv_value_dtype(l, out));
    forget(&l->recovery);
    l->recovery.second = ONV_NO_TENSOR;
    return ONV_NO_TENSOR;
}

uint32_t onv_recover_unary(onv_lowering *l, onv_aten_id op, uint32_t x, onv_value_id out)
{
    onv_recover_tensor(l, "", x);
    return onv_recover_call(l, op, out);
}

uint32_t onv_recover_binary(onv_lowering *l, onv_aten_id op, uint32_t x, uint32_t y,
                            onv_value_id out)
{
    onv_recover_tensor(l, "", x);
    onv_recover_tensor(l, "", y);
    return onv_recover_call(l, op, out);
}
