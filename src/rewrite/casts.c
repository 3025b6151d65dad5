/* What ONNX Runtime does to casts at every level (read in source:
 * onnxruntime/core/optimizer/insert_cast_transformer.cc). */
#include "rewrite/fuse.h"

enum type_group { OTHER, BOOLEAN, INTEGER, UNSIGNED, FLOATING };

static enum type_group group_of(uint8_t dtype)
{
    uint32_t bits = onv_dtype_bits((onv_dtype)dtype);
    if (dtype == ONV_BOOL) return BOOLEAN;
    if (onv_dtype_is_float((onv_dtype)dtype)) return bits >= 16 ? FLOATING : OTHER;
    if (!onv_dtype_is_integer((onv_dtype)dtype) || bits < 8) return OTHER;
    return dtype == ONV_UINT8 || dtype == ONV_UINT16 || dtype == ONV_UINT32 || dtype == ONV_UINT64
               ? UNSIGNED
               : INTEGER;
}

static unsigned bits_of(uint8_t dtype)
{
    return dtype == ONV_BOOL ? 1 : onv_dtype_bits((onv_dtype)dtype);
}

/* Whether a cast may lose something. */
static bool is_lossy(uint8_t from, uint8_t to)
{
    enum type_group source = group_of(from), target = group_of(to);
    bool is_wider = bits_of(to) > bits_of(from);
    if (source == OTHER || target == OTHER) return true;
    if (target == UNSIGNED && source != BOOLEAN && source != UNSIGNED) return true;
    if (source == FLOATING && target != FLOATING) return true;
    if (source == UNSIGNED && target == INTEGER) return !is_wider;
    if ((source == INTEGER || source == UNSIGNED) && target == FLOATING) return !is_wider;
    if (source == FLOATING && bits_of(from) == 16 && bits_of(to) == 16) return from != to;
    return bits_of(from) > bits_of(to);
}

static uint8_t dtype_of(const onv_edit *e, onv_value_id value)
{
    return onv_edit_seen(e, value)->dtype;
}

/* Whether a Cast behind a Cast may take its input: the first one loses nothing, or what it lost is not
 * there behind the second one, either. */
static bool may_follow(const onv_edit *e, onv_node_id first, onv_node_id second)
{
    uint8_t from = dtype_of(e, onv_edit_in(e, first, 0));
    uint8_t between = dtype_of(e, onv_edit_out(e, first, 0));
    uint8_t to = dtype_of(e, onv_edit_out(e, second, 0));
    return !is_lossy(from, between) || !is_lossy(to, between);
}

/* A Cast that Casts alone read goes, and with it those that cast back; of one that others read, too, those
 * that cast back go. */
bool onv_rule_duplicate_casts(onv_edit *e, onv_node_id node)
{
    onv_value_id in = onv_edit_in(e, node, 0), out = onv_edit_out(e, node, 0);
    uint8_t from = dtype_of(e, in);
    bool is_changed = false, only_casts = onv_edit_n_uses(e, out) > 0;
    if (group_of(from) == OTHER || group_of(dtype_of(e, out)) == OTHER) return false;
    ONV_EACH_USE(e, out, u)
    {
        bool is_cast = onv_edit_is(e, u->node, ONV_OP_Cast) && onv_edit_is_beside(e, u->node, node);
        only_casts &= is_cast;
        if (is_cast && !may_follow(e, node, u->node)) return false;
    }
    for (uint32_t at = e->values.at[out.index].first_use;
         at != ONV_NO_USE && e->status == ONV_OK;) {
        onv_use use = e->uses.at[at];
        at = use.next;
        onv_value_id second = onv_edit_out(e, use.node, 0);
        if (!onv_edit_is(e, use.node, ONV_OP_Cast) || dtype_of(e, second) != from ||
            onv_edit_is_result(e, second))
            continue;
        onv_edit_replace(e, second, in);
        onv_edit_remove(e, use.node);
        is_changed = true;
    }
    if (!only_casts || onv_edit_is_result(e, out)) return is_changed;
    onv_edit_replace(e, out, in);
    onv_edit_remove(e, node);
    return true;
}
