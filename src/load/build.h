/* From the records of the scan to the model: what the build_*.c files share.
 *
 * A scope is a stretch of nodes with its names: a graph, a subgraph (which sees the scopes around
 * it) or the body of a function at one call (which sees nothing but its inputs). Each is built in two
 * passes: the first gives every name an id, the second builds the nodes and finds what they read,
 * so that nodes may stand in any order.
 *
 *     graph ── If_3/then_branch ── ...          outer: names are looked up from inside out
 *       └── body of a function called here      no outer; inputs are the caller's ids, outputs too
 *
 * Attributes of a call are not built at the call but where the body refers to them, in the scope of
 * the caller (a graph attribute sees the caller's names): a binding is an attribute and its scope.
 *
 * protobuf-c unpacks attributes and types one at a time, each in the place of the one before.
 */
#ifndef ONV_LOAD_BUILD_H
#define ONV_LOAD_BUILD_H

#include "base/ptr_map.h"
#include "ir/model.h"
#include "load/scan.h"
#include "load/text.h"
#include "onnx.pb-c.h"

/* From names to values, of one scope. The main graph has most names of a file, so that its map is an array by name: names
 * that are defined one after the other stand side by side. Scopes of inner graphs and calls are many, and small: they have
 * a hash map. */
typedef struct onv_name_map {
    onv_ptr_map some;
    uint32_t *all; /* 1 + the value, by name; 0: none. NULL: `some` has them */
} onv_name_map;

static inline const void *onv_key_of_name(onv_name name)
{
    return (const void *)(uintptr_t)name; /* NOLINT(performance-no-int-to-ptr): a key of the map */
}

/* Adds or replaces; false when memory is short. A name may stand for no value. */
static inline bool onv_name_set(onv_name_map *names, onv_name name, onv_value_id id)
{
    if (names->all == NULL) return onv_ptr_map_set(&names->some, onv_key_of_name(name), id.index);
    names->all[name] = id.index + 1;
    return true;
}

/* Whether the name is there; then *id is set (NULL allowed). */
static inline bool onv_name_get(const onv_name_map *names, onv_name name, onv_value_id *id)
{
    uint32_t *index = id != NULL ? &id->index : NULL;
    if (names->all == NULL) return onv_ptr_map_get(&names->some, onv_key_of_name(name), index);
    if (names->all[name] != 0 && id != NULL) id->index = names->all[name] - 1;
    return names->all[name] != 0;
}

typedef struct onv_scope onv_scope;

typedef struct onv_function {
    const onv_scan_function *record;
    const char *name, *domain;
    onv_ptr_map versions; /* of its own opset imports, by domain */
    uint64_t cost;        /* nodes and calls of one expansion, saturating */
    uint32_t depth;       /* of calls, its own included */
    uint8_t visit;        /* of the walk that finds both */
} onv_function;

/* The attributes of one call, by name. */
typedef struct onv_binding {
    const onv_scan_attr *attr;
    const onv_scope *scope;
} onv_binding;

typedef struct onv_bindings {
    onv_ptr_map index; /* by attribute name: of `list` */
    ONV_VEC(onv_binding) list;
} onv_bindings;

/* Nodes whose attributes are the same share a list of them. */
enum { ONV_BUILT_LATELY = 256 };

typedef struct onv_built_attrs {
    onv_range attrs; /* of the scan; none: empty */
    onv_attr *list;
} onv_built_attrs;

typedef struct onv_node_list {
    onv_node_id *at;
    size_t count, capacity;
} onv_node_list;

struct onv_scope {
    const onv_scope *outer; /* whose names are visible too */
    onv_name_map names;
    const onv_name_map *results;  /* function: output name to the caller's value */
    const onv_ptr_map *versions;  /* opset imports by domain */
    const onv_bindings *bindings; /* attributes of the call; NULL outside functions */
    const char *prefix;           /* of names: "", "If_3/then_branch/" */
    onv_graph_id graph;           /* that the nodes stand in */
    uint32_t graphs, calls;       /* how deep it stands in subgraphs and in functions */
    onv_node_list *nodes;         /* of that graph */
};

typedef struct onv_builder {
    onv_model *model;
    const onv_limits *limits; /* resolved */
    uint64_t most_expanded;   /* nodes that functions may become */
    const onv_scan *scan;
    onv_function *functions;
    size_t n_functions;
    onv_ptr_map function_at; /* their indices, by a text of their names */
    onv_ptr_map versions;    /* the model's opset imports, by domain */
    onv_ptr_map
        elsewhere; /* those of all functions; 1 of domains that nobody imports, which is said once */
    onv_ptr_map signature;     /* what calls name a parameter: its place in the model's list */
    ONV_VEC(char) text;        /* scratch for names under construction */
    ONV_VEC(onv_text) tensors; /* that the call of the node names that is being built */
    onv_arena unpacked;        /* the message that protobuf-c made last */
    onv_built_attrs built[ONV_BUILT_LATELY]; /* lately, by a mix of their place */
    const char *empty;                       /* "", interned */
    uint32_t place;                          /* of the main graph's node that is being built */
    uint64_t work; /* nodes and calls so far: bounds what expansion can do */
    onv_error *err;
} onv_builder;

/* --- build.c ----------------------------------------------------------------------------------- */

/* The whole model, except its source. */
onv_status onv_build_model(onv_builder *b);
void onv_builder_init(onv_builder *b, onv_model *model, const onv_scan *scan,
                      const onv_limits *limits, onv_error *err);
void onv_builder_cleanup(onv_builder *b);

/* A message of the skeleton is unpacked until the next one. */
onv_status onv_build_unpack(onv_builder *b, onv_span span, const ProtobufCMessageDescriptor *type,
                            const ProtobufCMessage **message);

