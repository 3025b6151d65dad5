/* The graph: values and nodes in arrays, referred to by ids.
 *
 *   model ── graphs[] ── nodes (ids, in execution order)
 *        ├── nodes[]  ── inputs, outputs (value ids), attributes (which may hold graph ids)
 *        └── values[] ── type, contents, where it comes from
 *
 * graphs[0] is the main graph; a subgraph (of If, Loop, Scan ...) is another entry, owned by a
 * node. Local functions are expanded where they are called, so that every node is a real operator.
 * A value belongs to the graph that defines it; nodes of inner graphs may read values of outer ones.
 *
 * Everything but the arrays themselves lives in the model's arena. The model never holds weights:
 * a payload says where its bytes lie (in the model's file, in an external file), and they are read
 * only for small tensors that decide shapes.
 */
#ifndef ONV_IR_MODEL_H
#define ONV_IR_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/vec.h"
#include "ir/ids.h"
#include "ir/type.h"

/* Numbers of operators' names, by which they are compared: a name that nothing asks for has none. */

typedef enum onv_op_name {
    ONV_OP_OTHER = 0,
#define OP(name) ONV_OP_##name,
#include "ir/op_names.def"
#undef OP
    ONV_N_OP_NAMES
} onv_op_name;

onv_op_name onv_op_name_of(const char *op_type);

/* Where a tensor's elements lie. `bytes` counts what is there, which a hostile file may set apart
 * from what the dims ask for; readers check. */
typedef enum onv_payload_kind {
    ONV_PAYLOAD_NONE = 0, /* no data at all (allowed for empty tensors) */
    ONV_PAYLOAD_RAW,      /* little-endian elements, 4- and 2-bit types packed */
    ONV_PAYLOAD_PACKED,   /* a packed protobuf field: fixed32/64 floats, or varints */
    ONV_PAYLOAD_EXTERNAL, /* in another file, raw */
} onv_payload_kind;

/* Raw bytes up to so many are in memory with their tensor. */
enum { ONV_PAYLOAD_AT_HAND = 64 };

typedef struct onv_payload {
    uint8_t kind; /* onv_payload_kind */
    union {
        const unsigned char
            *data; /* RAW, PACKED: in the arena; NULL: in the model's file, at `offset` */
        const char *location; /* EXTERNAL: path relative to the model's folder */
    };
    uint64_t bytes;
    uint64_t offset;
} onv_payload;

/* A constant tensor: its type is always static. For a sparse tensor `indices` counts the stored
 * elements; bytes are those of values and indices. */
typedef struct onv_tensor {
    const char *name; /* interned, may be "" */
    onv_type type;
    onv_payload payload;
    uint64_t bytes; /* what its elements take, from dtype and dims */
    uint64_t elems;
    const char
        *folded_from; /* names of what the exporter computed it of, quoted; NULL: not noted */
} onv_tensor;

typedef enum onv_attr_kind { /* the numbers of onnx.AttributeProto.AttributeType */
                             ONV_ATTR_UNDEFINED = 0,
                             ONV_ATTR_FLOAT = 1,
                             ONV_ATTR_INT = 2,
                             ONV_ATTR_STRING = 3,
                             ONV_ATTR_TENSOR = 4,
                             ONV_ATTR_GRAPH = 5,
                             ONV_ATTR_FLOATS = 6,
                             ONV_ATTR_INTS = 7,
                             ONV_ATTR_STRINGS = 8,
                             ONV_ATTR_TENSORS = 9,
                             ONV_ATTR_GRAPHS = 10,
                             ONV_ATTR_SPARSE_TENSOR = 11,
                             ONV_ATTR_SPARSE_TENSORS = 12,
                             ONV_ATTR_TYPE_PROTO = 13,
                             ONV_ATTR_TYPE_PROTOS = 14,
} onv_attr_kind;

typedef struct onv_attr {
    const char *name; /* interned */
    uint8_t kind;     /* onv_attr_kind */
    uint32_t
        count; /* of the plural kinds; the lists of ai.onnx.ml may have no elements here: NULL */
    union {
        int64_t i;
        float f;
        const char *s; /* NUL-terminated; never NULL for STRING */
        const int64_t *ints;
        const float *floats;
        const char *const *strings;
        const onv_tensor *tensor; /* TENSOR, SPARSE_TENSOR, and the plural ones: `count` of them */
        onv_graph_id graph;
        const onv_graph_id *graphs;
        const onv_type *type;
    };
} onv_attr;

