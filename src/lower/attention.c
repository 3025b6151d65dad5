/* Attention: as one operation after the other, which autocast sees as one; or in a kernel of its own,
 * which never writes the scores down. */
#include <string.h>

#include "base/checked.h"
#include "eager/pytorch.h"
#include "lower/lowering.h"

/* --- One after the other ----------------------------------------------------------------------- */

onv_attention_part onv_node_attention(const onv_lowering *l, const onv_node *node)
{
    return (onv_attention_part)l->fusions->attention[node - l->emit.model->nodes.at].part;
}

static bool is_low(const onv_emitter *e, uint32_t x)
{
    return onv_tensor_is_float(e, x) && onv_dtype_bits((onv_dtype)onv_tensor_at(e, x).dtype) == 16;
}

/* From 2.5 on unless allow_fp16_bf16_reduction_math_sdp is set. */
static bool widens(const onv_emitter *e, uint32_t x)
{
    if (e->options->amp != ONV_UNDEFINED) return true;
    return is_low(e, x) && !onv_before_pytorch(e->options, ONV_PYTORCH_RELEASE(2, 5));
}

uint32_t onv_amp_attention(onv_lowering *l, const onv_node *node, uint32_t k)
{
    uint32_t x = onv_node_in(l, node, k);
    if (onv_node_attention(l, node) == ONV_ATTENTION_NONE || x == ONV_NO_TENSOR) return x;
    onv_node_id from = onv_model_value(l->emit.model, node->inputs[k])->producer;
    bool is_own =
        onv_is_node(from) && l->fusions->attention[from.index].part == ONV_ATTENTION_INSIDE;
    uint32_t done = l->values[node->inputs[k].index].widened;
    if (done > 0 && k == 1 && onv_node_attention(l, node) == ONV_ATTENTION_LAST) return done - 1;
    if (is_own || !onv_tensor_is_float(&l->emit, x) || !widens(&l->emit, x)) return x;
    return onv_emit_cast(&l->emit, onv_amp_low(&l->emit, x), ONV_FLOAT);
}

void onv_widen_attended(onv_lowering *l, const onv_node *node)
{
    onv_value_id value = l->fusions->attention[node - l->emit.model->nodes.at].attended;
    if (!onv_is_value(value) || l->emit.options->as_exported) return;
    uint32_t x = onv_value_tensor(l, value);
    if (x == ONV_NO_TENSOR || !onv_tensor_is_float(&l->emit, x) || !widens(&l->emit, x)) return;
    uint32_t wide = onv_emit_cast(&l->emit, onv_amp_low(&l->emit, x), ONV_FLOAT);
    if (l->emit.status == ONV_OK && wide != x) l->values[value.index].widened = wide + 1;
}

/* --- A kernel of its own ----------------------------------------------------------------------- */

double onv_dropout_of_attention(const onv_emitter *e, const onv_node *node)
{
    double told = e->options->attention_dropout;
    return told >= 0                        ? told
           : onv_noted(node)->tells_dropout ? (double)onv_noted(node)->dropout
                                            : told;
}

/* transformers computes masks that mask nothing while it is exported, and leaves them out else. Of a constant nothing tells. */
static void note_mask(onv_lowering *l, const onv_fusion *f)
{
    const char *around = onv_noted(onv_model_node(l->emit.model, f->last))->call_classes;
    const onv_value *mask = onv_is_value(f->mask) ? onv_model_value(l->emit.model, f->mask) : NULL;
    if (l->emit.options->inference || mask == NULL || mask->tensor == NULL ||
        mask->role != ONV_ROLE_NOT_NOTED || around == NULL ||
        strstr(around, "'transformers.models.") == NULL)
        return;
    onv_say(&l->emit, ONV_SAID_made_masks, mask->name, mask->tensor->bytes, NULL);
}

/* The key as the call had it: where its transpose was the call's own, the fusion has what that gave. */
static uint32_t key_of(onv_lowering *l, const onv_fusion *f, uint32_t query)
{
    uint32_t key = onv_value_tensor(l, f->key);
    onv_eager_tensor q = onv_tensor_at(&l->emit, query), k = onv_tensor_at(&l->emit, key);
    if (query == ONV_NO_TENSOR || key == ONV_NO_TENSOR || q.rank < 2 || k.rank < 2) return key;
    const int64_t *dims = k.dims + k.rank - 2, *strides = k.strides + k.rank - 2;
    bool is_square = dims[0] == dims[1];
    bool is_turned = is_square ? strides[1] != 1 && strides[0] == 1 : dims[1] != q.dims[q.rank - 1];
    return is_turned ? onv_emit_swapped(&l->emit, key) : key;
}

uint32_t onv_lower_attention(onv_lowering *l, const onv_fusion *f)
{
    static const char *const names[] = {"query", "key", "value", "attn_mask"};
    uint32_t query = onv_value_tensor(l, f->x);
    const uint32_t in[] = {query, key_of(l, f, query), onv_value_tensor(l, f->value),
                           onv_value_tensor(l, f->mask)};
    const onv_notes *noted = onv_noted(onv_model_node(l->emit.model, f->last));
    note_mask(l, f);
    for (uint32_t k = 0; k < 4; k++) onv_recover_tensor(l, names[k], in[k]);
    if (noted->tells_dropout) onv_recover_real(l, "dropout_p", (double)noted->dropout);
    return onv_recover_call(l, ONV_ATEN_scaled_dot_product_attention, f->out);
}
