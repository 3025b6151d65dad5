/* Editing a typed graph.
 *
 * Nodes are removed, replaced and added one at a time; who reads a value is kept current, nodes stay in
 * an order of execution, and what is added is typed at once. Ids stay valid until onv_edit_finish, which
 * drops what is gone and numbers the rest anew: nodes in the order in which they were made, as ONNX
 * Runtime numbers its own.
 *
 * Each value has two types. `onv_value.type` is what inference knows under the user's bindings, and is
 * what memory is counted by. What a runtime sees that rewrites a graph before it knows any size is less
 * (seen.h): rules decide by that.
 *
 * Running out of memory, and a new node that cannot be typed, is sticky: edits do nothing afterwards,
 * and whoever runs the rules looks at `status`. So rules read as what they are.
 */
#ifndef ONV_REWRITE_EDIT_H
#define ONV_REWRITE_EDIT_H

#include "infer/driver.h"
#include "ir/model.h"

#define ONV_NO_USE UINT32_MAX

/* Rules that look at all readers of a value from each of them give up beyond so many. */
enum { ONV_MOST_READERS = 512 };

/* Input `input` of `node`, in the list of what reads the same value. */
typedef struct onv_use {
    onv_node_id node;
    uint32_t input;
    uint32_t next, before;
} onv_use;

typedef struct onv_edit_value {
    uint32_t first_use, n_uses; /* by inputs of nodes; results of graphs are not among them */
    uint32_t leads; /* the last walk (transpose.c) that found it on the way to a Transpose */
    onv_type seen;
    const onv_known
        *seen_known; /* contents that the runtime follows; of weights: onv_edit_constant */
} onv_edit_value;

typedef struct onv_edit_node {
    onv_node_id next, before; /* in an order of execution of its graph */
    uint32_t first_use;       /* of its inputs, one after the other */
    bool is_removed;
} onv_edit_node;

typedef struct onv_edit_graph {
    onv_node_id first, last;
    uint32_t n_nodes;
    bool is_removed; /* with its owner */
} onv_edit_graph;

typedef struct onv_edit {
    onv_model *model;
    onv_driver driver; /* types what is added */
    ONV_VEC(onv_edit_value) values;
    ONV_VEC(onv_edit_node) nodes;
    ONV_VEC(onv_edit_graph) graphs;
    ONV_VEC(onv_use) uses;
    uint8_t *kernels; /* by operator: kernels.c */
    uint64_t n_edits; /* so far */
    uint32_t n_walks; /* of transpose.c */
    uint8_t level;    /* of the rules that run now: rules.def */
    bool is_seen;     /* nothing changed since the whole graph was looked at (seen.h) */
    onv_status status;
    onv_error *err;
    onv_error ignored; /* what a rule cannot do with the little that is seen, it leaves open */
} onv_edit;

/* Takes over a model that is inferred. Constant nodes become initializers, as in ONNX Runtime. */
onv_status onv_edit_begin(onv_edit *e, onv_model *model, onv_error *err);
void onv_edit_cleanup(onv_edit *e);

/* The model becomes an ordinary one again. `seen`: by value, of the new numbers; in its arena. */
onv_status onv_edit_finish(onv_edit *e, onv_type **seen);

/* --- Reading ----------------------------------------------------------------------------------- */

static inline onv_node *onv_edit_node_at(const onv_edit *e, onv_node_id id)
{
    return &e->model->nodes.at[id.index];
}

static inline onv_value *onv_edit_value_at(const onv_edit *e, onv_value_id id)
{
    return &e->model->values.at[id.index];
}

/* What inference knows; ONV_UNDEFINED for ONV_NO_VALUE. */
static inline onv_dtype onv_edit_dtype(const onv_edit *e, onv_value_id id)
{
    return onv_is_value(id) ? (onv_dtype)onv_edit_value_at(e, id)->type.dtype : ONV_UNDEFINED;
}

/* Whether both nodes are of one graph. */
static inline bool onv_edit_is_beside(const onv_edit *e, onv_node_id a, onv_node_id b)
{
    return onv_edit_node_at(e, a)->graph.index == onv_edit_node_at(e, b)->graph.index;
}

static inline bool onv_edit_is_there(const onv_edit *e, onv_node_id id)
{
    return onv_is_node(id) && !e->nodes.at[id.index].is_removed;
}

