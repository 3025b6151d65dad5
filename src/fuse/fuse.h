/* Fusions: groups of nodes that an exporter wrote for one operation of PyTorch.
 *
 * Training memory follows what eager PyTorch keeps, not what the exporter decomposed it into: an
 * erf-GELU is one operation that keeps its input, its five nodes would keep four tensors. A group is
 * found by its shape in the graph; its inner values must have no other reader. It runs where its
 * last node stands.
 */
#ifndef ONV_FUSE_FUSE_H
#define ONV_FUSE_FUSE_H

#include "ir/model.h"
#include "ir/notes.h"
#include "timeline/timeline.h"

typedef enum onv_fusion_kind {
    ONV_FUSION_LINEAR,     /* x, weight as the MatMul takes it, bias */
    ONV_FUSION_LAYER_NORM, /* x, weight, bias */
    ONV_FUSION_GROUP_NORM, /* x, weight, bias; groups */
    ONV_FUSION_PACKED,     /* x: query, key and value of one projection are made contiguous */
    ONV_FUSION_RECURRENT,  /* the last node with what arranges its weights */
    ONV_FUSION_ATTENTION,  /* x: query; key, value, mask */
    ONV_FUSION_RMS_NORM,   /* x, weight; groups: the first axis that it runs along */
    ONV_FUSION_POINTWISE, /* x, key, value where there are as many; name; groups: of a roll, its dims; of a GELU, how many tensors more the formula would keep */
    ONV_FUSION_ADAPTIVE_POOL, /* x */
    ONV_FUSION_ENCODER_LAYER, /* x; layer */
    ONV_FUSION_CELL,          /* x, key: gates of input and state; value, state: before and after */
} onv_fusion_kind;

/* A product with a weight, as nn.TransformerEncoderLayer has four: query, key and value, what is behind
 * the attention, and two of its feed-forward network. */
typedef struct onv_encoder_product {
    onv_value_id weight, bias; /* ONV_NO_VALUE: of zeros, which the exporter drops */
    bool is_turned;            /* the weight is [outputs, inputs] */
} onv_encoder_product;

enum { ONV_ENCODER_PRODUCTS = 4 };

typedef struct onv_encoder_layer {
    onv_encoder_product products[ONV_ENCODER_PRODUCTS];
    onv_value_id norm_weight[2], norm_bias[2];
    bool norm_first;
    bool is_attention; /* and nothing else: two products, no norm */
    int64_t heads;
} onv_encoder_layer;

typedef struct onv_fusion {
    onv_fusion_kind kind;
    onv_node_id last;
    onv_value_id x, weight, bias;  /* ONV_NO_VALUE where absent */
    onv_value_id key, value, mask; /* likewise */
    onv_value_id out, state;
    int64_t groups;
    onv_node_id first; /* ATTENTION: of its nodes */
    const char *name;  /* POINTWISE: of the row of ATen, static */
    const onv_encoder_layer *layer;
} onv_fusion;

/* Attention without a kernel of its own, as scaled_dot_product_attention runs it: query and key are
 * each multiplied by the root of the scale. Its nodes run one by one; only autocast sees it as one. */
typedef enum onv_attention_part {
    ONV_ATTENTION_NONE,
    ONV_ATTENTION_INSIDE,
    ONV_ATTENTION_LAST, /* the product with the values */
} onv_attention_part;

/* What is told of a node of attention. */
typedef struct onv_attention_mark {
    uint8_t part;              /* onv_attention_part */
    bool live_dropout;         /* a Dropout that the export forgot to switch on */
    bool lost_dropout;         /* its result are probabilities that the network drops some of */
    onv_value_id scaled_query; /* of the product with the values */
    onv_value_id attended;     /* of the query's scale: the values; else ONV_NO_VALUE */
} onv_attention_mark;

typedef enum onv_fusing {
    ONV_FUSE_NOTHING,   /* only the uses are counted */
    ONV_FUSE,           /* attention stays apart */
    ONV_FUSE_CALLS,     /* calls of scaled_dot_product_attention too */
    ONV_FUSE_ATTENTION, /* all attention */
} onv_fusing;

/* What is one operation, or not, by release and device. */
typedef struct onv_fusing_kernels {
    bool rms_norm;
    bool layers; /* of nn.TransformerEncoder */
    bool cells;  /* of recurrent networks */
    bool low;    /* it runs in 16 bits: autocast */
    bool packed; /* masks of samples that follow each other in a row stay where there are none */
} onv_fusing_kernels;

typedef struct onv_fusions {
    const onv_fusion *at;
    uint32_t *of_node; /* by node: 1 + its fusion, 0: none */
    uint32_t *n_uses;  /* by value: how often nodes of the main graph and its outputs read it */
    uint32_t *n_layer_uses;        /* by value: how often recurrent layers read it as a weight */
    onv_node_id *user;             /* by value: the first node that reads it */
    onv_attention_mark *attention; /* by node */
    uint32_t n_functions;          /* calls of the network's own torch.autograd.Functions */
    uint32_t n_functions_apart;    /* nodes of others, that stay as they are */
    const char *function;          /* the last one of all */
    uint32_t n_by_form;            /* operations that their form alone tells: decomposed.c */
    const char *by_form;           /* the first one */
    uint32_t n_fast_layers;        /* of nn.TransformerEncoder, and attention alone */
    uint32_t n_other_layers;       /* of these, that may run in another way */
    uint32_t n_grouped; /* calls of attention whose kernel has more queries than keys and values */
    uint32_t n_apart; /* calls of scaled_dot_product_attention that stay apart, but have a kernel */
    /* What they were found by, and those that were found before. */
    const onv_step *steps;
    onv_fusing fusing;
    onv_fusing_kernels kernels;
    const struct onv_fusions *next;
} onv_fusions;

/* Found once for each order and way of fusing; what is found is the model's, in its arena. */
onv_status onv_fusions_find(onv_model *model, const onv_timeline *order, onv_fusing fusing,
                            onv_fusing_kernels kernels, const onv_fusions **fusions,
                            onv_error *err);

/* Does the node arrange weights of a recurrent layer, and is counted as part of one? Others may read them, too. */
bool onv_fusions_arrange(const onv_fusions *f, onv_node_id node);

/* The exporter wrote both for one call, as their notes tell. */
bool onv_is_same_call(const onv_node *a, const onv_node *b);

/* ScatterElements that reduces, but not to a sum. */
bool onv_scatter_reduces(const onv_node *node);

#endif
