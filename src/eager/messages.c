/* What propagate() and edge_updater() of PyTorch Geometric hold, of which a trace tells no line but the one that calls them.
 *
 * Both first collect what messages are made of, rows of the nodes' tensors, into a tuple that they hold until they return, as
 * they do their arguments. Then message() or edge_update() computes of them, under names of its own, and a module joins the
 * messages.
 */
#include <string.h>

#include "base/rules.h"
#include "eager/naming.h"
#include "fuse/fuse.h"
#include "load/statements.h"

static bool sends(const onv_statement *s)
{
    return s->kind == ONV_STATEMENT_SENDS || s->kind == ONV_STATEMENT_EDGES;
}

static bool selects_rows(const onv_naming *n, uint32_t op)
{
    onv_node_id node = onv_eager_told(&n->eager->ops.at[op]);
    return onv_is_node(node) && onv_node_is_aten(onv_model_node(n->model, node), "index_select");
}

static bool joins_messages(const onv_naming *n, uint32_t op)
{
    onv_node_id node = onv_eager_told(&n->eager->ops.at[op]);
    const char *class = onv_is_node(node) ? onv_model_node(n->model, node)->module_class : NULL;
    return class != NULL && strstr(class, "torch_geometric.nn.aggr.") != NULL;
}

static bool is_view(const onv_naming *n, const onv_eager_op *op)
{
    return op->n_in > 0 && op->n_out > 0 &&
           n->eager->tensors.at[op->in[0].tensor].storage ==
               n->eager->tensors.at[op->out[0]].storage;
}

/* A loop around propagate(): behind what joined messages it collects anew. */
bool onv_messages_begin_again(const onv_naming *n, uint32_t call, uint32_t op)
{
    uint32_t current = n->current[call];
    return current != ONV_NO_STATEMENT && n->at.at[current].joins > 0 && selects_rows(n, op);
}

/* What is computed before the first rows are selected are arguments. */
void onv_messages_note(onv_naming *n, onv_statement *s, uint32_t op)
{
    if (!sends(s)) return;
    bool selects = selects_rows(n, op);
    if (selects && s->collects == 0) s->collects = op + 1;
    n->is_collected[op] = !s->has_sent && (selects || s->collects == 0);
    s->has_sent |= s->collects > 0 && !selects && !is_view(n, &n->eager->ops.at[op]);
    if (s->joins == 0 && joins_messages(n, op)) s->joins = op + 1;
}

static bool reads(const onv_naming *n, uint32_t op, uint32_t storage)
{
    const onv_eager_op *at = &n->eager->ops.at[op];
    for (uint32_t k = 0; k < at->n_in; k++)
        if (n->eager->tensors.at[at->in[k].tensor].storage == storage) return true;
    return false;
}

static bool is_of_type(const onv_naming *n, uint32_t op, const char *op_type)
{
    onv_node_id node = onv_eager_told(&n->eager->ops.at[op]);
    return onv_is_node(node) && strcmp(onv_model_node(n->model, node)->op_type, op_type) == 0;
}

/* softmax() of PyTorch Geometric scatters the maxima of what it is given, subtracts them, and divides at its end. Returns 1 + the
 * operation that divides; 0: the tensor is not given to it. */
static uint32_t find_softmax_end(const onv_naming *n, const onv_statement *s, uint32_t op,
                                 uint32_t tensor)
{
    enum { MOST_BETWEEN = 24 };
    static const char *const steps[] = {"ScatterElements", "Sub", "Exp", "Div"};
    uint32_t storage = n->eager->tensors.at[tensor].storage, step = 0;
    for (uint32_t i = op + 1; i <= s->last_op && i <= op + MOST_BETWEEN; i++) {
        if (!is_of_type(n, i, steps[step]) || (step < 2 && !reads(n, i, storage))) continue;
        if (++step == sizeof steps / sizeof steps[0]) return i + 1;
    }
    return 0;
}

/* What message() has of a module and reads together with something else has a name there, as a rule, until it returns:
 * `edges = self.lin(edges)`, and not `self.lin(edges).sigmoid()`. */
static void hold_module_result(onv_naming *n, const onv_statement *s, uint32_t op, uint32_t tensor)
{
    uint32_t reader = n->last_use[tensor], own = n->of_op[op];
    uint32_t end = s->joins > 0 ? s->joins - 2 : s->last_op;
    bool returns = s->joins > 0 || s->kind == ONV_STATEMENT_EDGES;
    if (!returns || op > end || own == ONV_NO_STATEMENT || &n->at.at[own] == s) return;
    const onv_eager_op *at = &n->eager->ops.at[reader];
    while (is_view(n, at) && n->last_use[at->out[0]] > reader) {
        reader = n->last_use[at->out[0]];
        at = &n->eager->ops.at[reader];
    }
    bool is_read_there = n->of_op[reader] != ONV_NO_STATEMENT && &n->at.at[n->of_op[reader]] == s;
    if (at->n_in >= 2 && is_read_there) onv_naming_hold(n, tensor, end);
}

void onv_messages_hold(onv_naming *n, const onv_statement *s, uint32_t op, uint32_t tensor)
{
    if (!onv_rule_is_on("eager.messages")) return;
    if (!sends(s)) return;
    bool is_given = s->collects > 0 && n->last_use[tensor] + 1 >= s->collects;
    if (n->is_collected[op] && is_given) onv_naming_hold(n, tensor, s->last_op);
    /* Its result takes the name, as a rule: `alpha = softmax(alpha, index)`. */
    uint32_t softmax = find_softmax_end(n, s, op, tensor);
    if (softmax > 0)
        onv_naming_hold(n, tensor, softmax - 1);
    else
        hold_module_result(n, s, op, tensor);
}
