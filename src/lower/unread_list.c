/* A list that the last run of a loop joins, and nothing reads.
 *
 *     for layer in self.layers:
 *         found = []
 *         for t in range(n):
 *             h, c = layer(x[:, t], h, c)
 *             found.append(h)
 *         x = torch.stack(found, 1)
 *     return self.head(h)
 *
 * The exporter leaves out the last stack. The number of its call is missing; what the run before joined tells which results
 * the list has: those of the next member in the same lines. The tensor and the list have names until forward returns. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "eager/names.h"
#include "load/statements.h"
#include "lower/lowering.h"

enum { MAX_PATH = 1024, MAX_JOINED = 256 };

/* The value that PyTorch joins: stack() is exported as views, which are joined. */
static onv_value_id joined_value(const onv_lowering *l, const onv_node *join, uint32_t k)
{
    onv_value_id id = join->inputs[k];
    onv_node_id producer =
        onv_is_value(id) ? onv_model_value(l->emit.model, id)->producer : ONV_NO_NODE;
    if (!onv_is_node(producer)) return ONV_NO_VALUE;
    const onv_node *node = onv_model_node(l->emit.model, producer);
    bool is_own = node->source_op != NULL && strcmp(node->source_op, join->source_op) == 0;
    return is_own && node->n_inputs > 0 ? node->inputs[0] : id;
}

static const onv_node *maker_of(const onv_lowering *l, const onv_node *join, uint32_t k)
{
    onv_value_id id = joined_value(l, join, k);
    onv_node_id producer =
        onv_is_value(id) ? onv_model_value(l->emit.model, id)->producer : ONV_NO_NODE;
    const onv_node *node = onv_is_node(producer) ? onv_model_node(l->emit.model, producer) : NULL;
    bool is_told = node != NULL && node->scope != NULL && node->statements != NULL &&
                   node->statements[0] != '\0' && node->n_outputs == 1;
    return is_told ? node : NULL;
}

/* One that all operands come from, in as many runs of its line. */
static const onv_node *common_maker(const onv_lowering *l, const onv_node *join)
{
    const onv_node *first = join->n_inputs > 1 ? maker_of(l, join, 0) : NULL;
    for (uint32_t k = 1; k < join->n_inputs && first != NULL; k++) {
        const onv_node *other = maker_of(l, join, k);
        if (other == NULL || strcmp(other->op_type, first->op_type) != 0 ||
            strcmp(other->scope, first->scope) != 0 ||
            strcmp(other->statements, first->statements) != 0)
            return NULL;
    }
    return first;
}

/* "net.layers.1.cell" of "net.layers.0.cell", in a line of "net". */
static bool next_member(const char *scope, const char *around, char path[static MAX_PATH])
{
    size_t at = around != NULL ? strlen(around) : 0;
    if (around != NULL && strncmp(scope, around, at) != 0) return false;
    while (scope[at] != '\0' &&
           !(isdigit((unsigned char)scope[at]) && at > 0 && scope[at - 1] == '.'))
        at++;
    size_t end = at + strspn(scope + at, "0123456789");
    if (end == at || end - at > 6 || (scope[end] != '\0' && scope[end] != '.')) return false;
    int length = snprintf(path, MAX_PATH, "%.*s%ld%s", (int)at, scope,
                          strtol(scope + at, NULL, 10) + 1, scope + end);
    return length > 0 && length < MAX_PATH;
}

static bool joins_list(const onv_node *node)
{
    onv_statement_line lines[ONV_MAX_CALLS];
    uint32_t n = onv_statements_lines(node, lines, ONV_MAX_CALLS);
    return strcmp(node->op_type, "Concat") == 0 && n > 0 &&
           lines[n - 1].kind == ONV_STATEMENT_LISTS && node->n_inputs <= MAX_JOINED;
}

