/* Operators from outside of ONNX: the domain com.microsoft, plug-in nodes of TensorRT.
 *
 * Many of them are an ONNX operator in other clothes: a fused activation, inputs in another order,
 * channels last. Those borrow the row of that operator: onv_borrow_init makes a context in which
 * the node looks like the ONNX one, and the row's own rules run in it.
 */
#ifndef ONV_OPS_CONTRIB_H
#define ONV_OPS_CONTRIB_H

#include "ops/op.h"

typedef enum onv_channels {
    ONV_CHANNELS_FIRST = 0,
    ONV_CHANNELS_LAST,
    ONV_CHANNELS_LAST_IN_ALL,  /* of the weights, too: [M, kH, kW, C / group] */
    ONV_CHANNELS_BY_ATTRIBUTE, /* channels_last */
} onv_channels;

enum { ONV_ALIAS_MAX_IN = 7 };

/* The operator of the row is `as` of ONNX, at opset `version`, but for what the other fields say. */
typedef struct onv_alias {
    const char *as;
    int32_t version;
    uint8_t in[ONV_ALIAS_MAX_IN]; /* 1 + the input that is input k of `as`, 0: it has none. All 0:
                                     the inputs are the same */
    uint8_t channels;             /* onv_channels */
    uint8_t dtype_of;             /* 1 + the input that output 0 has the dtype of, if present */
    uint8_t dtype;                /* onv_dtype of output 0 otherwise; 0: as the ONNX operator's */
} onv_alias;

/* A borrowed row and the context for it. */
typedef struct onv_borrow {
    onv_op_ctx c;
    bool moved; /* the channels of input 0 were moved from the end to the front */
} onv_borrow;

/* A context in which input k is input map[k] - 1 of `c` (0: absent); map NULL: the same inputs. */
onv_status onv_borrow_init(onv_op_ctx *c, const onv_op *row, int32_t version, const uint8_t *map,
                           uint32_t n_in, onv_borrow *b);

/* Infer and macs of the row behind a row that is `with` an onv_alias. */
onv_status onv_alias_infer(onv_op_ctx *c);
onv_dim onv_alias_macs(onv_op_ctx *c);

#endif
