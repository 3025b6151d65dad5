/* Pooling: its indices, and what kernels copy. */
#include <string.h>

#include "base/checked.h"
#include "emit/layers.h"
#include "tape/state.h"

uint32_t onv_tape_new_image(onv_tape *t, uint32_t value, const onv_eager_tensor *like)
{
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK];
    if (!onv_tape_shape(t, value, &shape)) return ONV_NO_TENSOR;
    return onv_tensor_new(&t->emit, like->dtype, shape.rank, shape.dims,
                          onv_image_strides(like, shape.rank, shape.dims, strides));
}

/* Indices are made in any case: the public function is that with indices. Where the call gives no second result they go with it, but
 * for those that backward reads. */
static uint32_t emit_pool(onv_tape *t, const onv_program_call *c, uint64_t forward,
                          uint64_t backward, bool copies_first)
{
    uint32_t x = t->in[0], indices = onv_call_result(c, 1);
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    uint32_t out = onv_tape_new_image(t, onv_call_result(c, 0), &from);
    onv_eager_tensor y = onv_tensor_at(&t->emit, out);
    uint64_t bytes = onv_u64_times(y.elems, sizeof(int64_t));
    onv_emit_begin_op(&t->emit, onv_aten_as(t->row));
    onv_emit_in_saved(&t->emit, x, ONV_GRAD_NEW);
    t->emit.op.copies_first = copies_first;
    onv_emit_out(&t->emit, out);
    if (indices != ONV_NO_PROGRAM_VALUE) {
        uint32_t places = onv_tensor_new(&t->emit, ONV_INT64, y.rank, y.dims,
                                         out != ONV_NO_TENSOR ? y.strides : NULL);
        onv_emit_save(&t->emit, onv_emit_out(&t->emit, places));
        onv_tape_set(t, indices, places);
    } else if (t->emit.op.has_backward) {
        onv_emit_extra(&t->emit, bytes, 1, "indices");
    } else {
        forward = onv_u64_plus(forward, bytes);
    }
    onv_emit_temps(&t->emit, forward, backward);
    onv_emit_end(&t->emit);
    return out;
}

/* Of one dim PyTorch pools an image of one row, a view, and gives a view of the result. What has the order of an image, channels last
 * or not, with gaps, forward copies behind its results, and backward again (DilatedMaxPool2d.cu). */
uint32_t onv_tape_max_pool(onv_tape *t, const onv_program_call *c)
{
    onv_eager_tensor x = onv_tensor_at(&t->emit, t->in[0]);
    int64_t room[ONV_MAX_RANK];
    const int64_t *strides = onv_image_strides(&x, x.rank, x.dims, room);
    bool is_dense = strides != NULL ? memcmp(strides, x.strides, x.rank * sizeof *strides) == 0
                                    : onv_tensor_is_contiguous(&x);
    return emit_pool(t, c, is_dense ? 0 : x.bytes, is_dense ? 0 : x.bytes, false);
}

/* Its kernels want all in the usual order: forward copies the input; backward the gradient and the indices, and makes a gradient
 * that it copies back. */
uint32_t onv_tape_adaptive_max_pool(onv_tape *t, const onv_program_call *c)
{
    onv_eager_tensor x = onv_tensor_at(&t->emit, t->in[0]);
    onv_shape shape;
    if (!onv_tape_shape(t, onv_call_result(c, 0), &shape)) return ONV_NO_TENSOR;
    if (onv_tensor_is_contiguous(&x)) return emit_pool(t, c, 0, 0, false);
    uint64_t copies = sizeof(int64_t) + onv_dtype_bits((onv_dtype)x.dtype) / 8;
    for (uint32_t i = 0; i < shape.rank; i++)
        copies = onv_u64_times(copies, (uint64_t)shape.dims[i]);
    return emit_pool(t, c, x.bytes, onv_u64_plus(copies, x.bytes), true);
}

/* To one place it is a mean, whose result is viewed as an image. To others the kernel takes images whose channels come last as they
 * are, and copies what is in no order that it knows. */
uint32_t onv_tape_adaptive_avg_pool(onv_tape *t, const onv_program_call *c)
{
    uint32_t result = onv_call_result(c, 0);
    onv_shape shape;
    uint32_t x = t->in[0];
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    if (!onv_tape_shape(t, result, &shape)) return ONV_NO_TENSOR;
    uint32_t spatial = strstr(c->op_name, "pool1d") != NULL   ? 1
                       : strstr(c->op_name, "pool3d") != NULL ? 3
                                                              : 2;
    bool is_one = spatial <= shape.rank;
    for (uint32_t i = 0; is_one && i < spatial; i++) is_one = shape.dims[shape.rank - 1 - i] == 1;
    uint32_t out = onv_tape_new_image(t, result, &from);
    onv_emit_begin_op(&t->emit, is_one ? ONV_ATEN_mean : onv_aten_as(t->row));
    onv_emit_in(&t->emit, x, ONV_GRAD_NEW);
    if (is_one) {
        uint32_t pixels = ((UINT32_C(1) << spatial) - 1) << (from.rank - spatial);
        onv_emit_reduction(&t->emit, x, out, pixels, sizeof(float));
    } else {
        bool copies = !onv_tensor_is_contiguous(&from) && !onv_tensor_is_channels_last(&from);
        onv_emit_save(&t->emit, x);
        onv_emit_temps(&t->emit, copies ? from.bytes : 0, 0);
        t->emit.op.copies_first = true;
    }
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}

/* Both kernels make what they give like what they are given, and then change its size, as that of the gradient: a larger one is
 * allocated beside the first, a smaller one keeps the first's memory. */
uint32_t onv_tape_windows(onv_tape *t, const onv_program_call *c)
{
    uint32_t x = t->in[0];
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    uint32_t out = onv_tape_new(t, onv_call_result(c, 0), from.dtype);
    if (out == ONV_NO_TENSOR) return out;
    uint64_t *bytes = &onv_storage_of(&t->emit, out)->bytes;
    uint64_t first = *bytes > from.bytes ? from.bytes : 0;
    uint64_t copied = onv_tensor_is_contiguous(&from) ? 0 : from.bytes;
    if (*bytes < from.bytes) *bytes = from.bytes;
    onv_emit_begin_op(&t->emit, onv_aten_as(t->row));
    onv_emit_in(&t->emit, x, ONV_GRAD_NEW);
    if (t->emit.status == ONV_OK) t->emit.in.at[0].grad_bytes = *bytes;
    onv_emit_temps(&t->emit, onv_u64_plus(first, copied), 0);
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}
