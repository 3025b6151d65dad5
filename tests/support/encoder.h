/* A layer of nn.TransformerEncoder, or attention alone, as PyTorch's default exporter writes it. */
#ifndef ONV_TESTS_ENCODER_H
#define ONV_TESTS_ENCODER_H

#include "support/onnx_writer.h"

/* 2 x 4 rows of 16 values, 2 heads, 32 values between. `perm`: "perm=[1,0,2]" where the batch is first. */
model *encoder_layer(const char *perm);

/* The same as the older exporter writes it; `bias` is the name of that of the packed projection. */
model *encoder_layer_named(const char *bias);

/* nn.MultiheadAttention alone, as the layer has it; `has_weights`: with scores as for weights that it returns; `has_mask`: to which 128
 * bytes of an initializer are added. */
model *attention_module(bool has_weights, bool has_mask);

#endif