/* The nodes of a graph in order; a node that was removed still leads on. */
onv_node_id onv_edit_first(const onv_edit *e, onv_graph_id graph);
onv_node_id onv_edit_next(const onv_edit *e, onv_node_id node);
uint32_t onv_edit_n_nodes(const onv_edit *e, onv_graph_id graph);

/* The nodes of a graph in ONNX Runtime's default order (graph/steps.h), in the model's arena; undefined after a failure. */
onv_node_id *onv_edit_backward_order(onv_edit *e, onv_graph_id graph);

/* Whether it is there and that operator: of ai.onnx, or of another domain. */
bool onv_edit_is(const onv_edit *e, onv_node_id node, onv_op_name op);
bool onv_edit_is_of(const onv_edit *e, onv_node_id node, const char *domain, onv_op_name op);

/* Input or output k of a node; ONV_NO_VALUE where there is none. */
onv_value_id onv_edit_in(const onv_edit *e, onv_node_id node, uint32_t k);
onv_value_id onv_edit_out(const onv_edit *e, onv_node_id node, uint32_t k);

/* The node that makes the value, in the same graph or around it; ONV_NO_NODE: none does. */
onv_node_id onv_edit_producer(const onv_edit *e, onv_value_id value);

/* The node that makes input k. */
onv_node_id onv_edit_in_node(const onv_edit *e, onv_node_id node, uint32_t k);

/* Inputs of nodes that read it, how many, and the i-th one (in no particular order). */
uint32_t onv_edit_n_uses(const onv_edit *e, onv_value_id value);
const onv_use *onv_edit_first_use(const onv_edit *e, onv_value_id value);
const onv_use *onv_edit_next_use(const onv_edit *e, const onv_use *use);

#define ONV_EACH_USE(e, value, use)                                                                \
    for (const onv_use *(use) = onv_edit_first_use(e, value); (use) != NULL;                       \
         (use) = onv_edit_next_use(e, use))

/* Whether it is an output of its graph / read inside a subgraph. */
bool onv_edit_is_result(const onv_edit *e, onv_value_id value);
bool onv_edit_is_read_inside(const onv_edit *e, onv_value_id value);

/* Reads of all outputs of the node / whether one of them is an output of its graph. */
uint32_t onv_edit_n_output_uses(const onv_edit *e, onv_node_id node);
bool onv_edit_makes_result(const onv_edit *e, onv_node_id node);

/* The node of the same graph that reads the value, where that is the only read and it is no output of
 * its graph; else ONV_NO_NODE. */
onv_node_id onv_edit_only_user(const onv_edit *e, onv_value_id value);

/* An attribute as a number; the fallback where there is none. */
int64_t onv_edit_int(const onv_edit *e, onv_node_id node, const char *name, int64_t fallback);
double onv_edit_float(const onv_edit *e, onv_node_id node, const char *name, double fallback);

/* The opset of ai.onnx that the model states; 0: none. */
int32_t onv_edit_opset(const onv_edit *e);

/* Whether nobody can change it: an initializer that is no input of the model, too. */
bool onv_edit_is_constant(const onv_edit *e, onv_value_id value);

/* The contents of such a one where it is small; NULL else. */
const onv_known *onv_edit_constant(onv_edit *e, onv_value_id value);

/* Its single element (of any rank) / the integers of it, of which those beyond 2^61 are infinities. */
bool onv_edit_scalar(onv_edit *e, onv_value_id value, double *number);
bool onv_edit_ints(onv_edit *e, onv_value_id value, const onv_scalar **list, uint32_t *count);

/* The type that the runtime sees; of kind ONV_TYPE_UNKNOWN for ONV_NO_VALUE. */
const onv_type *onv_edit_seen(const onv_edit *e, onv_value_id value);

/* --- Editing ----------------------------------------------------------------------------------- */

/* Its outputs that nobody makes instead must not be read. */
void onv_edit_remove(onv_edit *e, onv_node_id node);

/* Whether nobody reads what it makes; and then it is removed. */
bool onv_edit_is_unread(const onv_edit *e, onv_node_id node);
bool onv_edit_remove_unread(onv_edit *e, onv_node_id node);

/* Removes it, and what made its inputs for nobody else, and so on. */
void onv_edit_remove_with_inputs(onv_edit *e, onv_node_id node);

