/* What libraries run in exports alone. transformers solves a triangular system in torch_chunk_gated_delta_rule (Qwen3-Next,
 * Qwen 3.5, OLMo hybrid) by torch.linalg.solve_triangular, but while a network is exported it writes the rows of the inverse one
 * after another: autograd keeps copies of what each row is made of, which no training has. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "lower/lowering.h"

enum { FEWEST_ROWS = 3 };

typedef struct loop {
    const onv_node *first;
    uint32_t storage, from, to, rows; /* what is written into; operations */
} loop;

static const onv_node *node_of(const onv_lowering *l, const onv_eager_op *op)
{
    const onv_node *node = onv_is_node(op->node) ? onv_model_node(l->emit.model, op->node) : NULL;
    return node != NULL && onv_noted(node)->solves_by_rows ? node : NULL;
}

/* Bytes that operations of the loop made, and that are kept. */
static uint64_t kept_bytes(const onv_lowering *l, const loop *at, const bool *is_saved)
{
    uint64_t bytes = 0;
    for (uint32_t i = at->from; i <= at->to; i++) {
        const onv_eager_op *op = &l->emit.eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t storage = onv_tensor_at(&l->emit, op->out[k]).storage;
            bool is_view =
                op->n_in > 0 && onv_tensor_at(&l->emit, op->in[0].tensor).storage == storage;
            if (is_view || !is_saved[storage]) continue;
            if (!onv_u64_add(bytes, l->emit.eager->storages.at[storage].bytes, &bytes))
                return UINT64_MAX;
        }
    }
    return bytes;
}

static void count(onv_lowering *l, const loop *at, const bool *is_saved)
{
    if (at->rows < FEWEST_ROWS) return;
    if (l->tally.loops.count++ == 0) l->tally.loops.first = at->first->name;
    if (!onv_u64_add(l->tally.loops.bytes, kept_bytes(l, at, is_saved), &l->tally.loops.bytes))
        l->tally.loops.bytes = UINT64_MAX;
}

void onv_exported_report(onv_lowering *l)
{
    bool *is_saved = ONV_ARENA_ARRAY(&l->emit.model->arena, bool, l->emit.eager->storages.count);
    loop at = {.storage = UINT32_MAX};
    if (is_saved == NULL) {
        l->emit.status = onv_fail_memory(l->emit.err);
        return;
    }
    for (size_t i = 0; i < l->emit.eager->ops.count; i++)
        for (uint32_t k = 0; k < l->emit.eager->ops.at[i].n_saved; k++)
            is_saved[l->emit.eager->ops.at[i].saved[k]] = true;
    for (uint32_t i = 0; i < l->emit.eager->ops.count; i++) {
        const onv_eager_op *op = &l->emit.eager->ops.at[i];
        const onv_node *node = node_of(l, op);
        if (node == NULL || strcmp(op->name, "copy_slices") != 0) continue;
        uint32_t storage = onv_tensor_at(&l->emit, op->out[0]).storage;
        if (storage != at.storage) {
            count(l, &at, is_saved);
            at = (loop){.first = node, .storage = storage, .from = i};
        }
        at.to = i;
        at.rows++;
    }
    count(l, &at, is_saved);
    if (l->tally.loops.count > 0)
        onv_model_diag(l->emit.model, ONV_WARNING, "exported-loop", l->tally.loops.first,
                       "%u triangular systems, this one first, are solved row by row, as "
                       "torch_chunk_gated_delta_rule of transformers does in exports alone: %llu "
                       "bytes that are "
                       "kept for backward are of these loops; where training calls "
                       "torch.linalg.solve_triangular, or a kernel of fla, it keeps none of them",
                       l->tally.loops.count, (unsigned long long)l->tally.loops.bytes);
}