/* Memory semantics of a node; what the runtimes and autograd make of them is decided on later
 * layers. Bit k of a mask: input or output k; those beyond 31 share bit 31. */
typedef struct onv_traits {
    uint8_t view_of;   /* 1 + the input whose buffer output 0 may share unchanged; 0: none */
    uint32_t inplace;  /* inputs that output 0 may overwrite when they die here (elementwise) */
    uint32_t save_in;  /* inputs that PyTorch keeps for backward, where src/lower has no rule */
    uint32_t save_out; /* outputs likewise */
} onv_traits;

/* Where a node of a rewritten graph runs. */
typedef enum onv_provider {
    ONV_PROVIDER_NONE = 0, /* nobody said */
    ONV_PROVIDER_CPU,
    ONV_PROVIDER_CUDA,
} onv_provider;

typedef struct onv_node {
    const char *name;    /* unique or "" as in the file; nodes of functions carry their path */
    const char *op_type; /* set together with `code`: onv_node_set_op */
    const char *domain;  /* "" for ai.onnx */
    const struct onv_notes *notes; /* of the exporter or a program: notes.h; NULL: nothing */
    onv_graph_id graph;            /* the graph it stands in */
    uint32_t place;    /* in the file's main graph: of the node that it is, or is a part of */
    uint16_t code;     /* onv_op_name of op_type, whatever the domain */
    uint8_t provider;  /* onv_provider; set by rewriting */
    bool lacks_kernel; /* likewise: the CPU runs it, as CUDA cannot */
    bool
        contradicts; /* its operator's definition: nothing is known of its outputs but what the file declares */
    int32_t version; /* of the domain's opset that applies here */
    uint32_t n_inputs, n_outputs, n_attrs;
    onv_value_id *inputs; /* ONV_NO_VALUE where an optional one is absent */
    onv_value_id *outputs;
    onv_attr *attrs;
    const struct onv_op *op; /* the row of the operator table; NULL until inferred or unknown */
    onv_traits traits;       /* set by inference */
    onv_dim macs;            /* multiply-accumulates; set by inference */
    onv_dim element_ops;     /* element operations that are no MACs */
} onv_node;

void onv_node_set_op(onv_node *node, const char *op_type);

static inline bool onv_code_is_any(uint16_t code, const uint16_t *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (codes[i] == code) return true;
    return false;
}