/* A node may get more inputs than it had; those between are none. */
void onv_edit_set_input(onv_edit *e, onv_node_id node, uint32_t k, onv_value_id value);

/* All nodes that read `from` read `to`. */
void onv_edit_replace(onv_edit *e, onv_value_id from, onv_value_id to);

/* Removes a node whose output 0 is as good as its input k. Where the output is one of the graph, the node
 * that makes the input makes it directly. False, and nothing done, where that cannot be. */
bool onv_edit_bypass(onv_edit *e, onv_node_id node, uint32_t k);

/* `node` makes `value`, which another node made, instead of its own output k, and all that read this
 * read that. */
void onv_edit_take_output(onv_edit *e, onv_node_id node, uint32_t k, onv_value_id value);

typedef struct onv_new_node {
    const char *op_type, *domain; /* NULL: ai.onnx */
    const char *name;             /* NULL: the name of `at` */
    int32_t
        version; /* of the domain's opset; 0: that of `at`, or in another domain the model's, or 1 */
    const onv_value_id *inputs;
    uint32_t n_inputs;
    const onv_value_id
        *outputs;       /* what other nodes make is taken over; ONV_NO_VALUE: not asked for */
    uint32_t n_outputs; /* `outputs` NULL: so many new ones; 0: one */
    const onv_attr *attrs;
    uint32_t n_attrs;
    onv_node_id at; /* it runs just before that node, of the same provider */
    bool is_behind; /* just behind it */
} onv_new_node;

#define ONV_NEW_NODE(...) ((onv_new_node){__VA_ARGS__})

/* Lists of its fields. */
#define ONV_LIST(type, ...)                                                                        \
    (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}) / sizeof(type)
#define ONV_INPUTS(...)  .inputs = ONV_LIST(onv_value_id, __VA_ARGS__)
#define ONV_OUTPUTS(...) .outputs = ONV_LIST(onv_value_id, __VA_ARGS__)
#define ONV_ATTRS(...)   .attrs = ONV_LIST(onv_attr, __VA_ARGS__)

onv_node_id onv_edit_add(onv_edit *e, const onv_new_node *new_node);

/* The same, and gives its output 0; ONV_NO_VALUE after a failure. */
onv_value_id onv_edit_make(onv_edit *e, const onv_new_node *new_node);
#define ONV_MAKE(e, place, op, ...)                                                                \
    onv_edit_make(e, &ONV_NEW_NODE(.at = (place), .op_type = (op), __VA_ARGS__))

/* Moves a node that runs behind `at`, in the same graph, to just before it; one before it stays. */
void onv_edit_move(onv_edit *e, onv_node_id node, onv_node_id at);

/* Moves a node that runs before `at`, in the same graph, to just before it; what it makes must not be needed sooner. */
void onv_edit_delay(onv_edit *e, onv_node_id node, onv_node_id at);

/* In place of one of that name. */
void onv_edit_set_attr(onv_edit *e, onv_node_id node, onv_attr attr);

/* Text in the model's table of strings; NULL without memory. */
const char *onv_edit_intern(onv_edit *e, const char *text);

/* The type of a new output follows that of its node; here a value for one, named after another. */
onv_value_id onv_edit_add_value(onv_edit *e, onv_graph_id graph, onv_value_id like,
                                const char *suffix);

/* A new initializer of the graph: with integers, or without contents (`numbers` NULL). */
onv_value_id onv_edit_add_weight(onv_edit *e, onv_graph_id graph, const char *name, onv_dtype dtype,
                                 const int64_t *dims, int rank, const int64_t *numbers);

/* A new list of integers of the node's graph. */
onv_value_id onv_edit_add_ints(onv_edit *e, onv_node_id node, const char *name,
                               const int64_t *numbers, uint32_t count);

/* What a node computes becomes an initializer; its type must be static. */
void onv_edit_fold(onv_edit *e, onv_value_id id);

/* Types a node, and what it makes, again. */
void onv_edit_retype(onv_edit *e, onv_node_id node);

void onv_edit_fail(onv_edit *e, onv_status status);

/* Hands on what was allocated; of NULL the edit fails. */
static inline void *onv_edit_checked(onv_edit *e, void *made)
{
    if (made == NULL) onv_edit_fail(e, ONV_ERR_MEMORY);
    return made;
}

#endif
