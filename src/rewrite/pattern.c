#include "rewrite/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "rewrite/fuse.h"

enum { MOST_READS = 4 }; /* of a node inside a form, by the form */

static bool join(onv_match *m, onv_node_id node, bool is_shared)
{
    for (uint32_t i = 0; i < m->n_nodes; i++)
        if (m->nodes[i].index == node.index) return true;
    if (m->n_nodes == ONV_MATCH_NODES) return false;
    if (is_shared) m->shared |= 1U << m->n_nodes;
    m->nodes[m->n_nodes++] = node;
    return true;
}

/* The operator at the form's place. */
static bool is_op(const onv_edit *e, const onv_match *m, onv_node_id node, const char *at)
{
    size_t length = strcspn(at, "(");
    if (!onv_is_node(node)) return false;
    const char *op = onv_edit_node_at(e, node)->op_type;
    return strncmp(op, at, length) == 0 && op[length] == '\0' &&
           onv_fuse_is_float_op(e, node, op, m->first, strcmp(op, "ReduceMean") == 0);
}

/* Forms are as deep as they are written. */
static bool match(onv_edit *e, onv_match *m, onv_value_id value, const char **at);

/* The operands, the first two of them in this order. */
static bool match_operands(onv_edit *e, onv_match *m, onv_node_id node, bool turns, const char **at)
{
    for (uint32_t k = 0; **at != ')'; k++)
        if (!match(e, m, onv_edit_in(e, node, turns && k < 2 ? 1 - k : k), at)) return false;
    (*at)++;
    return true;
}

static bool match_node(onv_edit *e, onv_match *m, onv_node_id node, const char **at)
{
    bool is_shared = **at == '!';
    *at += is_shared;
    bool turns = **at == '*';
    *at += turns;
    if (!is_op(e, m, node, *at) || !join(m, node, is_shared)) return false;
    *at += strcspn(*at, "(") + 1;
    const onv_match before = *m;
    const char *operands = *at;
    if (match_operands(e, m, node, false, at)) return true;
    if (!turns) return false;
    *m = before;
    *at = operands;
    return match_operands(e, m, node, true, at);
}

static bool match_producer(onv_edit *e, onv_match *m, onv_value_id value, const char **at)
{
    return match_node(e, m, onv_is_value(value) ? onv_edit_producer(e, value) : ONV_NO_NODE, at);
}

static bool match(onv_edit *e, onv_match *m, onv_value_id value, const char **at)
{
    char c = **at;
    if (c == '?') return ++*at;
    if (c == '{') {
        char *end;
        double number = strtod(*at + 1, &end);
        *at = end + 1;
        return onv_fuse_is_number(e, value, number);
    }
    if (c == '~') {
        onv_node_id cast = onv_is_value(value) ? onv_edit_producer(e, value) : ONV_NO_NODE;
        ++*at;
        if (is_op(e, m, cast, "Cast"))
            return join(m, cast, false) && match_producer(e, m, onv_edit_in(e, cast, 0), at);
        return match_producer(e, m, value, at);
    }
    if (c < 'a' || c > 'z') return match_producer(e, m, value, at);
    onv_value_id *named = &m->named[c - 'a'];
    ++*at;
    if (onv_is_value(*named)) return onv_fuse_same_value(*named, value);
    if (!onv_is_value(value)) return false;
    *named = value;
    if (**at != '=') return true;
    ++*at;
    return match_producer(e, m, value, at);
}

static uint32_t count_reads(const onv_edit *e, const onv_match *m, onv_value_id value)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        const onv_node *node = onv_edit_node_at(e, m->nodes[i]);
        for (uint32_t k = 0; k < node->n_inputs; k++)
            n += onv_fuse_same_value(node->inputs[k], value);
    }
    return n;
}

/* Nothing outside reads what is inside, but for what may be shared. */
static bool is_closed(const onv_edit *e, const onv_match *m)
{
    for (uint32_t i = 1; i < m->n_nodes; i++) {
        uint32_t inside = count_reads(e, m, onv_edit_out(e, m->nodes[i], 0));
        bool is_shared = (m->shared >> i & 1) != 0;
        if (is_shared ? onv_edit_makes_result(e, m->nodes[i])
                      : !onv_fuse_has_uses(e, m->nodes[i], inside))
            return false;
    }
    return true;
}

static bool has_node(const onv_match *m, onv_node_id node)
{
    for (uint32_t i = 0; i < m->n_nodes; i++)
        if (m->nodes[i].index == node.index) return true;
    return false;
}

/* All ways from a node inside lead to the last one. */
bool onv_match_form(onv_edit *e, onv_node_id first, const char *form, onv_match *m)
{
    onv_node_id last = first;
    for (uint32_t i = 0; i < ONV_MATCH_NODES; i++) {
        const char *at = form;
        *m = (onv_match){.first = first, .last = last};
        for (size_t k = 0; k < sizeof m->named / sizeof m->named[0]; k++)
            m->named[k] = ONV_NO_VALUE;
        if (match_node(e, m, last, &at) && has_node(m, first) && is_closed(e, m)) return true;
        if (onv_edit_makes_result(e, last) || onv_edit_n_output_uses(e, last) > MOST_READS) break;
        last = onv_fuse_reader(e, last);
        if (!onv_is_node(last)) break;
    }
    return false;
}

void onv_match_cast(const onv_edit *e, onv_match *m, char name)
{
    onv_value_id *value = &m->named[name - 'a'];
    onv_node_id cast = onv_edit_producer(e, *value);
    if (!onv_is_node(cast) || !onv_fuse_is(e, cast, "Cast") ||
        !onv_fuse_same_provider(e, cast, m->first) ||
        !onv_fuse_has_uses(e, cast, count_reads(e, m, *value)) || !join(m, cast, false))
        return;
    *value = onv_edit_in(e, cast, 0);
}
