/* Convolutions: what was padded before them, and biases and norms that the export lacks. */
#include <string.h>

#include "emit/conv.h"
#include "lower/lowering.h"

/* The older exporter names what it computed itself: weight and bias where it folded a batch norm into a
 * convolution, which had no bias before, as usual. Constant folding alone computes a weight. */
bool onv_is_computed_conv(const onv_emitter *e, onv_value_id id)
{
    static const char prefix[] = "onnx::Conv_";
    return onv_is_value(id) &&
           strncmp(onv_model_value(e->model, id)->name, prefix, strlen(prefix)) == 0;
}

static onv_conv_call call_of(const onv_node *node)
{
    onv_conv_call call = {.groups = onv_node_int(node, "group", 1),
                          .is_transposed = node->code == ONV_OP_ConvTranspose};
    const onv_attr *strides = onv_node_attr(node, "strides"), *pads = onv_node_attr(node, "pads"),
                   *dilations = onv_node_attr(node, "dilations");
    for (uint32_t i = 0; i < 3; i++) {
        call.stride[i] = onv_attr_int_at(strides, i, 1);
        call.dilation[i] = onv_attr_int_at(dilations, i, 1);
        call.pad[i] = onv_attr_int_at(pads, i, -1);
    }
    return call;
}

uint32_t onv_lower_conv(onv_lowering *l, const onv_node *node)
{
    enum { X, W, BIAS };
    uint32_t in[] = {onv_emit_padded(l, node, onv_node_in(l, node, X)), onv_node_in(l, node, W),
                     onv_node_in(l, node, BIAS)};
    uint32_t norm_bias;
    onv_shape shape;
    bool unfolds = onv_node_unfolds(&l->emit, node, &in[BIAS], &norm_bias);
    if (in[BIAS] == ONV_NO_TENSOR && onv_value_shape(l, node->outputs[0], &shape) && shape.rank > 1)
        in[BIAS] = onv_dropped_bias(l, node, shape.dims[1]);
    onv_amp_low_all(&l->emit, in, sizeof in / sizeof in[0]);
    onv_eager_tensor t = onv_tensor_at(&l->emit, in[X]);
    uint32_t out = in[X] == ONV_NO_TENSOR ? onv_node_new(l, node, 0, t.dtype)
                                          : onv_node_new_image(l, node, &t, t.dtype);
    onv_conv_call call = call_of(node);
    onv_emit_conv(&l->emit, &call, in[X], in[W], in[BIAS], out);
    l->emit.eager->folded_norms += onv_is_computed_conv(&l->emit, node->inputs[1]);
    return unfolds ? onv_emit_unfolded_norm(&l->emit, node, out, norm_bias) : out;
}
