/* Units of a tape: where they begin, and which are joined where they are too many. */
#include <string.h>

#include "base/fail.h"
#include "ckpt/tape_builder.h"

/* By unit: what it keeps, what crosses into it, and what that says for the border before it. */
typedef struct weights {
    uint64_t *kept, *crossed;
    double *worth;
} weights;

/* The border that has the least goes first. */
static void find_worth(const weights *w, uint32_t at)
{
    w->worth[at] = ((double)w->kept[at - 1] + (double)w->kept[at]) / ((double)w->crossed[at] + 1);
}

static void remove_border(onv_tape_builder *b, const weights *w, uint32_t at)
{
    w->kept[at - 1] += w->kept[at];
    size_t behind = b->n_units - at;
    memmove(&b->first_op[at], &b->first_op[at + 1], behind * sizeof *b->first_op);
    memmove(&w->kept[at], &w->kept[at + 1], (behind - 1) * sizeof *w->kept);
    memmove(&w->crossed[at], &w->crossed[at + 1], (behind - 1) * sizeof *w->crossed);
    memmove(&w->worth[at], &w->worth[at + 1], (behind - 1) * sizeof *w->worth);
    b->n_units--;
    for (uint32_t i = at > 1 ? at - 1 : 1; i <= at && i < b->n_units; i++) find_worth(w, i);
}

/* Of the borders every other one goes. The loss, the last unit, stays alone. */
static void thin_units(onv_tape_builder *b, const weights *w)
{
    uint32_t last = b->n_units - 1, n = 0;
    for (uint32_t i = 0; i < last; i++) {
        if (i % 2 == 1) {
            w->kept[n - 1] += w->kept[i];
            continue;
        }
        b->first_op[n] = b->first_op[i];
        w->kept[n] = w->kept[i];
        w->crossed[n++] = w->crossed[i];
    }
    b->first_op[n] = b->first_op[last];
    w->kept[n] = w->kept[last];
    w->crossed[n] = w->crossed[last];
    b->n_units = n + 1;
    b->first_op[b->n_units] = b->n_ops;
}

/* Removing one border moves all behind it, so very many are thinned first. */
static void join_units(onv_tape_builder *b, const weights *w, uint32_t max_units)
{
    enum { MANY = 8 };
    while (b->n_units > MANY * max_units) thin_units(b, w);
    for (uint32_t i = 1; i < b->n_units; i++) find_worth(w, i);
    while (b->n_units > max_units) {
        uint32_t best = 1;
        for (uint32_t i = 2; i + 1 < b->n_units; i++)
            if (w->worth[i] < w->worth[best]) best = i;
        remove_border(b, w, best);
    }
}

/* By unit: what its operations are the first to keep, and what crosses into it. */
static onv_status weigh_units(onv_tape_builder *b, weights *w, onv_error *err)
{
    *w = (weights){.kept = ONV_ARENA_ARRAY(b->arena, uint64_t, b->n_units),
                   .crossed = ONV_ARENA_ARRAY(b->arena, uint64_t, b->n_units + 1),
                   .worth = ONV_ARENA_ARRAY(b->arena, double, b->n_units)};
    bool *seen = ONV_ARENA_ARRAY(b->arena, bool, b->n_storages);
    if (b->arena->failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_saved; k++) {
            uint32_t storage = op->saved[k];
            if (seen[storage] ||
                (!onv_tape_is_activation(b, storage) && !onv_tape_is_own(b, storage)))
                continue;
            seen[storage] = true;
            w->kept[b->unit_of[i]] += b->eager->storages.at[storage].bytes;
        }
    }
    for (uint32_t s = 0; s < b->n_storages; s++) {
        if (!onv_tape_is_activation(b, s) || b->made_by[s] == ONV_NO_OP_OF_TAPE) continue;
        w->crossed[b->unit_of[b->made_by[s]] + 1] += b->eager->storages.at[s].bytes;
        w->crossed[b->unit_of[b->last_read[s]] + 1] -= b->eager->storages.at[s].bytes;
    }
    for (uint32_t i = 1; i < b->n_units; i++) w->crossed[i] += w->crossed[i - 1];
    return ONV_OK;
}

static void number_units(onv_tape_builder *b)
{
    for (uint32_t u = 0; u < b->n_units; u++)
        for (uint32_t i = b->first_op[u]; i < b->first_op[u + 1]; i++) b->unit_of[i] = u;
}

/* Makes something to keep of what is kept anyway: a cast, a sum. */
static bool copies_kept(const onv_tape_builder *b, uint32_t i)
{
    const onv_eager_op *op = &b->eager->ops.at[i];
    bool makes = false;
    for (uint32_t k = 0; k < op->n_out; k++) {
        uint32_t s = onv_tape_storage_of(b, op->out[k]);
        makes |= onv_tape_is_activation(b, s) && b->made_by[s] == i && b->is_saved[s];
    }
    for (uint32_t k = 0; k < op->n_in && makes; k++) {
        uint32_t s = onv_tape_storage_of(b, op->in[k].tensor);
        if (onv_tape_is_activation(b, s) && !b->is_saved[s]) return false;
    }
    return makes;
}

/* A unit begins with its node, or where nothing places that in the code, at the last place before the operation;
 * by nodes alone it does not begin then. */
static void place_borders(onv_tape_builder *b)
{
    const bool *is_known = b->problem->places->is_known;
    uint32_t begin = 0, place = 0; /* of the node; the last one that is known */
    for (uint32_t i = 0; i < b->eager->first_loss_op; i++) {
        const onv_eager_op *op = &b->eager->ops.at[i];
        if (i > 0 && !onv_eager_same_node(op, &b->eager->ops.at[i - 1])) begin = i;
        if (is_known[i]) place = i;
        uint32_t first = is_known[begin] ? begin : place;
        if (b->by_nodes && !is_known[begin]) continue;
        bool has_begun = b->n_units > 0 && b->first_op[b->n_units - 1] >= first;
        if (!has_begun && (i == 0 || onv_tape_keeps(b, op) || copies_kept(b, i)))
            b->first_op[b->n_units++] = first;
    }
    if (b->eager->first_loss_op < b->n_ops) b->first_op[b->n_units++] = b->eager->first_loss_op;
    b->first_op[b->n_units] = b->n_ops;
    b->n_fine = b->n_units;
    number_units(b);
}

onv_status onv_tape_find_units(onv_tape_builder *b, uint32_t max_units, onv_error *err)
{
    enum { MANY = 4 };
    b->first_op = ONV_ARENA_ARRAY(b->arena, uint32_t, b->n_ops + 2);
    if (b->first_op == NULL) return onv_fail_memory(err);
    place_borders(b);
    if (b->n_units <= max_units) return ONV_OK;
    if (b->n_units > MANY * max_units) max_units = max_units / 8 * 5; /* the search is cubic */
    weights w;
    ONV_TRY(weigh_units(b, &w, err));
    join_units(b, &w, max_units);
    number_units(b);
    return ONV_OK;
}
