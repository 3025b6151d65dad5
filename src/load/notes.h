/* What PyTorch's exporter notes of nodes, of initializers and of the main graph. */
#ifndef ONV_LOAD_NOTES_H
#define ONV_LOAD_NOTES_H

#include "ir/notes.h"
#include "load/build.h"
#include "load/fields.h"

/* A call as it is noted: `%mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%sub_5, %rsqrt), kwargs = {})`. */
typedef struct onv_noted_call {
    onv_text text;
    const onv_text *tensors;     /* its arguments that are tensors, without "%", in their order */
    uint32_t n_tensors, n_plain; /* the first ones have no keyword */
} onv_noted_call;

/* --- build_notes.c ----------------------------------------------------------------------------- */

/* The note of a kind, of those from `first` on, as it lies in the source, until something else is looked at there; at NULL: there is none. */
onv_status onv_build_note(onv_builder *b, onv_record first, onv_note kind, onv_text *text);

/* Those of a node. Its operator and inputs stand already. */
onv_status onv_build_notes(onv_builder *b, const onv_scan_node *record, onv_node *node);

/* --- build_signature.c ------------------------------------------------------------------------- */

/* The parameters and buffers that a note of the main graph lists. */
onv_status onv_build_signature(onv_builder *b, const onv_scan_graph *record);
/* Those that the call of a node names. */
onv_status onv_build_parameters(onv_builder *b, const onv_noted_call *call, onv_notes *notes);

/* --- build_merged.c ---------------------------------------------------------------------------- */

/* What arguments tell of calls that are not in the file: one that the exporter merged with one that the node reads, and those that
 * changed nothing. */
onv_status onv_build_merged(onv_builder *b, const onv_scan_node *record, const onv_noted_call *call,
                            onv_notes *notes);

#endif
