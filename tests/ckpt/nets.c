/* The networks of Checkmate's evaluation as Keras builds them: padding is a layer of its own, and so
 * are batch norms and their activations; a convolution or dense layer with an activation is one. */
#include "ckpt/layers.h"

void net_vgg19(layers *l)
{
    static const struct {
        int convs;
        uint64_t channels;
    } blocks[] = {{2, 64}, {2, 128}, {4, 256}, {4, 512}, {4, 512}};
    *l = (layers){.height = 224, .width = 224};
    int x = IMAGE;
    for (int b = 0; b < 5; b++) {
        for (int i = 0; i < blocks[b].convs; i++)
            x = layer_conv(l, x, 3, blocks[b].channels, 1, true);
        x = layer_pool(l, x, 2, 2);
    }
    x = layer_flatten(l, x);
    x = layer_dense(l, x, 4096);
    x = layer_dense(l, x, 4096);
    layer_dense(l, x, 1000);
}

static int norm_relu(layers *l, int x)
{
    return layer_relu(l, layer_norm(l, x));
}

void net_mobilenet(layers *l)
{
    static const struct {
        uint64_t channels, stride;
    } blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                  {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    *l = (layers){.height = 224, .width = 224};
    int x = norm_relu(l, layer_conv(l, layer_pad(l, IMAGE, 1, 1), 3, 32, 2, false));
    for (int b = 0; b < 13; b++) {
        if (blocks[b].stride == 2) x = layer_pad(l, x, 1, 1);
        x = norm_relu(l, layer_depthwise(l, x, 3, blocks[b].stride));
        x = norm_relu(l, layer_conv(l, x, 1, blocks[b].channels, 1, false));
    }
    x = layer_pool(l, x, 7, 7);
    x = layer_same(l, layer_same(l, x)); /* reshape, dropout */
    x = layer_conv(l, x, 1, 1000, 1, true);
    layer_same(l, layer_same(l, x)); /* reshape, softmax */
}

static int bottleneck(layers *l, int x, uint64_t channels, uint64_t stride, bool projects)
{
    int shortcut = x;
    if (projects) {
        shortcut = layer_norm(l, layer_conv(l, x, 1, 4 * channels, stride, true));
    }
    int y = norm_relu(l, layer_conv(l, x, 1, channels, stride, true));
    y = norm_relu(l, layer_conv(l, y, 3, channels, 1, true));
    y = layer_norm(l, layer_conv(l, y, 1, 4 * channels, 1, true));
    return layer_relu(l, layer_add(l, shortcut, y));
}

void net_resnet50(layers *l)
{
    static const int blocks[] = {3, 4, 6, 3};
    *l = (layers){.height = 224, .width = 224};
    int x = norm_relu(l, layer_conv(l, layer_pad(l, IMAGE, 6, 6), 7, 64, 2, true));
    x = layer_pool(l, layer_pad(l, x, 2, 2), 3, 2);
    for (int stage = 0; stage < 4; stage++)
        for (int b = 0; b < blocks[stage]; b++)
            x = bottleneck(l, x, UINT64_C(64) << stage, stage > 0 && b == 0 ? 2 : 1, b == 0);
    x = layer_pool(l, x, 7, 7);
    layer_dense(l, x, 1000);
}

/* With the encoder of VGG16 and a decoder that starts from its fourth block. */
void net_unet(layers *l)
{
    static const int convs[] = {2, 2, 3, 3};
    int pooled[4];
    *l = (layers){.height = 416, .width = 608};
    int x = IMAGE;
    for (int b = 0; b < 4; b++) {
        for (int i = 0; i < convs[b]; i++) x = layer_conv(l, x, 3, UINT64_C(64) << b, 1, true);
        pooled[b] = x = layer_pool(l, x, 2, 2);
    }
    x = layer_norm(l, layer_conv(l, layer_pad(l, x, 2, 2), 3, 512, 1, true));
    for (int b = 2; b >= 0; b--) {
        x = layer_concat(l, layer_up(l, x), pooled[b]);
        x = layer_norm(l, layer_conv(l, layer_pad(l, x, 2, 2), 3, UINT64_C(64) << b, 1, true));
    }
    x = layer_conv(l, x, 3, 10, 1, true);
    layer_same(l, layer_same(l, x)); /* reshape, softmax */
}