/* Whether its operator has one of these names. */
#define ONV_IS_ANY(node, ...)                                                                      \
    onv_code_is_any((node)->code, (const uint16_t[]){__VA_ARGS__},                                 \
                    sizeof((const uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t))

static inline bool onv_node_scatters(const onv_node *node)
{
    return ONV_IS_ANY(node, ONV_OP_Scatter, ONV_OP_ScatterElements, ONV_OP_ScatterND);
}

typedef enum onv_value_kind {
    ONV_VALUE_ACTIVATION = 0, /* the output of a node */
    ONV_VALUE_INPUT,          /* an input of its graph (of a subgraph: set by the owner node) */
    ONV_VALUE_INITIALIZER,
    ONV_VALUE_CONSTANT, /* the output of a Constant node */
} onv_value_kind;

/* The names that one note of the main graph lists, of the network that was exported: set all at once. */
typedef struct onv_listed {
    const char *const *parameters; /* in its order */
    const char *const *buffers;    /* its other tensors: registered buffers, then attributes */
    const char *const *updated;    /* those of them that the pass writes */
    size_t n_parameters, n_buffers, n_registered, n_updated;
} onv_listed;

/* The parameter at that place of the list; NULL: it has none there. */
static inline const char *onv_listed_parameter(const onv_listed *listed, size_t place)
{
    return place < listed->n_parameters ? listed->parameters[place] : NULL;
}

/* What PyTorch's exporter notes of an initializer. */
typedef enum onv_value_role {
    ONV_ROLE_NOT_NOTED = 0,
    ONV_ROLE_PARAMETER,
    ONV_ROLE_BUFFER
} onv_value_role;

typedef struct onv_value {
    const char *name;     /* as in the file; values of subgraphs and functions carry their path */
    uint8_t kind;         /* onv_value_kind */
    uint8_t role;         /* onv_value_role, of an initializer */
    bool is_output : 1;   /* of its graph */
    bool overridable : 1; /* an initializer that is also a graph input */
    bool bound_used : 1;  /* set by inference: a dim is an upper bound, not the exact size */
    bool known_tried : 1; /* set by inference: the contents of `tensor` were asked for */
    bool is_dropped : 1; /* set by inference: only branches that cannot be taken read this weight */
    bool is_on_host : 1; /* set by rewriting: it lies in the host's memory */
    /* Set by inference: a weight that is taken to be in the model's format, or what a Transpose makes of one, which is not
     * made at all. */
    bool is_packed : 1;
    onv_graph_id graph;
    onv_node_id producer;  /* ONV_NO_NODE for inputs and initializers */
    uint32_t output_index; /* which output of the producer */
    onv_type type;         /* as inferred; inputs and constants: from the start */
    const onv_type
        *declared; /* from value_info or the graph's inputs and outputs; NULL where absent */
    const onv_tensor *tensor; /* INITIALIZER, CONSTANT (NULL for string constants) */
    const onv_known *known;   /* contents, where they are tracked */
} onv_value;

typedef struct onv_graph {
    const char *name; /* path of a subgraph, "" for the main graph */
    onv_node_id owner;
    const char *owner_attr; /* "then_branch", "body" ... */
    onv_node_id *nodes;     /* in execution order once checked */
    uint32_t n_nodes;
    onv_value_id *inputs; /* without initializers that are also inputs */
    uint32_t n_inputs;
    onv_value_id *outputs;
    uint32_t n_outputs;
    /* Set by inference. */
    bool never_runs; /* a branch that cannot be taken, a body without trips, or inside one */
    bool
        is_unrolled; /* a body whose iterations were inferred one by one: types are of the last one */
    onv_dim trips;   /* how often it runs each time its owner does: a body; 1 elsewhere */
} onv_graph;

typedef struct onv_opset {
    const char *domain;
    int32_t version;
} onv_opset;

typedef enum onv_severity { ONV_NOTE, ONV_WARNING } onv_severity;

/* Something about the model that a user should know, but that does not stop the analysis. */
typedef struct onv_diag {
    onv_severity severity;
    const char *code;    /* static text like "unknown-op" */
    const char *node;    /* name, may be NULL */
    const char *message; /* in the arena */
} onv_diag;

/* An output of the main graph that continues an input, which the application holds as long: their places in the
 * graph's lists. It lies in the memory of the input, which has room for it, or is a copy. */
typedef struct onv_shared_output {
    uint32_t input, output;
    bool is_copy;
} onv_shared_output;

typedef struct onv_model {
    onv_arena arena;
    onv_strings strings;
    onv_dims dims;
    const char *path;
    int64_t ir_version;
    const char *producer; /* name and version, "" if absent */
    ONV_VEC(onv_opset) opsets;
    ONV_VEC(onv_value) values;
    ONV_VEC(onv_node) nodes;
    ONV_VEC(onv_graph) graphs;
    ONV_VEC(onv_diag) diags;
    uint64_t dropped_diags; /* beyond ONV_MAX_DIAGS */
    uint32_t most_known;    /* elements of a tensor whose contents are followed */
    uint64_t most_output;   /* bytes of one report; 0: no limit */
    bool no_external_data;  /* files beside the model's own are not opened */
    bool told_external;     /* the diagnostic about one that is not read was given */
    onv_listed listed;
    const onv_shared_output *shared; /* where an application says so */
    uint32_t n_shared;
    const struct onv_weight_format *weight_format; /* of what is packed; NULL: nothing is */
    bool trains_constants; /* set by inference: Constant nodes hold the parameters */
    bool has_providers;    /* set by rewriting: of nodes, and where values lie */
    /* The model is the view of a program (src/program): node i is call i, value i is value i, and eager
     * PyTorch runs the program's calls. NULL: it is what a file of ONNX says. */
    const struct onv_program *program;
    const struct onv_fusions *fusions; /* that were found in it (fuse/fuse.h); NULL: none yet */
    struct onv_source *source;         /* its file, see load/source.h */
    void (*source_close)(struct onv_source *source); /* NULL: the file is another model's */
} onv_model;

enum { ONV_MAX_DIAGS = 1000 };

void onv_model_init(onv_model *model, size_t arena_limit_bytes);
void onv_model_cleanup(onv_model *model);

/* The same graph with arrays, lists of inputs and outputs, an arena and a pool of dims of its own, to be
 * edited: ids are the same. What is never changed (names, types, tensors, attributes) is shared, so
 * that `from` must outlive it. Diagnostics are not taken over. On failure `to` is cleaned up. */
onv_status onv_model_copy(const onv_model *from, onv_model *to, onv_error *err);

static inline onv_value *onv_model_value(const onv_model *model, onv_value_id id)
{
    return &model->values.at[id.index];
}

static inline onv_node *onv_model_node(const onv_model *model, onv_node_id id)
{
    return &model->nodes.at[id.index];
}

/* The value that is input or output k of the node; NULL: it has none there. */
static inline onv_value *onv_node_input(const onv_model *model, const onv_node *node, uint32_t k)
{
    bool is_there = k < node->n_inputs && onv_is_value(node->inputs[k]);
    return is_there ? onv_model_value(model, node->inputs[k]) : NULL;
}

static inline onv_value *onv_node_output(const onv_model *model, const onv_node *node, uint32_t k)
{
    bool is_there = k < node->n_outputs && onv_is_value(node->outputs[k]);
    return is_there ? onv_model_value(model, node->outputs[k]) : NULL;
}

/* The node that makes the value; NULL: none does. */
static inline const onv_node *onv_model_maker(const onv_model *model, onv_value_id id)
{
    onv_node_id maker = onv_is_value(id) ? onv_model_value(model, id)->producer : ONV_NO_NODE;
    return onv_is_node(maker) ? onv_model_node(model, maker) : NULL;
}

static inline onv_graph *onv_model_graph(const onv_model *model, onv_graph_id id)
{
    return &model->graphs.at[id.index];
}

/* Initializers and constants: counted as weights, not as activations. */
static inline bool onv_value_is_weight(const onv_value *value)
{
    return value->kind == ONV_VALUE_INITIALIZER || value->kind == ONV_VALUE_CONSTANT;
}

/* A weight that training may change: PyTorch writes parameters as initializers and its Constant nodes
 * are numbers in the code, Paddle and spox write parameters as Constant nodes. */
static inline bool onv_value_may_train(const onv_model *model, const onv_value *value)
{
    return value->kind == ONV_VALUE_INITIALIZER ||
           (value->kind == ONV_VALUE_CONSTANT && model->trains_constants);
}

/* A weight that a run holds: its elements count. */
static inline bool onv_value_is_held(const onv_value *value)
{
    return onv_value_is_weight(value) && value->tensor != NULL && !value->is_dropped;
}

/* Element i of an attribute (NULL: none) that is a list of integers. */
static inline int64_t onv_attr_int_at(const onv_attr *attr, uint32_t i, int64_t fallback)
{
    bool is_there =
        attr != NULL && attr->kind == ONV_ATTR_INTS && attr->ints != NULL && i < attr->count;
    return is_there ? attr->ints[i] : fallback;
}

/* The attribute of that name, or NULL. */
const onv_attr *onv_node_attr(const onv_node *node, const char *name);
/* An attribute that is an integer, or element i of one that is a list of them. */
int64_t onv_node_int(const onv_node *node, const char *name, int64_t fallback);
/* The attribute "axis" among so many axes, counted from the first one; -1: it is outside of them. */
int64_t onv_node_axis(const onv_node *node, int64_t fallback, int64_t rank);
int64_t onv_node_int_at(const onv_node *node, const char *name, uint32_t i, int64_t fallback);

/* Adds a diagnostic; silently dropped (and counted) beyond ONV_MAX_DIAGS or without memory. */
void onv_model_diag(onv_model *model, onv_severity severity, const char *code, const char *node,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
