/* The inside of inference: what its files share. */
#ifndef ONV_INFER_DRIVER_H
#define ONV_INFER_DRIVER_H

#include "base/ptr_map.h"
#include "infer/infer.h"
#include "ops/op.h"
#include "ops/op_shapes.h"

/* A constant that decides a shape for one node, replaced because it carries the old batch. */
typedef struct onv_rewrite {
    uint32_t node;
    uint32_t input;
    onv_known *known; /* with the symbol */
    onv_known *bound; /* with the number */
    int32_t next;     /* of the same node, -1: none */
    bool is_upstream; /* a mismatch downstream showed it */
    /* Entries of a Reshape's target that may be the batch, the likeliest first; those up to `tried` were. */
    uint8_t n_candidates, tried;
    uint8_t candidates[ONV_MAX_RANK];
} onv_rewrite;

/* A constant with the same contents for each sample of the old batch, which gets those of the new one. */
typedef struct onv_resized {
    onv_value_id value;
    uint8_t n_candidates, tried; /* axes that may be the batch; those up to `tried` were */
    uint8_t candidates[ONV_MAX_RANK];
} onv_resized;

/* Changing a batch that the export fixed; see below. */
typedef struct onv_rebatch {
    bool needed;      /* --batch asks for another batch than the export's */
    bool active;      /* the inputs carry `symbol`, constants are looked at */
    bool is_strict;   /* what is possible and seldom meant counts as a failure */
    bool is_unlikely; /* that is the failure */
    bool may_resize;  /* constants may be resized */
    bool has_roles;   /* the export notes which initializers are parameters and buffers */
    int64_t old;      /* the batch of the export */
    onv_dim symbol;
    const bool *has_batch; /* by input of the main graph: its first dim is the batch */
    ONV_VEC(onv_rewrite) rewrites;
    int32_t *first; /* by node: its first rewrite, -1 none; NULL where there are no rewrites */
    ONV_VEC(onv_resized) resized;
    uint64_t compared_bytes; /* of constants, to find them */
    ONV_VEC(onv_diag) notes; /* what the export leaves open, for the diagnostics */
} onv_rebatch;

/* A point in the list of diagnostics to go back to. */
typedef struct onv_diag_mark {
    size_t n_diags;
    uint64_t n_dropped;
    size_t n_unknown_ops;
} onv_diag_mark;

/* An operator that was looked up lately, by the strings of its node: models have few operators. */
struct onv_found_op {
    const char *domain, *name;
    const onv_op *row;
    int32_t version;
};

typedef struct onv_driver {
    onv_model *model;
    const onv_options *options;
    onv_infer_info *info;
    onv_op_index index;
    onv_op_shapes op_shapes;  /* what the user declared */
    onv_arena scratch;        /* what one node needs */
    onv_dim *symbol_values;   /* by symbol: its binding, or the symbol itself */
    onv_dim *symbol_meanings; /* by symbol: what its name says as an expression, else unknown */
    uint32_t n_symbol_values;
    bool distrust_declared; /* declared dims may carry the batch or shape of the export */
    const char *refixed; /* what --shape changed of a size that the export fixed; NULL: nothing */
    bool may_contradict; /* any node; else those that are marked (onv_node.contradicts) */
    uint64_t runs, max_runs; /* of nodes; loops run their bodies again */
    onv_op_unroll unroll;
    bool branches_must_fit; /* a batch is being changed: what fails may be a constant to change */
    onv_rebatch rebatch;
    ONV_VEC(onv_dim) declared_only; /* symbols bound by --dim that stand in no input */
    ONV_VEC(onv_dim_given) given;   /* sizes for symbols that inference makes */
    uint32_t *decider_stamps;       /* by value: the walk that saw it last */
    uint32_t decider_stamp;
    ONV_VEC(const char *) unknown_ops; /* op types already reported */
    onv_ptr_map unknown_at;            /* where they stand in it */
    struct onv_found_op found_ops[16]; /* by number of the operator's name */
    onv_node_id failed_node;           /* where onv_driver_run stopped */
    onv_status load_status;            /* sticky: contents that could not be read */
    onv_error *err;
} onv_driver;

/* A driver for single nodes of a model that is inferred already, without options. After a failure
 * there is nothing to close. */
onv_status onv_driver_open(onv_driver *driver, onv_model *model, onv_error *err);
void onv_driver_close(onv_driver *driver);

/* Rules compare names of operators alone, and count on what the table says of these: on their inputs, say. Where a node is of another
 * operator, does not have those, or contradicts them, its domain becomes a part of its name: "my.domain::Add". Of all nodes, those too that
 * never run. */
onv_status onv_driver_name_others(onv_driver *driver, bool is_inferred);

/* Infers one node: the types and contents of its outputs from those of its inputs. */
onv_status onv_driver_run_node(onv_driver *driver, onv_node_id id);

/* Infers every node of a graph, in order. A node of the main graph that contradicts its operator's definition is left without a row, like an
 * operator that is not known, and a warning says what contradicts what. */
onv_status onv_driver_run_graph(onv_driver *driver, onv_graph_id id);

