/* Layer graphs in Checkmate's cost model (Jain et al., MLSys 2020), as chains.
 *
 * A layer makes one tensor of 4-byte elements. The gradient of a layer's output has its size; making
 * it needs that output, the outputs of all layers that read it, and their gradients. It is made where
 * the first of them goes backward: until then the outputs and gradients of the others wait. Nothing
 * is counted for the image. Parameters and their gradients are a fixed sum.
 */
#ifndef ONV_TESTS_LAYERS_H
#define ONV_TESTS_LAYERS_H

#include "ckpt/chain.h"

enum { MAX_LAYERS = ONV_CHAIN_MAX_UNITS, MAX_LAYER_INPUTS = 2 };

#define IMAGE (-1) /* an input that is no layer */

typedef struct layer {
    uint64_t height, width, channels;
    uint64_t cost;
    bool pads;                /* what reads it pads no more */
    int in[MAX_LAYER_INPUTS]; /* IMAGE, or an earlier layer */
    int n_in;
} layer;

typedef struct layers {
    layer at[MAX_LAYERS];
    int count;
    uint64_t height, width; /* of the image, 3 channels */
    uint64_t parameters;
    /* of the chain */
    onv_chain_unit units[MAX_LAYERS];
    onv_chain_tensor tensors[MAX_LAYERS];
    onv_chain_reader readers[MAX_LAYERS * MAX_LAYER_INPUTS];
    uint64_t turn_bytes[MAX_LAYERS + 1];
} layers;

/* Each appends a layer and returns its number. Kernels pad to keep the size unless a
 * layer before them did. */
int layer_conv(layers *l, int in, uint64_t kernel, uint64_t channels, uint64_t stride, bool bias);
int layer_depthwise(layers *l, int in, uint64_t kernel, uint64_t stride);
int layer_norm(layers *l, int in);
int layer_relu(layers *l, int in);
int layer_add(layers *l, int a, int b);
int layer_concat(layers *l, int a, int b);
int layer_pad(layers *l, int in, uint64_t height, uint64_t width); /* by so much in all */
int layer_pool(layers *l, int in, uint64_t kernel, uint64_t stride);
int layer_up(layers *l, int in); /* twice the size */
int layer_dense(layers *l, int in, uint64_t channels);
/* reshape, dropout, softmax: 1 x 1 pixel with all elements, or the shape of its input */
int layer_flatten(layers *l, int in);
int layer_same(layers *l, int in);

void net_vgg19(layers *l);
void net_mobilenet(layers *l);
void net_resnet50(layers *l);
void net_unet(layers *l);

/* The chain for one image; it points into `l`. */
onv_chain layers_chain(layers *l);

/* No schedule needs less: what the dearest single gradient needs. */
uint64_t layers_bound(const layers *l);

#endif