/* Interns `text` (NULL: ""), a stretch of text, or `text` behind a prefix where there is one. */
onv_status onv_build_intern(onv_builder *b, const char *text, const char **name);
onv_status onv_build_text(onv_builder *b, onv_text text, const char **name);
onv_status onv_build_join(onv_builder *b, const char *prefix, const char *text, const char **name);

/* Adds an opset import; of each domain the highest version holds. */
onv_status onv_build_import(onv_builder *b, const Onnx__OperatorSetIdProto *pb,
                            onv_ptr_map *versions);
onv_status onv_build_version(onv_builder *b, const onv_scope *scope, const char *domain,
                             int32_t *version);

static inline const char *onv_build_name(const onv_builder *b, onv_name name)
{
    return onv_string_at(&b->model->strings, name);
}

/* --- build_type.c ------------------------------------------------------------------------------ */

/* What a dim without a value means. */
typedef enum onv_free_dims {
    ONV_FREE_SYMBOL,  /* input of the model: a symbol, named after input and axis if need be */
    ONV_FREE_UNKNOWN, /* declared elsewhere: a symbol if it has a name, else unknown */
    ONV_FREE_LOCAL,   /* inside a function: unknown, as one name means something else per call */
} onv_free_dims;

/* `name` is the value's, for messages. */
onv_status onv_build_type(onv_builder *b, const Onnx__TypeProto *pb, const char *name,
                          onv_free_dims free_dims, onv_type *type);
/* The same of what the file declares of a value. */
onv_status onv_build_value_type(onv_builder *b, const onv_scan_value *value, const char *name,
                                onv_free_dims free_dims, onv_type *type);

/* --- build_tensor.c ---------------------------------------------------------------------------- */

/* Dense, or sparse. */
onv_status onv_build_tensor(onv_builder *b, const onv_scan_tensor *record, onv_tensor *tensor);
onv_status onv_build_sparse(onv_builder *b, const onv_scan_tensor *record, onv_tensor *tensor);

/* A tensor over an array of numbers that the arena holds; rank 0 or 1. */
onv_status onv_build_list_tensor(onv_builder *b, onv_dtype dtype, int rank, const void *data,
                                 uint64_t elems, onv_tensor *tensor);

/* --- build_attr.c ------------------------------------------------------------------------------ */

/* The attributes of node `id`, whose inputs and outputs stand already. `path` names the node. */
onv_status onv_build_attrs(onv_builder *b, const onv_scope *scope, const onv_scan_node *record,
                           const char *path, onv_node_id id);

/* --- build_graph.c ----------------------------------------------------------------------------- */

/* A graph. `closure` is the scope whose names it sees, `host` the one its owner stands in (they
 * differ for graphs that are passed to functions); both NULL for the main graph. */
onv_status onv_build_graph(onv_builder *b, const onv_scan_graph *record, const onv_scope *closure,
                           const onv_scope *host, onv_node_id owner, const char *owner_attr,
                           const char *path, onv_graph_id *id);

/* How many list items of a graph are worked through, nodes apart. */
uint64_t onv_build_graph_items(const onv_scan_graph *record);

/* The prefix of names inside `path`: itself with a slash, or a number where it is too long. */
onv_status onv_build_prefix(onv_builder *b, const char *path, const char **prefix);

/* The value of that name, looked up from inside out. */
bool onv_scope_find(const onv_scope *scope, onv_name name, onv_value_id *id);

/* Gives ids to the outputs of nodes / builds the nodes. */
onv_status onv_build_outputs(onv_builder *b, onv_scope *scope, onv_record_list nodes);
onv_status onv_build_nodes(onv_builder *b, const onv_scope *scope, onv_record_list nodes);
/* Sets what is declared of values, except those before `first_value`. */
onv_status onv_build_declared(onv_builder *b, const onv_scope *scope, onv_record_list values,
                              onv_free_dims free_dims, size_t first_value);

/* --- build_node.c ------------------------------------------------------------------------------ */

/* Counts towards the limit on nodes. Inside functions long lists count too, as they are worked
 * through at every call; onv_build_cost says how much so many list items count. */
onv_status onv_build_work(onv_builder *b, uint64_t amount);
uint64_t onv_build_cost(uint64_t items, bool in_function);

onv_status onv_build_node(onv_builder *b, const onv_scope *scope, const onv_scan_node *record,
                          size_t index);

/* The names that a node or function reads; those that it makes stand behind them. */
static inline const onv_name *onv_build_inputs(const onv_builder *b, const onv_scan_node *record)
{
    return b->scan->names.at + record->names;
}

/* A node that hands its input on. `name` is interned. */
onv_status onv_build_identity(onv_builder *b, const onv_scope *scope, const char *name,
                              onv_value_id input, onv_value_id output);

/* --- build_notes.c ----------------------------------------------------------------------------- */

/* What the exporter notes of a node, whose operator and inputs stand already. */
onv_status onv_build_notes(onv_builder *b, const onv_scan_node *record, onv_node *node);
/* The parameters and buffers that a note of the main graph lists. */
onv_status onv_build_signature(onv_builder *b, const onv_scan_graph *record);

/* --- build_function.c -------------------------------------------------------------------------- */

/* The table of local functions, and whether their expansion keeps the limits. */
onv_status onv_build_functions(onv_builder *b);

/* The function that the node calls, or NULL. */
onv_function *onv_build_find_function(const onv_builder *b, const onv_scan_node *node);

/* Puts the function's body in place of the call. */
onv_status onv_build_call(onv_builder *b, const onv_scope *caller, const onv_scan_node *record,
                          const onv_function *function, const char *path);

#endif