/* Forgets what a run found of a value that is no weight; of a node and its outputs. */
void onv_driver_clear_value(onv_value *value);
void onv_driver_clear_node(const onv_model *model, onv_node *node);

onv_diag_mark onv_driver_mark(const onv_driver *driver);
void onv_driver_rewind(onv_driver *driver, onv_diag_mark mark); /* forgets what came after */

/* Contents of a constant value, read on first use; NULL where they are not tracked. */
onv_status onv_driver_constant(onv_driver *driver, onv_value *value, const onv_known **known);

/* Applies the options to the types of the graph inputs and fills symbol_values. */
onv_status onv_bind_inputs(onv_driver *driver);

/* After a run: names of --dim that stand in no input are those of sizes that inference made, or of
 * sizes that the file declares. *again where a size was bound that the run did not know yet. Fails
 * where a name binds nothing, or a size cannot be what is asked. */
onv_status onv_bind_made(onv_driver *driver, bool *again);

/* What decides the contents of a value, for messages; NULL where nothing is found. The text belongs
 * to the model's arena. */
const char *onv_deciders_text(onv_driver *driver, onv_value_id value);

/* Diagnostics for branches and numbers of iterations that stayed open. */
void onv_note_deciders(onv_driver *driver);

/* A warning where inputs that ONNX gives one type have several (mixed_types.c). */
onv_status onv_note_mixed_types(onv_driver *driver);

/* A type with the bound symbols replaced. */
onv_status onv_bind_type(onv_driver *driver, onv_type *type);

/* Whether binding `i` of the options may name a dim that the model lacks; its flag is then dims_found[i]. */
bool onv_may_lack_dim(const onv_options *options, size_t i);

/* Changing a batch that the export fixed.
 *
 * An export with a fixed batch carries it in constants: the target of a Reshape ([1, 2048]), of an
 * Expand, the shape of a ConstantOfShape. To find them, the model is inferred with a symbol for the
 * batch. A Reshape whose target no longer matches its input shows itself there, and the entry to
 * change follows from where the batch stands in the row-major order (rebatch_shapes.c). Then the model
 * is inferred with the number. A constant of another kind shows as a failure downstream (a Concat of a
 * new and an old batch): the nearest constant upstream that holds the old batch is changed, or the
 * nearest Reshape that can be read in another way is, and both runs are made again.
 *
 * Where no shape explains a failure, all is tried once more with constants that hold the same for each sample of
 * the old batch (a class token, a mask): they are resized (rebatch_constants.c).
 *
 * A run that fails nowhere is not believed before it is proved; what no proof can tell becomes a diagnostic
 * (rebatch_proof.c). In the end the constants themselves are replaced, so that every later stage reads the new ones.
 */

/* Whether a size depends on the batch; what it is at a multiple of the old one, unknown where that does not fit. */
bool onv_rebatch_is_in(const onv_driver *driver, onv_dim d);
onv_dim onv_rebatch_at(const onv_driver *driver, onv_dim d, int64_t times);

/* Infers the main graph under a batch other than the export's. */
onv_status onv_rebatch_run(onv_driver *driver);

/* The argument of the export that leaves the batch open, as it is typed: of either exporter, with the inputs' names. In the model's
 * arena; never NULL. */
const char *onv_rebatch_remedy(const onv_driver *driver);

/* The diagnostics of a run that succeeded. */
void onv_rebatch_tell(onv_driver *driver);

void onv_rebatch_cleanup(onv_rebatch *rebatch);

/* --- Rewrites ---------------------------------------------------------------------------------- */

onv_rewrite *onv_rebatch_find(const onv_rebatch *rebatch, uint32_t node, uint32_t input);

/* Adds one with a copy of the contents, which is given back to be changed; NULL when memory is short. */
onv_rewrite *onv_rebatch_add(onv_driver *driver, uint32_t node, uint32_t input,
                             const onv_known *known);

/* Replaces the contents of inputs of `c` that carry the old batch; looks for them while the rebatch
 * is active. */
onv_status onv_rebatch_inputs(onv_driver *driver, onv_node_id node, onv_op_ctx *c);

/* Looks upstream of the node that failed for a constant to change, or a Reshape to read otherwise. */
onv_status onv_rebatch_change_upstream(onv_driver *driver, bool *changed);

/* The constants themselves take the contents of their rewrites, and those that were resized their samples. */
onv_status onv_rebatch_store(onv_driver *driver);

/* --- Constants that are resized ---------------------------------------------------------------- */

/* Resizes one that the node reads, or takes another of its axes for the batch. */
onv_status onv_rebatch_resize_input(onv_driver *driver, uint32_t index, bool *changed);

/* Gives those that were resized the symbol or the number; their sizes in the file. */
onv_status onv_rebatch_size_constants(onv_driver *driver, onv_dim batch);
void onv_rebatch_restore_constants(onv_driver *driver);

/* --- Proof ------------------------------------------------------------------------------------- */

typedef struct onv_doubt {
    onv_node_id node; /* ONV_NO_NODE: none */
    const char *why;  /* NULL: no doubt */
} onv_doubt;

/* After a run with the symbol. */
onv_status onv_rebatch_doubt(onv_driver *driver, onv_doubt *found);
onv_status onv_rebatch_note(onv_driver *driver);

#endif