/* The results of the next member, as many as the join has operands; `end`: the node that has the number behind. */
static bool list_next(onv_lowering *l, const onv_node *join, uint32_t end, uint32_t *results,
                      uint32_t *last)
{
    char path[MAX_PATH];
    const onv_node *maker = common_maker(l, join);
    uint32_t n = 0, begin = (uint32_t)(join - l->emit.model->nodes.at) + 1;
    if (maker == NULL || !next_member(maker->scope, join->scope, path) || !onv_work(end))
        return false;
    for (uint32_t i = begin; i < end; i++) {
        const onv_node *node = &l->emit.model->nodes.at[i];
        if (node->graph.index != 0 || node->scope == NULL || strcmp(node->scope, path) != 0 ||
            node->statements == NULL || strcmp(node->statements, maker->statements) != 0 ||
            strcmp(node->op_type, maker->op_type) != 0)
            continue;
        if (n == join->n_inputs || !onv_is_value(node->outputs[0])) return false;
        results[n++] = node->outputs[0].index;
        *last = i;
    }
    return n == join->n_inputs;
}

static void add_join(onv_lowering *l, onv_node_id join, const uint32_t *results, uint32_t after)
{
    const onv_node *node = onv_model_node(l->emit.model, join);
    uint32_t fusion = l->fusions.of_node[after];
    if (fusion != 0) after = l->fusions.at.at[fusion - 1].last.index;
    onv_unread item = {.node = join,
                       .after = {after},
                       .calls = node->calls,
                       .first_value = l->unread.values.count,
                       .n_values = node->n_inputs,
                       .is_join = true};
    bool fits = onv_vec_push(&l->unread.runs, item);
    for (uint32_t k = 0; k < node->n_inputs && fits; k++) {
        onv_unread_value v = {joined_value(l, node, k).index, results[k], ONV_NO_TENSOR, 0, false};
        fits = onv_vec_push(&l->unread.values, v);
    }
    if (!fits) l->emit.status = onv_fail_memory(l->emit.err);
}

void onv_unread_lists_find(onv_lowering *l)
{
    uint32_t results[MAX_JOINED], last = 0;
    for (size_t i = 0; i + 1 < l->gaps.calls.count && l->emit.status == ONV_OK; i++) {
        const onv_call_name *call = &l->gaps.calls.at[i], *next = &l->gaps.calls.at[i + 1];
        if (!onv_call_is_like(call, next) || next->number != call->number + 2) continue;
        const onv_node *node = &l->emit.model->nodes.at[call->node];
        if (node->calls == NULL || !joins_list(node)) continue;
        if (list_next(l, node, next->node, results, &last))
            add_join(l, (onv_node_id){call->node}, results, last);
    }
}

void onv_unread_join(onv_lowering *l, const onv_unread *item)
{
    const onv_node *node = onv_model_node(l->emit.model, item->node);
    const onv_unread_value *values = &l->unread.values.at[item->first_value];
    int64_t dims[ONV_MAX_RANK], axis = onv_node_int(node, "axis", 0);
    onv_shape shape;
    if (!onv_value_shape(l, node->outputs[0], &shape)) return;
    onv_eager_tensor x =
        onv_tensor_at(&l->emit, onv_value_tensor(l, (onv_value_id){values[0].stands}));
    bool is_stack = shape.rank == x.rank + 1;
    if (axis < 0) axis += shape.rank;
    if ((!is_stack && shape.rank != x.rank) || axis < 0 || axis >= (int64_t)shape.rank) return;
    for (uint32_t i = 0; i < shape.rank; i++)
        dims[i] = !is_stack || i < axis ? x.dims[i] : i > axis ? x.dims[i - 1] : 1;
    dims[axis] *= (int64_t)item->n_values;
    uint32_t out = onv_tensor_new(&l->emit, x.dtype, shape.rank, dims, NULL);
    onv_emit_begin(&l->emit, "cat");
    for (size_t i = 0; i < item->n_values; i++)
        onv_emit_in(&l->emit, onv_value_tensor(l, (onv_value_id){values[i].stands}), ONV_GRAD_PART);
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
}
