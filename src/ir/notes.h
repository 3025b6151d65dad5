/* What PyTorch's exporter notes of a node: the call that it was exported from. */
#ifndef ONV_IR_NOTES_H
#define ONV_IR_NOTES_H

#include "ir/model.h"

/* Whether the export notes the operation at all. */
bool onv_node_is_noted(const onv_node *node);

/* "silu" is "aten.silu.default". */
bool onv_node_is_aten(const onv_node *node, const char *name);

/* Whether it is one of these `n` operations. */
bool onv_node_is_any_aten(const onv_node *node, const char *const *names, size_t n);

/* any() and all(). */
bool onv_node_tells_truth(const onv_node *node);

/* An LSTM, a GRU or an RNN, noted or not. */
bool onv_node_is_recurrent(const onv_node *node);

/* "zeros_like_2" of "zeros_like": the name of a call of that operation. */
bool onv_is_call_of(const char *name, const char *operation);
bool onv_is_call_of_any(const char *name, const char *const *operations, size_t n);

#endif
