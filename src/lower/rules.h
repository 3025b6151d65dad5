/* Rules that lower one node or one fusion each, by what PyTorch runs for it. */
#ifndef ONV_LOWER_RULES_H
#define ONV_LOWER_RULES_H

#include "eager/eager.h"
#include "emit/attention.h"
#include "emit/layers.h"
#include "emit/product.h"
#include "fuse/fuse.h"
#include "lower/weight.h"

/* --- By operator ------------------------------------------------------------------------------- */

/* Gives the tensor of the first output; ONV_NO_TENSOR: it is set, or there is none. */
typedef uint32_t (*onv_lower_fn)(onv_lowering *l, const onv_node *node);

typedef struct onv_lower_row {
    onv_lower_fn rule; /* NULL: by its traits */
    /* onv_aten_id; ONV_ATEN_NONE: of none, or the rule tells */
    uint16_t call, in_place, traits;
    bool is_view;
} onv_lower_row;

extern const onv_lower_row onv_lower_rows[ONV_N_OP_NAMES];
/* Of other domains there are none. */
const onv_lower_row *onv_lower_row_of(const onv_node *node);

#define OP(op, rule, ...)   uint32_t onv_lower_##rule(onv_lowering *l, const onv_node *node);
#define VIEW(op, rule, ...) OP(op, rule)
#include "lower/operators.def"

/* --- flow.c ------------------------------------------------------------------------------ */

/* Nodes with subgraphs. */
bool onv_node_has_graphs(const onv_node *node);
void onv_lower_flow(onv_lowering *l, const onv_node *node);

/* --- sequence.c -------------------------------------------------------------------------- */

/* False: the node has nothing to do with a list of tensors. */
bool onv_lower_sequence(onv_lowering *l, const onv_node *node);

/* --- attention.c: as one kernel, or in parts --------------------------------------------------- */

/* Operand k of the node, if it is a part of attention, which takes low precision and computes in
 * float32; ONV_ATTENTION_NONE: as it comes. */
uint32_t onv_amp_attention(onv_lowering *l, const onv_node *node, uint32_t k);
/* Where the query is scaled: the values are cast, too, before anything is computed. */
void onv_widen_attended(onv_lowering *l, const onv_node *node);
/* Of the call that the node is a part of: what the user says, else what its note does; below 0: nobody. */
double onv_dropout_of_attention(const onv_emitter *e, const onv_node *node);
onv_attention_part onv_node_attention(const onv_lowering *l, const onv_node *node);
uint32_t onv_lower_attention(onv_lowering *l, const onv_fusion *fusion);

/* --- conv.c, pad.c --------------------------------------------------------------------------- */

bool onv_is_computed_conv(const onv_emitter *e, onv_value_id id);
/* What a convolution is given: x, or its copy with a padding that the convolution itself cannot do. */
uint32_t onv_emit_padded(onv_lowering *l, const onv_node *node, uint32_t x);

/* --- nn.c, encoder.c ----------------------------------------------------------------- */

/* A batch norm that the exporter put into a convolution or a product, as its notes say. True where it
 * did: the bias may become the norm's. */
bool onv_node_unfolds(const onv_emitter *e, const onv_node *node, uint32_t *bias,
                      uint32_t *norm_bias);
uint32_t onv_emit_unfolded_norm(onv_emitter *e, const onv_node *node, uint32_t x, uint32_t bias);
uint32_t onv_lower_encoder_layer(onv_lowering *l, const onv_fusion *f);

/* --- math.c --------------------------------------------------------------------------------- */

/* Every storage may be overwritten whose only reader is the node, and that nothing keeps. */
bool onv_may_overwrite(onv_lowering *l, const onv_node *node, uint32_t k);
/* Inference: is the node's module one that works in place, and may the operation that reads `value`
 * `n_reads` times overwrite it? */
bool onv_overwrites(onv_lowering *l, const onv_node *node, onv_value_id value, uint32_t n_reads);

/* --- formula.c ------------------------------------------------------------------------------ */

uint32_t onv_lower_quotient_of_number(onv_lowering *l, const onv_node *node);

/* --- scatter.c ------------------------------------------------------------------------------ */

/* Of a module of PyTorch Geometric. */
bool onv_node_is_geometric(const onv_node *node);

/* --- rnn.c ---------------------------------------------------------------------------------- */

uint32_t onv_lower_cell(onv_lowering *l, const onv_fusion *fusion);
/* Whether the product is the gates of a cell, whose kernel adds the bias. */
bool onv_feeds_cell(const onv_lowering *l, const onv_node *node);
void onv_cells_report(onv_lowering *l); /* of cells and steps that stay in parts, after lowering */
/* Dropout of x between the layers of a recurrent module, which cuDNN runs inside: false where it is none. */
bool onv_recurrent_dropout(onv_lowering *l, const onv_node *node, uint32_t x);

/* --- Of fusions, and of all outputs ---------------------------------------------------------------- */

void onv_lower_fusion(onv_lowering *l, const onv_fusion *fusion);

#endif
