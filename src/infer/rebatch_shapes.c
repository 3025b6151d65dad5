/* Constants that give a shape: next to the data whose shape it is (Reshape, Resize, Expand), and upstream of a node that does not
 * fit the new batch. */
#include <string.h>

#include "base/fail.h"
#include "base/rules.h"
#include "infer/driver.h"

/* How far upstream of a mismatch is looked, in nodes. */
enum { MAX_SEARCH = 4096 };

/* --- Reshape ----------------------------------------------------------------------------------- */

/* A target and the data that it is for. */
typedef struct reshape {
    const onv_type *input;
    onv_dim elems; /* of the data */
    onv_dim target[ONV_MAX_RANK];
    int64_t sizes[ONV_MAX_RANK]; /* at the old batch, -1 where it is not known */
    uint32_t count;
    uint32_t copied; /* bits of entries that are 0: a dim of the data as it is */
    int open;        /* the entry that is -1; -1: none */
    int axis;        /* the dim that holds the batch */
    int64_t before;  /* elements ahead of it, -1 unknown */
    int64_t span;    /* its size at the old batch */
} reshape;

/* An entry that holds the old batch (or a multiple), for the new one. */
static onv_dim carried(onv_driver *driver, int64_t entry)
{
    return onv_dim_mul(&driver->model->dims, driver->rebatch.symbol,
                       onv_dim_const(entry / driver->rebatch.old));
}

/* The first dim with the batch, and where it stands in the row-major order. */
static void place_batch(onv_driver *driver, reshape *r)
{
    r->before = 1;
    r->span = -1;
    for (r->axis = 0; r->axis < r->input->rank; r->axis++) {
        onv_dim d = r->input->dims[r->axis];
        if (onv_rebatch_is_in(driver, d)) {
            onv_dim span = onv_rebatch_at(driver, d, 1);
            if (onv_dim_is_const(span)) r->span = span.raw;
            return;
        }
        if (!onv_dim_is_const(d) || __builtin_mul_overflow(r->before, d.raw, &r->before)) break;
    }
    r->before = -1;
}

/* Entries at the old batch; the one that is -1 follows from the others. */
static void size_target(onv_driver *driver, reshape *r)
{
    int64_t rest = 1;
    onv_dim elems = onv_rebatch_at(driver, r->elems, 1);
    r->open = -1;
    for (uint32_t i = 0; i < r->count; i++) {
        onv_dim size = onv_rebatch_at(driver, r->target[i], 1);
        r->sizes[i] = onv_dim_is_const(size) ? size.raw : -1;
        if (onv_dim_is(size, -1))
            r->open = (int)i;
        else if (r->sizes[i] <= 0 || __builtin_mul_overflow(rest, r->sizes[i], &rest))
            rest = 0;
    }
    if (r->open >= 0 && rest > 0 && onv_dim_is_const(elems) && elems.raw % rest == 0)
        r->sizes[r->open] = elems.raw / rest;
}

/* Whether the target with entry `j` changed holds as many elements as the data. */
static bool matches(onv_driver *driver, const reshape *r, uint32_t j)
{
    onv_dim product = onv_dim_const(1);
    for (uint32_t i = 0; i < r->count; i++) {
        bool is_sized = (int)i == r->open && r->sizes[i] > 0;
        onv_dim entry = is_sized ? onv_dim_const(r->sizes[i]) : r->target[i];
        product = onv_dim_mul(&driver->model->dims, product,
                              i == j ? carried(driver, r->sizes[i]) : entry);
    }
    return onv_dim_same(product, r->elems);
}

static bool may_carry(const onv_driver *driver, const reshape *r, uint32_t i)
{
    return (r->copied >> i & 1) == 0 && r->sizes[i] % driver->rebatch.old == 0;
}

/* Whether entry `i`, with `prefix` elements ahead of it, holds the dim with the batch or is a part of it; of a
 * batch of one also whether it touches that dim, as nothing tells on which side the batch stands. */
static bool overlaps(const onv_driver *driver, const reshape *r, uint32_t i, int64_t prefix)
{
    int64_t end, dim_end;
    if (__builtin_mul_overflow(prefix, r->sizes[i], &end) ||
        __builtin_mul_overflow(r->before, r->span, &dim_end))
        return false;
    if (driver->rebatch.old == 1) return prefix <= dim_end && end >= r->before;
    return (prefix <= r->before && end >= dim_end) || (prefix >= r->before && end <= dim_end);
}

/* Whether the target begins with the dims of the data, up to the one with the batch. */
static bool begins_alike(const reshape *r)
{
    for (int k = 0; k < r->axis; k++)
        if ((uint32_t)k >= r->count || !onv_dim_is(r->input->dims[k], r->sizes[k])) return false;
    return (uint32_t)r->axis < r->count && r->sizes[r->axis] == r->span;
}

