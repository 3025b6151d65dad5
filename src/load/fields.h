/* What the scan does with each field of each message that can hold something it keeps. */
#ifndef ONV_LOAD_FIELDS_H
#define ONV_LOAD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum onv_message {
    ONV_MSG_MODEL,
    ONV_MSG_OPSET,
    ONV_MSG_PAIR, /* StringStringEntryProto */
    ONV_MSG_GRAPH,
    ONV_MSG_NODE,
    ONV_MSG_ATTRIBUTE,
    ONV_MSG_VALUE_INFO,
    ONV_MSG_FUNCTION,
    ONV_MSG_TENSOR,
    ONV_MSG_SPARSE_TENSOR,
    ONV_MSG_SHAPE,
    ONV_MSG_DIMENSION,
    ONV_MSG_TYPE,
    ONV_MSG_TYPE_TENSOR,   /* and TypeProto.SparseTensor, which has the same fields */
    ONV_MSG_TYPE_SEQUENCE, /* and TypeProto.Optional */
    ONV_MSG_TYPE_MAP,
    ONV_MSG_TYPE_OPAQUE,
    ONV_MSG_COUNT
} onv_message;

typedef enum onv_field_use {
    ONV_USE_DROP = 0,  /* unknown, or of no use here */
    ONV_USE_VARINT,    /* one number */
    ONV_USE_VARINTS,   /* repeated numbers, packed or one by one */
    ONV_USE_FLOAT,     /* one fixed32 */
    ONV_USE_FLOATS,    /* repeated fixed32, packed or one by one */
    ONV_USE_STRING,    /* a name: UTF-8 of limited length */
    ONV_USE_BYTES,     /* any bytes; cut at the length of the longest name */
    ONV_USE_ONE,       /* a submessage, at most once */
    ONV_USE_MANY,      /* repeated submessages */
    ONV_USE_ONE_OF,    /* a submessage of a oneof: the last one counts */
    ONV_USE_NOTES,     /* repeated key and value: kept under a key that is read, or dropped */
    ONV_USE_RAW,       /* payload: one bytes field */
    ONV_USE_PAYLOAD32, /* payload: repeated fixed32 */
    ONV_USE_PAYLOAD64, /* payload: repeated fixed64 */
    ONV_USE_PAYLOAD,   /* payload: repeated varints */
} onv_field_use;

typedef struct onv_field {
    const char *name; /* NULL for a number that the message does not have */
    uint8_t use;      /* onv_field_use */
    uint8_t message;  /* onv_message, of submessages */
} onv_field;

const char *onv_message_name(onv_message message);

/* The keys of ONV_USE_NOTES, which PyTorch's exporter writes: the modules around a node, their classes,
 * the lines of Python that called it, the call with its arguments, whether an initializer was a
 * parameter or a buffer, and (of the graph) the names of all parameters. */
#define ONV_NOTE_SCOPES  "pkg.torch.onnx.name_scopes"
#define ONV_NOTE_CLASSES "pkg.torch.onnx.class_hierarchy"
#define ONV_NOTE_TRACE   "pkg.torch.onnx.stack_trace"
#define ONV_NOTE_CALL    "pkg.torch.onnx.fx_node"
#define ONV_NOTE_ROLE    "pkg.torch.export.graph_signature.InputSpec.kind"

#define ONV_NOTE_SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"

/* A trace begins so in a graph of its own, of torch.no_grad() or torch.autocast(), whose modules have no notes. */
#define ONV_NOTE_INNER "File \"<eval_with_key>"

/* In a line of a trace: it calls a torch.autograd.Function. */
#define ONV_NOTE_APPLY ".apply("

/* In a call: a linear layer, of which the exporter drops a bias of zeros; softmax and log_softmax, of which it
 * drops the type that they were asked for; attention, of which it drops the dropout; arguments that are slices or quotients, which it drops where they
 * change nothing. Other calls are dropped. */
#define ONV_NOTE_LINEAR    "aten.linear.default](args = ("
#define ONV_NOTE_SOFTMAX   "softmax.int](args = ("
#define ONV_NOTE_ATTENTION "aten.scaled_dot_product_attention.default](args = ("
#define ONV_NOTE_FLOAT32   "torch.float32"
#define ONV_NOTE_ARGS      "](args = ("
#define ONV_NOTE_SLICE     "%slice_"
#define ONV_NOTE_DIV       "%div"
#define ONV_NOTE_CLONE     "%clone"
#define ONV_NOTE_PARAMETER "%p_"
#define ONV_NOTE_SUB       "%sub_"

/* In the rules that made a node: a Pad became a part of a convolution. Other rules are dropped. */
#define ONV_NOTE_RULES "pkg.onnxscript.rewriter.rule_name"
#define ONV_NOTE_PAD   "FuseConvPad"

/* Never NULL: unknown numbers are dropped fields. */
const onv_field *onv_message_field(onv_message message, uint32_t number);

#endif
