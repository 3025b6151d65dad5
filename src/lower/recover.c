/* Calls of ATen: arguments, and how they are emitted. */
#include "lower/recover.h"

#include <string.h>

#include "base/fail.h"
#include "lower/lowering.h"

void onv_recover_cleanup(onv_lowering *l)
{
    onv_vec_cleanup(&l->recovery.program.values);
    onv_vec_cleanup(&l->recovery.values);
    onv_vec_cleanup(&l->recovery.arguments);
    onv_vec_cleanup(&l->recovery.list);
    onv_vec_cleanup(&l->recovery.results);
    onv_vec_cleanup(&l->tape.operands);
}

/* A value of the call; ONV_NO_PROGRAM_VALUE: no memory. */
static uint32_t add_value(onv_lowering *l, onv_program_value value, uint32_t tensor)
{
    onv_recovery *r = &l->recovery;
    uint32_t index = (uint32_t)r->values.count;
    onv_tape_value state = {.tensor = tensor, .object = index, .base = ONV_NO_PROGRAM_VALUE};
    if (onv_vec_push(&r->values, state) && onv_vec_push(&r->program.values, value)) return index;
    onv_emit_fail_memory(&l->emit);
    return ONV_NO_PROGRAM_VALUE;
}

static void add_argument(onv_lowering *l, onv_argument argument)
{
    if (!onv_vec_push(&l->recovery.arguments, argument)) onv_emit_fail_memory(&l->emit);
}

void onv_recover_list(onv_lowering *l, const char *name)
{
    add_argument(l, (onv_argument){.name = name, .kind = ONV_ARGUMENT_TENSORS});
    l->recovery.list_at = l->recovery.arguments.count;
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
    if (l->recovery.list_at == 0)
        add_argument(l, a);
    else if (tensor != ONV_NO_TENSOR && !onv_vec_push(&l->recovery.list, a.value))
        onv_emit_fail_memory(&l->emit);
}

/* In the model's arena, as they are known to be sizes that were counted. */
static onv_dim *dims_of(onv_emitter *e, const int64_t *numbers, uint32_t count)
{
    onv_dim *dims = ONV_ARENA_ARRAY(&e->model->arena, onv_dim, count);
    if (dims == NULL) onv_emit_fail_memory(e);
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
    onv_dim *dims = dims_of(&l->emit, numbers, count);
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

/* Strides of a result, or NULL: the row tells, or it is contiguous. */
static onv_dim *strides_of(onv_lowering *l, const onv_shape *shape)
{
    int64_t strides[ONV_MAX_RANK];
    onv_eager_tensor t = onv_tensor_at(&l->emit, l->recovery.like);
    if (l->recovery.like == ONV_NO_TENSOR || t.rank != shape->rank) return NULL;
    t.dims = shape->dims;
    t.elems = 1; /* strides of an empty tensor would say nothing */
    onv_strides_like(&t, strides);
    return dims_of(&l->emit, strides, shape->rank);
}

static void add_result(onv_lowering *l, onv_value_id out, uint8_t dtype)
{
    onv_shape shape;
    uint32_t result = ONV_NO_PROGRAM_VALUE;
    if (onv_is_value(out) && onv_value_shape(l, out, &shape)) {
        onv_program_value value = {.name = "",
                                   .dtype = dtype != ONV_UNDEFINED ? dtype
                                                                   : onv_value_dtype(&l->emit, out),
                                   .rank = shape.rank,
                                   .dims = dims_of(&l->emit, shape.dims, shape.rank),
                                   .strides = strides_of(l, &shape)};
        result = add_value(l, value, ONV_NO_TENSOR);
    }
    if (!onv_vec_push(&l->recovery.results, result)) onv_emit_fail_memory(&l->emit);
}

static void forget(onv_recovery *r)
{
    r->program.values.count = r->values.count = r->arguments.count = 0;
    r->list.count = r->results.count = r->list_at = 0;
    r->like = ONV_NO_TENSOR;
    r->dtype = ONV_UNDEFINED;
    r->has_second = r->in_place = false;
}

static void emit(onv_lowering *l, onv_aten_id op)
{
    onv_recovery *r = &l->recovery;
    onv_program_call call = {.name = "",
                             .op_name = onv_aten_ops[op].name,
                             .arguments = r->arguments.at,
                             .results = r->results.at,
                             .n_arguments = (uint32_t)r->arguments.count,
                             .n_results = (uint32_t)r->results.count,
                             .module = UINT32_MAX};
    if (l->emit.status != ONV_OK) return;
    if (r->list_at != 0) {
        r->arguments.at[r->list_at - 1].values = r->list.at;
        r->arguments.at[r->list_at - 1].count = (uint32_t)r->list.count;
    }
    l->tape.program = &r->program;
    l->tape.values = r->values.at;
    onv_tape_emit(&l->tape, &call, &onv_aten_ops[op], r->in_place);
}

uint32_t onv_recover_call(onv_lowering *l, onv_aten_id op, onv_value_id out)
{
    onv_recovery *r = &l->recovery;
    uint32_t tensor = r->second = ONV_NO_TENSOR;
    add_result(l, out, r->dtype);
    if (r->has_second) add_result(l, out, ONV_INT64);
    if (l->emit.status == ONV_OK && r->results.at[0] != ONV_NO_PROGRAM_VALUE) {
        emit(l, op);
        tensor = onv_tape_tensor(&l->tape, r->results.at[0]);
        if (r->has_second) r->second = onv_tape_tensor(&l->tape, r->results.at[1]);
    }
    forget(r);
    return tensor;
}

void onv_recover_parts(onv_lowering *l, onv_aten_id op, const onv_value_id *outs, uint32_t n)
{
    onv_recovery *r = &l->recovery;
    for (uint32_t i = 0; i < n && l->emit.status == ONV_OK; i++)
        add_result(l, outs[i], ONV_UNDEFINED);
    emit(l, op);
    for (uint32_t i = 0; i < n && l->emit.status == ONV_OK; i++) {
        if (!onv_is_value(outs[i])) continue;
        const onv_value *part = onv_model_value(l->emit.model, outs[i]);
        onv_node_set(l, onv_model_node(l->emit.model, part->producer), part->output_index,
                     onv_tape_tensor(&l->tape, r->results.at[i]));
    }
    forget(r);
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