/* The likelier, the lower: the dim as it was, the old batch itself, what begins where the dim does or is a
 * part of it, what ends there. */
static int rank_candidate(const onv_driver *driver, const reshape *r, uint32_t i, int64_t prefix)
{
    if ((int)i == r->axis && begins_alike(r)) return 0;
    if (r->sizes[i] == driver->rebatch.old) return 1;
    return prefix >= r->before ? 2 : 3;
}

/* Fills the list of entries that may be the batch, the likeliest first. */
static void find_candidates(onv_driver *driver, const reshape *r, onv_rewrite *list)
{
    uint8_t ranks[ONV_MAX_RANK];
    int64_t prefix = 1;
    list->n_candidates = 0;
    for (uint32_t i = 0; i < r->count && r->before >= 0 && r->span > 0 && r->sizes[i] > 0; i++) {
        if (may_carry(driver, r, i) && overlaps(driver, r, i, prefix) && matches(driver, r, i)) {
            int rank = rank_candidate(driver, r, i, prefix);
            uint32_t at = list->n_candidates++;
            for (; at > 0 && ranks[at - 1] > rank; at--) {
                ranks[at] = ranks[at - 1];
                list->candidates[at] = list->candidates[at - 1];
            }
            ranks[at] = (uint8_t)rank;
            list->candidates[at] = (uint8_t)i;
        }
        if (__builtin_mul_overflow(prefix, r->sizes[i], &prefix)) break;
    }
    /* Data that is cut in another way than its samples. */
    for (uint32_t i = 0; i < r->count && list->n_candidates == 0 && r->open < 0; i++)
        if (r->sizes[i] > 0 && may_carry(driver, r, i) && matches(driver, r, i))
            list->candidates[list->n_candidates++] = (uint8_t)i;
}

/* The candidate that is tried now. The entry that is -1 needs no change. */
static void apply_candidate(onv_driver *driver, onv_rewrite *rewrite, const onv_known *target)
{
    uint32_t entry = rewrite->candidates[rewrite->tried];
    onv_dim *now = &rewrite->known->elems[entry].i;
    if (onv_dim_is_const(target->elems[entry].i) && target->elems[entry].i.raw > 0)
        *now = carried(driver, target->elems[entry].i.raw);
}

/* The next way to read a Reshape; false where none is left. */
static bool read_otherwise(onv_driver *driver, onv_rewrite *rewrite)
{
    if (rewrite->tried + 1 >= rewrite->n_candidates) return false;
    onv_dim *last = &rewrite->known->elems[rewrite->candidates[rewrite->tried]].i;
    onv_dim old = onv_rebatch_at(driver, *last, 1);
    if (onv_rebatch_is_in(driver, *last)) *last = old;
    rewrite->tried++;
    apply_candidate(driver, rewrite, rewrite->known);
    return true;
}

static onv_status rebatch_reshape(onv_driver *driver, onv_node_id node, onv_op_ctx *c)
{
    reshape r = {.input = onv_op_in(c, 0)};
    if (!onv_op_in_ints(c, 1, &r.count) || r.count > ONV_MAX_RANK) return ONV_OK;
    r.elems = onv_type_elems(c->dims, r.input);
    if (!onv_rebatch_is_in(driver, r.elems)) return ONV_OK;
    onv_dim product = onv_dim_const(1);
    for (uint32_t i = 0; i < r.count; i++) {
        r.target[i] = onv_op_in_int(c, 1, i);
        if (onv_dim_is(r.target[i], 0)) {
            r.target[i] = onv_op_in_dim(c, 0, (int)i);
            r.copied |= (uint32_t)1 << i;
        }
        if (onv_rebatch_is_in(driver, r.target[i])) return ONV_OK;
        product = onv_dim_mul(c->dims, product, r.target[i]);
    }
    if (onv_dim_same(product, r.elems)) return ONV_OK;
    place_batch(driver, &r);
    size_target(driver, &r);
    onv_rewrite list;
    find_candidates(driver, &r, &list);
    if (list.n_candidates == 0) return ONV_OK; /* the rule itself fails, with both shapes */
    if (list.n_candidates == 1 && list.candidates[0] == r.open) return ONV_OK;
    const onv_known *target = onv_op_in_known(c, 1);
    onv_rewrite *rewrite = onv_rebatch_add(driver, node.index, 1, target);
    if (rewrite == NULL) return onv_fail_memory(driver->err);
    rewrite->n_candidates = list.n_candidates;
    memcpy(rewrite->candidates, list.candidates, list.n_candidates);
    apply_candidate(driver, rewrite, target);
    c->in[1].known = rewrite->known;
    return ONV_OK;
}

