/* What is looked up, written, padded, repeated or joined. */
#include <string.h>

#include "base/checked.h"
#include "tape/state.h"

/* An archive has the sizes of the kernel of the machine that it was made on; CUDA's gives the bag of each index, the size of each bag, and of
 * the largest of a bag (mode 2) which index it is. */
uint32_t onv_tape_embedding_bag(onv_tape *t, const onv_program_call *c)
{
    enum { MAX = 2, N = 4 };
    uint32_t indices = t->in[1];
    uint32_t out = onv_tape_new(t, onv_call_result(c, 0), ONV_UNDEFINED);
    onv_eager_tensor places = onv_tensor_at(&t->emit, indices), bags = onv_tensor_at(&t->emit, out);
    if (bags.rank != 2) return ONV_NO_TENSOR;
    bool is_max = onv_call_int(t, c, "mode", 0) == MAX;
    size_t before = t->emit.eager->ops.count;
    const int64_t elems[N] = {0, (int64_t)places.elems, bags.dims[0],
                              is_max ? (int64_t)bags.elems : 0};
    onv_emit_begin_op(&t->emit, onv_aten_as(t->row));
    for (size_t i = 0; i < t->operands.count; i++) {
        onv_emit_in(&t->emit, t->operands.at[i].tensor, i == 0 ? ONV_GRAD_NEW : ONV_GRAD_NONE);
        if (i > 0) onv_emit_save(&t->emit, t->operands.at[i].tensor);
    }
    onv_emit_out(&t->emit, out);
    for (uint32_t k = 1; k < N; k++) {
        uint32_t made = onv_tensor_new(&t->emit, places.dtype, 1, &elems[k], NULL);
        onv_emit_save(&t->emit, onv_emit_out(&t->emit, made));
        onv_tape_give(t, c, k, made);
    }
    onv_emit_end(&t->emit);
    onv_eager_op *op = onv_emit_made_since(&t->emit, before);
    if (op != NULL && !is_max) onv_tape_add_lookups(t, op, 0);
    return out;
}

/* `part` is copied into so many bytes of x: x, written. Autograd's node for that (CopySlices) copies the incoming gradient, and from that
 * copy the part, which is the gradient of what was written; zeros take its place where x has a gradient. */
static uint32_t copy_slices(onv_tape *t, uint32_t x, uint64_t bytes, uint32_t part)
{
    onv_eager_tensor s = onv_tensor_at(&t->emit, x);
    uint64_t temps = onv_tensor_needs_grad(&t->emit, x) ? bytes : s.bytes;
    if (!onv_tensor_needs_grad(&t->emit, part)) temps = onv_u64_plus(temps, bytes);
    uint32_t out = onv_tensor_on(&t->emit, s.storage, s.dtype, s.rank, s.dims, s.strides);
    onv_emit_begin(&t->emit, "copy_slices");
    t->emit.op.in_place = true;
    onv_emit_in(&t->emit, x, ONV_GRAD_NEW);
    onv_emit_in(&t->emit, part, ONV_GRAD_NEW);
    onv_emit_temps(&t->emit, 0, temps);
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}

void onv_tape_copy(onv_tape *t, const onv_program_call *c)
{
    uint32_t target = onv_call_value(c, "self"), part = onv_call_tensor(t, c, "src");
    if (target == ONV_NO_PROGRAM_VALUE || onv_tape_tensor(t, target) == ONV_NO_TENSOR) return;
    uint32_t base = t->values[t->values[target].object].base;
    bool any =
        onv_tensor_needs_grad(&t->emit, part) ||
        (base != ONV_NO_PROGRAM_VALUE && onv_tensor_needs_grad(&t->emit, onv_tape_tensor(t, base)));
    if (t->overwrites && base != ONV_NO_PROGRAM_VALUE && any && !t->emit.has_no_grad) {
        uint64_t bytes = onv_tensor_at(&t->emit, onv_tape_tensor(t, target)).bytes;
        onv_tape_set_base_written(t, onv_call_result(c, 0), target,
                                  copy_slices(t, onv_tape_tensor(t, base), bytes, part));
        return;
    }
    onv_tape_by_row(t, c);
}

/* Of what is in the middle, the ends are copied to the other ends (_pad_circular() of PadNd.cpp). */
static uint32_t pad_circular(onv_tape *t, const onv_program_call *c, uint32_t x, uint32_t out)
{
    const onv_argument *widths = onv_call_argument(c, "pad");
    onv_eager_tensor s = onv_tensor_at(&t->emit, out);
    onv_emit_one(&t->emit, "new_empty", ONV_NO_TENSOR, ONV_GRAD_NONE, out);
    out = copy_slices(t, out, onv_tensor_at(&t->emit, x).bytes, x);
    for (uint32_t i = 0; widths != NULL && i < widths->count && i < 2 * s.rank; i++) {
        int64_t dims[ONV_MAX_RANK], width = onv_call_int_at(t, c, "pad", i, 0);
        if (width <= 0) continue;
        memcpy(dims, s.dims, s.rank * sizeof *dims);
        dims[s.rank - 1 - i / 2] = width;
        uint32_t end = onv_emit_view(&t->emit, "slice", out, s.rank, dims, s.strides, ONV_GRAD_NEW);
        out = copy_slices(t, out, onv_tensor_at(&t->emit, end).bytes, end);
    }
    return out;
}

/* By constants into a new tensor, by copies, or by a kernel that reads the input again. */
uint32_t onv_tape_pad(onv_tape *t, const onv_program_call *c)
{
    const char *mode = onv_call_text(c, "mode");
    bool is_circular = mode != NULL && strcmp(mode, "circular") == 0;
    bool is_constant = mode == NULL || strcmp(mode, "constant") == 0;
    uint32_t x = t->in[0];
    uint32_t out = onv_tape_new(t, onv_call_result(c, 0), onv_tensor_at(&t->emit, x).dtype);
    if (is_circular && onv_tensor_needs_grad(&t->emit, x)) return pad_circular(t, c, x, out);
    onv_emit_begin(&t->emit, "pad");
    onv_emit_in(&t->emit, x, ONV_GRAD_NEW);
    if (!is_constant && !is_circular) onv_emit_save(&t->emit, x);
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}

/* It rolls one dim after the other, and holds what it has so far until the last. Its backward is one, too. */
void onv_tape_roll(onv_tape *t, const onv_program_call *c)
{
    const onv_argument *dims = onv_call_argument(c, "dims");
    onv_eager_op *made = onv_tape_op_by_row(t, c);
    if (made == NULL || dims == NULL || dims->kind != ONV_ARGUMENT_INTS || dims->count < 2) return;
    uint64_t all =
        onv_u64_times(onv_tensor_at(&t->emit, made->in[0].tensor).bytes, dims->count - 1);
    made->forward_temp_bytes = made->backward_temp_bytes = all;
}
