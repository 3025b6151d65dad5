#include "ir/form.h"

#include <stdlib.h>
#include <string.h>

typedef struct matching {
    const onv_form_place *place;
    onv_form_match *m;
    const char *at;           /* in the form */
    const char *behind, *end; /* the bracket that is looked into; of what is behind it */
} matching;

bool onv_form_join(onv_form_match *m, onv_node_id node)
{
    for (uint32_t i = 0; i < m->n_nodes; i++)
        if (m->nodes[i].index == node.index) return true;
    if (m->n_nodes == ONV_FORM_NODES) return false;
    m->nodes[m->n_nodes++] = node;
    return true;
}

/* The operator `op`, which ends at "(" or at the end of the text. */
static bool is_op(const matching *g, onv_node_id node, const char *op)
{
    if (!onv_is_node(node)) return false;
    const char *own = g->place->model->nodes.at[node.index].op_type;
    if (own[0] != op[0]) return false;
    size_t length = strcspn(op, "(");
    return strncmp(own, op, length) == 0 && own[length] == '\0' &&
           g->place->takes(g->place->self, node);
}

static onv_node_id producer(const matching *g, onv_value_id value)
{
    return onv_is_value(value) ? g->place->model->values.at[value.index].producer : ONV_NO_NODE;
}

/* Forms are as deep as they are written. */
static bool match(matching *g, onv_value_id value);

/* The operands, the first two of them in this order. */
static bool match_operands(matching *g, const onv_node *node, bool turns)
{
    for (uint32_t k = 0; *g->at != ')'; k++) {
        uint32_t from = turns && k < 2 ? 1 - k : k;
        if (from >= node->n_inputs || !match(g, node->inputs[from])) return false;
    }
    g->at++;
    return true;
}

static bool match_node(matching *g, onv_node_id id)
{
    bool is_shared = *g->at == '!';
    g->at += is_shared;
    bool turns = *g->at == '*';
    g->at += turns;
    uint32_t n = g->m->n_nodes;
    if (!is_op(g, id, g->at) || !onv_form_join(g->m, id)) return false;
    if (is_shared && g->m->n_nodes > n) g->m->shared |= 1U << n;
    g->at += strcspn(g->at, "(") + 1;
    const onv_node *node = &g->place->model->nodes.at[id.index];
    const onv_form_match before = *g->m;
    const char *operands = g->at;
    if (match_operands(g, node, false)) return true;
    if (!turns) return false;
    *g->m = before;
    g->at = operands;
    return match_operands(g, node, true);
}

/* A letter, and perhaps the node that makes what it names. */
static bool match_name(matching *g, onv_value_id value, char letter)
{
    onv_value_id *named = &g->m->named[letter - 'a'];
    bool is_bound = onv_is_value(*named);
    if (is_bound ? !onv_is_same_value(*named, value) : !onv_is_value(value)) return false;
    if (!is_bound && g->place->names != NULL && !g->place->names(g->place->self, value, letter))
        return false;
    *named = value;
    if (*g->at != '=') return true;
    g->at++;
    return match_node(g, producer(g, value));
}

static bool match_number(matching *g, onv_value_id value, char sign)
{
    char *end;
    double number = 0;
    if (sign == '{') {
        number = strtod(g->at, &end);
        g->at = end + 1;
    }
    if (!g->place->number(g->place->self, value, sign, &number)) return false;
    if (sign == '.') g->m->number = number;
    return true;
}

/* `_`, and on with what comes behind it. */
static bool match_behind(matching *g, onv_value_id value)
{
    const char *behind = g->behind, *at = g->at + 1;
    g->at = behind;
    bool found = match(g, value);
    g->end = g->at;
    g->at = at;
    g->behind = behind;
    return found;
}

static bool match_between(matching *g, onv_value_id value)
{
    const onv_form_match before = *g->m;
    const char *behind = strchr(g->at, ']') + 1;
    onv_node_id node = producer(g, value);
    bool is_made = onv_is_node(node);
    bool is_read_once = is_made && g->place->n_reads(g->place->self, node) == 1;
    for (const char *one = g->at; is_made && one < behind; one += strcspn(one, "|]") + 1) {
        if (!is_read_once && *one != '!') continue;
        g->at = one;
        g->behind = behind;
        if (match(g, value)) {
            g->at = g->end;
            return true;
        }
        *g->m = before;
    }
    g->at = behind;
    return match(g, value);
}

static bool match(matching *g, onv_value_id value)
{
    char c = *g->at;
    if (c >= 'a' && c <= 'z') {
        g->at++;
        return match_name(g, value, c);
    }
    switch (c) {
    case '?': g->at++; return true;
    case '#':
    case '.':
    case '{': g->at++; return match_number(g, value, c);
    case '[': g->at++; return match_between(g, value);
    case '_': return match_behind(g, value);
    case '/': { /* output k */
        uint32_t k = (uint32_t)(g->at[1] - '0');
        g->at += 2;
        return onv_is_value(value) && g->place->model->values.at[value.index].output_index == k &&
               match_node(g, producer(g, value));
    }
    default: return match_node(g, producer(g, value));
    }
}

uint32_t onv_form_reads(const onv_form_place *place, const onv_form_match *m, onv_value_id value)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        const onv_node *node = &place->model->nodes.at[m->nodes[i].index];
        for (uint32_t k = 0; k < node->n_inputs; k++)
            n += onv_is_same_value(node->inputs[k], value);
    }
    return n;
}

static bool is_closed(const onv_form_place *place, const onv_form_match *m)
{
    for (uint32_t i = 1; i < m->n_nodes; i++) {
        const onv_node *node = &place->model->nodes.at[m->nodes[i].index];
        uint32_t reads = place->n_reads(place->self, m->nodes[i]), inside = 0;
        bool is_shared = (m->shared >> i & 1) != 0;
        for (uint32_t k = 0; k < node->n_outputs; k++)
            inside += onv_form_reads(place, m, node->outputs[k]);
        if (reads == UINT32_MAX || (!is_shared && reads != inside)) return false;
    }
    return true;
}

bool onv_form_match_at(const onv_form_place *place, onv_node_id last, const char *form,
                       onv_form_match *m)
{
    matching g = {.place = place, .m = m, .at = form};
    if (!is_op(&g, last, form + strspn(form, "!*"))) return false;
    *m = (onv_form_match){0};
    for (size_t k = 0; k < sizeof m->named / sizeof m->named[0]; k++) m->named[k] = ONV_NO_VALUE;
    return match_node(&g, last) && is_closed(place, m);
}

enum { MOST_READS = 4 }; /* of a node inside a form, by the form */

bool onv_form_find(const onv_form_place *place, onv_node_id first, const char *form,
                   onv_form_match *m)
{
    onv_node_id last = first;
    uint32_t left = 0; /* no way inside is longer than all nodes of the form */
    for (const char *at = form; *at != '\0'; at++) left += *at == '(';
    for (; left > 0 && onv_is_node(last); left--) {
        if (onv_form_match_at(place, last, form, m))
            for (uint32_t k = 0; k < m->n_nodes; k++)
                if (m->nodes[k].index == first.index) return true;
        if (place->n_reads(place->self, last) > MOST_READS) break;
        last = place->reader(place->self, last);
    }
    return false;
}