/* --- Resize and Expand ------------------------------------------------------------------------- */

/* Entries that give the size which a dim with the batch had at the old one: they keep the dim, whole. */
static onv_status rebatch_beside(onv_driver *driver, onv_node_id node, onv_op_ctx *c, uint32_t k)
{
    const onv_type *input = onv_op_in(c, 0);
    uint32_t count;
    if (k >= c->n_in || !onv_op_in_ints(c, k, &count) || !onv_type_has_rank(input) ||
        count < (uint32_t)input->rank)
        return ONV_OK;
    onv_rewrite *rewrite = NULL;
    for (int axis = 0; axis < input->rank; axis++) {
        onv_dim d = input->dims[axis];
        if (!onv_rebatch_is_in(driver, d)) continue;
        uint32_t entry = count - (uint32_t)input->rank + (uint32_t)axis;
        onv_dim size = onv_rebatch_at(driver, d, 1);
        if (!onv_dim_is_const(size) || size.raw == 1 ||
            !onv_dim_same(onv_op_in_int(c, k, entry), size))
            continue;
        if (rewrite == NULL)
            rewrite = onv_rebatch_add(driver, node.index, k, onv_op_in_known(c, k));
        if (rewrite == NULL) return onv_fail_memory(driver->err);
        rewrite->known->elems[entry].i = d;
    }
    if (rewrite != NULL) c->in[k].known = rewrite->known;
    return ONV_OK;
}

/* --- All of a node ----------------------------------------------------------------------------- */

onv_status onv_rebatch_inputs(onv_driver *driver, onv_node_id node, onv_op_ctx *c)
{
    onv_rebatch *rebatch = &driver->rebatch;
    if (rebatch->first != NULL && rebatch->first[node.index] >= 0) {
        for (uint32_t k = 0; k < c->n_in; k++) {
            onv_rewrite *rewrite = onv_rebatch_find(rebatch, node.index, k);
            if (rewrite != NULL) c->in[k].known = rebatch->active ? rewrite->known : rewrite->bound;
        }
        return ONV_OK;
    }
    if (!rebatch->active || c->n_in < 2) return ONV_OK;
    uint16_t op = c->node->code;
    if (op == ONV_OP_Reshape) return rebatch_reshape(driver, node, c);
    if (op == ONV_OP_Expand) return rebatch_beside(driver, node, c, 1);
    if (op == ONV_OP_Resize) return rebatch_beside(driver, node, c, 3);
    return ONV_OK;
}

/* --- Upstream ---------------------------------------------------------------------------------- */

/* Whether the result is itself part of a shape: integers that inference follows. */
static bool gives_shape(const onv_driver *driver, const onv_node *node)
{
    const onv_value *value = onv_node_output(driver->model, node, 0);
    return value != NULL && value->known != NULL && value->type.rank == 1 &&
           onv_dtype_is_integer((onv_dtype)value->type.dtype);
}

/* The input that gives the shape of the output, or of a shape a part: -1 none. */
static int shape_input(const onv_driver *driver, const onv_node *node)
{
    bool is_shape = gives_shape(driver, node);
    if (node->code == ONV_OP_Concat) return is_shape ? 0 : -1;
    if (node->code == ONV_OP_Where) return is_shape ? 2 : -1; /* Expand's -1 stand for 1 */
    if (node->code == ONV_OP_Resize) return 3;                /* sizes */
    if (is_shape) return -1;
    if (node->code == ONV_OP_Expand || node->code == ONV_OP_Tile) return 1;
    return node->code == ONV_OP_ConstantOfShape ? 0 : -1;
}

/* The entry that is the old batch; of a batch of one only the first is told from others. */
static uint32_t entry_of_batch(const onv_driver *driver, const onv_known *known)
{
    uint32_t end = driver->rebatch.old > 1 ? known->count : 1;
    for (uint32_t i = 0; i < end && i < known->count; i++)
        if (onv_dim_is(known->elems[i].i, driver->rebatch.old)) return i;
    return known->count;
}

static onv_status change_input(onv_driver *driver, uint32_t node, uint32_t k,
                               const onv_known *known, uint32_t entry)
{
    onv_rewrite *rewrite = onv_rebatch_add(driver, node, k, known);
    if (rewrite == NULL) return onv_fail_memory(driver->err);
    rewrite->known->elems[entry].i = driver->rebatch.symbol;
    rewrite->is_upstream = true;
    return ONV_OK;
}

