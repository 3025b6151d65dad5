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
#ifndef ONV_INFER_REBATCH_H
#define ONV_INFER_REBATCH_H

#include "infer/driver.h"

/* Infers the main graph under a batch other than the export's. */
onv_status onv_rebatch_run(onv_driver *driver);

/* The argument of the export that leaves the batch open, as it is typed: of either exporter, with the inputs' names. In the model's
 * arena; never NULL. */
const char *onv_rebatch_remedy(const onv_driver *driver);

/* The diagnostics of a run that succeeded. */
void onv_rebatch_tell(onv_driver *driver);

void onv_rebatch_cleanup(onv_rebatch *rebatch);

/* --- Rewrites ---------------------------------------------------------------------------------- */

onv_known *onv_rebatch_copy_known(onv_model *model, const onv_known *known);
onv_rewrite *onv_rebatch_find(const onv_rebatch *rebatch, uint32_t node, uint32_t input);

/* Adds one, which is given back to be filled in; NULL when memory is short. */
onv_rewrite *onv_rebatch_add(onv_driver *driver, uint32_t node, uint32_t input, onv_known *known);

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
