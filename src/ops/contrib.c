#include "ops/contrib.h"

#include "base/fail.h"
#include "ops/op_shapes.h"

onv_status onv_borrow_init(onv_op_ctx *c, const onv_op *row, int32_t version, const uint8_t *map,
                           uint32_t n_in, onv_borrow *b)
{
    *b = (onv_borrow){.c = *c};
    if (row->says) ONV_TRY(onv_op_shapes_compile(row, c->arena, &row, c->err));
    b->c.op = row;
    b->c.version = version;
    b->c.n_in = map != NULL ? n_in : c->n_in;
    onv_op_value *in = ONV_ARENA_ARRAY(c->arena, onv_op_value, b->c.n_in);
    bool *present = ONV_ARENA_ARRAY(c->arena, bool, b->c.n_in);
    if (in == NULL || present == NULL) return onv_fail_memory(c->err);
    for (uint32_t k = 0; k < b->c.n_in; k++) {
        uint32_t from = map == NULL ? k : (uint32_t)map[k] - 1; /* 0 becomes no input at all */
        present[k] = onv_op_has_in(c, from);
        if (present[k])
            in[k] = c->in[from];
        else
            in[k].type.rank = -1;
    }
    b->c.in = in;
    b->c.in_present = present;
    /* It would look for contents by the numbers of the node's own inputs. */
    if (map != NULL) b->c.load_known = NULL;
    return ONV_OK;
}

/* --- Aliases ----------------------------------------------------------------------------------- */

static const onv_dim *move_channels(onv_op_ctx *c, const onv_type *type, bool to_front)
{
    int rank = type->rank;
    onv_dim *dims = ONV_ARENA_ARRAY(c->arena, onv_dim, (size_t)rank);
    if (dims == NULL) return type->dims;
    dims[0] = type->dims[0];
    dims[to_front ? 1 : rank - 1] = type->dims[to_front ? rank - 1 : 1];
    for (int i = 2; i < rank; i++) dims[to_front ? i : i - 1] = type->dims[to_front ? i - 1 : i];
    return dims;
}

static bool channels_last(const onv_op_ctx *c, const onv_alias *alias)
{
    if (alias->channels != ONV_CHANNELS_BY_ATTRIBUTE) return alias->channels != ONV_CHANNELS_FIRST;
    return onv_op_attr_int(c, "channels_last", 0) != 0;
}

static onv_status borrow_alias(onv_op_ctx *c, onv_borrow *b)
{
    const onv_alias *a = c->op->with;
    bool same = true;
    uint32_t n_in = 0;
    for (uint32_t k = 0; k < ONV_ALIAS_MAX_IN; k++) {
        if (a->in[k] == 0) continue;
        same = false;
        n_in = k + 1;
    }
    ONV_TRY(onv_borrow_init(c, onv_op_of_onnx(a->as, a->version), a->version, same ? NULL : a->in,
                            n_in, b));
    if (channels_last(c, a) && onv_op_in_rank(&b->c, 0) >= 2) {
        onv_type *type = &b->c.in[0].type;
        type->dims = move_channels(c, type, true);
        b->moved = true;
    }
    if (a->channels == ONV_CHANNELS_LAST_IN_ALL && onv_op_in_rank(&b->c, 1) >= 2)
        b->c.in[1].type.dims = move_channels(c, &b->c.in[1].type, true);
    return ONV_OK;
}

onv_status onv_alias_infer(onv_op_ctx *c)
{
    const onv_alias *alias = c->op->with;
    onv_borrow b;
    ONV_TRY(borrow_alias(c, &b));
    ONV_TRY(b.c.op->infer(&b.c));
    for (uint32_t k = 0; k < c->n_out; k++)
        c->out[k].known = NULL; /* they may mean another thing */
    if (!onv_op_has_out(c, 0) || c->out[0].type.kind != ONV_TYPE_TENSOR) return ONV_OK;
    onv_type *type = &c->out[0].type;
    if (channels_last(c, alias) && type->rank >= 2) {
        if (b.moved) {
            type->dims = move_channels(c, type, false);
        } else { /* what the rule took for the channels were others */
            type->rank = -1;
            type->dims = NULL;
        }
    }
    if (alias->dtype_of > 0 && onv_op_has_in(c, alias->dtype_of - 1u))
        type->dtype = (uint8_t)onv_op_in_dtype(c, alias->dtype_of - 1u);
    else if (alias->dtype != ONV_UNDEFINED)
        type->dtype = alias->dtype;
    return ONV_OK;
}

onv_dim onv_alias_macs(onv_op_ctx *c)
{
    onv_borrow b;
    if (borrow_alias(c, &b) != ONV_OK) return ONV_DIM_UNKNOWN;
    return b.c.op->macs != NULL ? b.c.op->macs(&b.c) : onv_dim_const(0);
}
