/* A Reshape to a shape that Concat puts together of constants, of dims that the operand has in the same
 * place (0), and of at most one number that is computed in another way (-1): to a constant. */
#include "rewrite/fuse.h"
#include "rewrite/seen.h"
#include "rewrite/transpose.h"

enum { MOST_PARTS = 64 };

static bool has_one_element(const onv_edit *e, onv_value_id value)
{
    const onv_type *type = onv_edit_seen(e, value);
    if (!onv_type_has_rank(type)) return false;
    for (int i = 0; i < type->rank; i++)
        if (!onv_dim_is(type->dims[i], 1)) return false;
    return true;
}

/* Dim `axis` of what is reshaped. */
static bool is_dim(onv_edit *e, onv_value_id root, onv_node_id unsqueeze, uint32_t axis)
{
    onv_form_match m;
    onv_axes axes;
    double index;
    if (!onv_is_node(unsqueeze) ||
        !onv_fuse_form(e, unsqueeze, "^Unsqueeze(!Gather(!Shape(x)i))", &m) ||
        !onv_push_read_axes(e, unsqueeze, 1, &axes) || axes.count != 1 || axes.at[0] != 0)
        return false;
    if (!onv_edit_scalar(e, onv_form_value(&m, 'i'), &index) || index != axis) return false;
    onv_value_id of = onv_form_value(&m, 'x');
    return of.index == root.index ||
           onv_dim_same(onv_fuse_dim(e, of, (int)axis), onv_fuse_dim(e, root, (int)axis));
}

typedef struct target {
    int64_t dims[MOST_PARTS];
    uint32_t count;
} target;

static bool append_constant(onv_edit *e, onv_value_id part, target *t)
{
    const onv_scalar *list;
    uint32_t n;
    if (!onv_edit_ints(e, part, &list, &n) || n > MOST_PARTS - t->count) return false;
    for (uint32_t i = 0; i < n; i++) t->dims[t->count++] = list[i].i.raw;
    return true;
}

static bool find_target(onv_edit *e, onv_value_id root, onv_node_id concat, target *t)
{
    uint32_t n_open = 0;
    for (uint32_t k = 0; k < onv_edit_node_at(e, concat)->n_inputs; k++) {
        onv_value_id part = onv_edit_in(e, concat, k);
        if (append_constant(e, part, t)) continue;
        if (t->count == MOST_PARTS) return false;
        if (is_dim(e, root, onv_edit_in_node(e, concat, k), t->count))
            t->dims[t->count++] = 0;
        else if (has_one_element(e, part))
            t->dims[t->count++] = -1;
        else
            return false;
    }
    for (uint32_t i = 0; i < t->count; i++) n_open += t->dims[i] == -1;
    return n_open <= 1;
}

/* --- Reshapes one after the other -------------------------------------------------------------- */

/* A Reshape for which 0 is a size stays. */
static bool only_reshapes(const onv_edit *e, onv_node_id node)
{
    if (onv_edit_is(e, node, ONV_OP_Reshape)) return onv_edit_int(e, node, "allowzero", 0) == 0;
    return onv_edit_is(e, node, ONV_OP_Squeeze) || onv_edit_is(e, node, ONV_OP_Unsqueeze);
}

/* The last one of those that each read alone what the one before makes, to a shape that is known. */
static onv_node_id last_reshape(const onv_edit *e, onv_node_id node)
{
    for (onv_node_id next;; node = next) {
        next = onv_edit_only_user(e, onv_edit_out(e, node, 0));
        if (!onv_is_node(next) || !only_reshapes(e, next)) return node;
        const onv_type *out = onv_edit_seen(e, onv_edit_out(e, next, 0));
        if (!onv_type_has_rank(out) || !onv_type_is_static(out)) return node;
    }
}

/* A Reshape, and Reshapes, Squeezes and Unsqueezes behind it: to the last shape at once. */
static bool join_reshapes(onv_edit *e, onv_node_id node)
{
    int64_t dims[ONV_MAX_RANK];
    if (!only_reshapes(e, node)) return false;
    onv_node_id last = last_reshape(e, node);
    if (last.index == node.index) return false;
    onv_value_id out = onv_edit_out(e, last, 0);
    const onv_type *to = onv_edit_seen(e, out);
    /* Under another batch than the file's: the sizes that were inferred, not those of its constants. */
    const onv_type *own = &onv_edit_value_at(e, out)->type;
    if (onv_type_has_rank(own) && onv_type_is_static(own) && own->rank == to->rank) to = own;
    for (int i = 0; i < to->rank; i++) dims[i] = to->dims[i].raw;
    ONV_MAKE(e, last, "Reshape", .name = onv_edit_node_at(e, node)->name, ONV_OUTPUTS(out),
             ONV_INPUTS(onv_edit_in(e, node, 0),
                        onv_edit_add_ints(e, node, onv_edit_value_at(e, out)->name, dims,
                                          (uint32_t)to->rank)));
    for (onv_node_id at = last; e->status == ONV_OK; at = onv_edit_in_node(e, at, 0)) {
        onv_edit_remove(e, at);
        if (at.index == node.index) break;
    }
    return true;
}

static bool make_constant(onv_edit *e, onv_node_id node)
{
    target t = {.count = 0};
    onv_node_id concat = onv_edit_in_node(e, node, 1);
    if (!onv_is_node(concat)) return false;
    if (!onv_edit_is(e, concat, ONV_OP_Concat) ||
        !onv_is_node(onv_edit_only_user(e, onv_edit_out(e, concat, 0))))
        return false;
    if (!find_target(e, onv_edit_in(e, node, 0), concat, &t)) return false;
    const char *name = onv_edit_value_at(e, onv_edit_out(e, concat, 0))->name;
    onv_value_id shape = onv_edit_add_ints(e, node, name, t.dims, t.count);
    if (e->status != ONV_OK) return false;
    onv_edit_set_input(e, node, 1, shape);
    onv_edit_remove_with_inputs(e, concat);
    onv_seen_node(e, node);
    return true;
}

bool onv_rule_reshape(onv_edit *e, onv_node_id node)
{
    bool is_constant = onv_edit_is(e, node, ONV_OP_Reshape) &&
                       onv_edit_node_at(e, node)->version <= 18 && make_constant(e, node);
    return join_reshapes(e, node) || is_constant;
}