/* A Where compares the constant before it takes it. */
static onv_status change_comparison(onv_driver *driver, const onv_node *where,
                                    const onv_known *known, uint32_t entry)
{
    onv_value_id constant = where->inputs[2];
    const onv_node *equal = onv_model_maker(driver->model, where->inputs[0]);
    if (equal == NULL) return ONV_OK;
    uint32_t index = (uint32_t)(equal - driver->model->nodes.at);
    for (uint32_t k = 0; k < equal->n_inputs; k++)
        if (equal->inputs[k].index == constant.index &&
            onv_rebatch_find(&driver->rebatch, index, k) == NULL)
            ONV_TRY(change_input(driver, index, k, known, entry));
    return ONV_OK;
}

/* Changes the first entry of that input that is the old batch, if the input was not changed yet. */
static onv_status change_constant(onv_driver *driver, uint32_t index, bool *changed)
{
    const onv_node *node = &driver->model->nodes.at[index];
    int k = shape_input(driver, node);
    onv_value *value = k >= 0 ? onv_node_input(driver->model, node, (uint32_t)k) : NULL;
    const onv_known *known = NULL;
    if (value == NULL || !onv_value_is_weight(value) ||
        onv_rebatch_find(&driver->rebatch, index, (uint32_t)k) != NULL)
        return ONV_OK;
    ONV_TRY(onv_driver_constant(driver, value, &known));
    if (known == NULL || !onv_dtype_is_integer((onv_dtype)known->dtype)) return ONV_OK;
    uint32_t entry = entry_of_batch(driver, known);
    if (entry >= known->count) return ONV_OK;
    *changed = true;
    if (node->code == ONV_OP_Where) ONV_TRY(change_comparison(driver, node, known, entry));
    return change_input(driver, index, (uint32_t)k, known, entry);
}

/* Forgets those that runs found after this one. */
static void forget_after(onv_driver *driver, const onv_rewrite *rewrite)
{
    onv_rebatch *rebatch = &driver->rebatch;
    size_t kept = (size_t)(rewrite - rebatch->rewrites.at) + 1;
    for (size_t i = kept; i < rebatch->rewrites.count; i++)
        if (rebatch->rewrites.at[i].is_upstream)
            rebatch->rewrites.at[kept++] = rebatch->rewrites.at[i];
    rebatch->rewrites.count = kept;
    for (size_t i = 0; i < driver->model->nodes.count; i++) rebatch->first[i] = -1;
    for (size_t i = 0; i < kept; i++) {
        onv_rewrite *one = &rebatch->rewrites.at[i];
        one->next = rebatch->first[one->node];
        rebatch->first[one->node] = (int32_t)i;
    }
}

static onv_status change_node(onv_driver *driver, uint32_t index, bool *changed)
{
    onv_rewrite *target = onv_rebatch_find(&driver->rebatch, index, 1);
    if (target != NULL && read_otherwise(driver, target)) {
        forget_after(driver, target);
        *changed = true;
        return ONV_OK;
    }
    return driver->rebatch.is_unlikely ? ONV_OK : change_constant(driver, index, changed);
}

/* Every constant has one sample of a batch of one: only what does not fit tells. */
static bool may_resize_at(const onv_driver *driver, size_t at)
{
    const onv_rebatch *rebatch = &driver->rebatch;
    return rebatch->may_resize && !rebatch->is_unlikely && (rebatch->old > 1 || at == 0);
}

/* Breadth first from the node that failed, against the edges. */
onv_status onv_rebatch_change_upstream(onv_driver *driver, bool *changed)
{
    *changed = false;
    if (!onv_rule_is_on("infer.rebatch_search")) return ONV_OK;
    onv_model *model = driver->model;
    uint32_t *queue = ONV_ARENA_ARRAY(&driver->scratch, uint32_t, MAX_SEARCH);
    bool *seen = ONV_ARENA_ARRAY(&driver->scratch, bool, model->nodes.count);
    size_t count = 0;
    if (queue == NULL || seen == NULL) return onv_fail_memory(driver->err);
    queue[count++] = driver->failed_node.index;
    seen[driver->failed_node.index] = true;
    for (size_t at = 0; at < count && !*changed; at++) {
        ONV_TRY(change_node(driver, queue[at], changed));
        if (!*changed && may_resize_at(driver, at))
            ONV_TRY(onv_rebatch_resize_input(driver, queue[at], changed));
        const onv_node *node = &model->nodes.at[queue[at]];
        for (uint32_t k = 0; k < node->n_inputs && count < MAX_SEARCH; k++) {
            const onv_node *maker = onv_model_maker(model, node->inputs[k]);
            uint32_t index = maker != NULL ? (uint32_t)(maker - model->nodes.at) : 0;
            if (maker == NULL || seen[index]) continue;
            seen[index] = true;
            queue[count++] = index;
        }
    }
    return ONV_OK;
}
