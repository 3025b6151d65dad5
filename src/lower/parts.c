/* Calls of one operation that stay in the parts that the exporter wrote for them: autograd is counted to keep what stands between
 * the parts, of which PyTorch's own kernel makes nothing. Which tensors that are, and how many bytes, is told. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "lower/lowering.h"

static const onv_node *node_of(const onv_emitter *e, const onv_eager_op *op)
{
    const onv_node *node = onv_is_node(op->node) ? onv_model_node(e->model, op->node) : NULL;
    return node != NULL && onv_node_is_noted(node) ? node : NULL;
}

/* PyTorch runs these by parts itself, or they are counted as one although they stand in parts. */
static bool runs_in_parts(const onv_node *node)
{
    static const char calls[] = "scaled_dot_product_attention einsum linear lstm gru rnn_tanh "
                                "rnn_relu index index_put scatter_reduce";
    return onv_node_is_aten(node, calls);
}

static bool is_checkpointed(const onv_emitter *e, const onv_eager_op *op)
{
    return onv_is_node(op->node) && onv_noted(onv_model_node(e->model, op->node))->is_checkpointed;
}

/* By storage: 1 + the operation that made it. */
static uint32_t *find_makers(onv_emitter *e)
{
    uint32_t *made_by = ONV_EMIT_ARRAY(e, uint32_t, e->eager->storages.count);
    for (uint32_t i = 0; made_by != NULL && i < e->eager->ops.count; i++)
        for (uint32_t k = 0; k < e->eager->ops.at[i].n_out; k++) {
            uint32_t *maker = &made_by[onv_tensor_at(e, e->eager->ops.at[i].out[k]).storage];
            if (*maker == 0) *maker = i + 1;
        }
    return made_by;
}

void onv_parts_report(onv_lowering *l)
{
    uint32_t *made_by = find_makers(&l->emit);
    if (made_by == NULL) return;
    /* What one part makes and another one keeps, each once. */
    for (uint32_t i = 0; i < l->emit.eager->ops.count; i++) {
        const onv_eager_op *op = &l->emit.eager->ops.at[i];
        const onv_node *node = node_of(&l->emit, op);
        if (node == NULL || op->life == ONV_LIFE_FORWARD || runs_in_parts(node)) continue;
        for (uint32_t k = 0; k < op->n_saved; k++) {
            uint32_t storage = op->saved[k], maker = made_by[storage];
            const onv_node *from =
                maker > 0 ? node_of(&l->emit, &l->emit.eager->ops.at[maker - 1]) : NULL;
            if (from == NULL || from == node || onv_noted(node)->source_op[0] == '\0' ||
                !onv_is_same_call(node, from))
                continue;
            made_by[storage] = 0;
            onv_say(&l->emit, ONV_SAID_parts, onv_noted(node)->aten_op,
                    l->emit.eager->storages.at[storage].bytes, node);
        }
    }
}

/* What the network's own code checkpoints is counted as any other: which bytes checkpoint() would not keep. */
void onv_checkpointed_report(onv_lowering *l)
{
    enum { INSIDE = 1, OUTSIDE = 2 };
    uint32_t *made_by = find_makers(&l->emit), n = 0;
    onv_tally found = {0};
    uint8_t *kept = ONV_EMIT_ARRAY(&l->emit, uint8_t, l->emit.eager->storages.count);
    if (made_by == NULL || kept == NULL) return;
    for (uint32_t i = 0; i < l->emit.eager->ops.count; i++) {
        const onv_eager_op *op = &l->emit.eager->ops.at[i];
        bool is_inside = is_checkpointed(&l->emit, op);
        n += is_inside && op->n_saved > 0;
        for (uint32_t k = 0; k < op->n_saved; k++) {
            uint32_t storage = op->saved[k], maker = made_by[storage];
            uint8_t kind = l->emit.eager->storages.at[storage].kind;
            bool is_made = kind == ONV_STORAGE_ACTIVATION && maker > 0 &&
                           is_checkpointed(&l->emit, &l->emit.eager->ops.at[maker - 1]);
            bool is_own = is_made || kind == ONV_STORAGE_EXTRA;
            kept[storage] |= is_inside && is_own ? INSIDE : OUTSIDE;
        }
    }
    for (uint32_t i = 0; i < l->emit.eager->storages.count; i++)
        if (kept[i] == INSIDE) onv_tally_add(&found, NULL, l->emit.eager->storages.at[i].bytes);
    l->emit.said[ONV_SAID_checkpointed].of = (onv_tally){.count = n, .bytes = found.bytes};
}
