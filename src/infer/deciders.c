/* What decides: the graph inputs and sizes that the condition of an If or the trips of a Loop are
 * computed from, and the diagnostics that say so. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "infer/driver.h"

enum {
    MAX_VALUES = 2048, /* walked back through for one node */
    MAX_NAMES = 4,     /* listed */
    MAX_GROUPS = 32,   /* of nodes that the same decides */
};

typedef struct walk {
    onv_driver *driver;
    onv_value_id *queue;
    uint32_t count;
    const onv_value *inputs[MAX_NAMES];
    uint32_t n_inputs;
    onv_dim symbols[MAX_NAMES];
    uint32_t n_symbols;
    bool more;
} walk;

/* --- Walking back ------------------------------------------------------------------------------ */

static void visit(walk *w, onv_value_id id)
{
    onv_driver *driver = w->driver;
    if (!onv_is_value(id) || driver->decider_stamps[id.index] == driver->decider_stamp) return;
    driver->decider_stamps[id.index] = driver->decider_stamp;
    if (w->count == MAX_VALUES)
        w->more = true;
    else
        w->queue[w->count++] = id;
}

/* Free in an input, or made by inference; a number that changes with the iterations is neither. */
static bool can_be_bound(const onv_driver *driver, onv_dim symbol)
{
    const onv_dims *dims = &driver->model->dims;
    if (onv_dim_is_bindable(dims, symbol)) return true;
    const char *name = onv_dim_symbol_name(dims, symbol);
    for (size_t i = 0; i < driver->info->free_dims.count; i++)
        if (strcmp(driver->info->free_dims.at[i].name, name) == 0) return true;
    return false;
}

static void note_symbol(void *context, onv_dim symbol)
{
    walk *w = context;
    if (w->n_symbols == MAX_NAMES && w->more) return; /* it would change nothing */
    if (!can_be_bound(w->driver, symbol)) return;
    for (uint32_t i = 0; i < w->n_symbols; i++)
        if (onv_dim_same(w->symbols[i], symbol)) return;
    if (w->n_symbols == MAX_NAMES)
        w->more = true;
    else
        w->symbols[w->n_symbols++] = symbol;
}

/* Contents that are known, if in symbols, come from the sizes in them alone. */
static bool note_contents(walk *w, const onv_known *known)
{
    if (known == NULL) return false;
    for (uint32_t i = 0; i < known->count; i++)
        if (!onv_scalar_is_known((onv_dtype)known->dtype, known->elems[i])) return false;
    for (uint32_t i = 0; i < known->count; i++)
        onv_dim_each_symbol(&w->driver->model->dims, known->elems[i].i, note_symbol, w);
    return true;
}

static void note_input(walk *w, const onv_value *value)
{
    if (w->n_inputs == MAX_NAMES)
        w->more = true;
    else
        w->inputs[w->n_inputs++] = value;
}

static bool is_op(const onv_node *node, onv_op_name op)
{
    return node->domain[0] == '\0' && node->code == op;
}

/* An input of a body comes from its owner, and from the iteration before. */
static void visit_body_input(walk *w, onv_value_id id, const onv_graph *graph)
{
    const onv_node *owner = onv_model_node(w->driver->model, graph->owner);
    uint32_t k = 0, back = is_op(owner, ONV_OP_Loop) ? 1 : 0;
    while (k < graph->n_inputs && graph->inputs[k].index != id.index) k++;
    if (k >= graph->n_inputs || (back == 1 && k == 0)) return;
    if (k < owner->n_inputs) visit(w, owner->inputs[k]);
    if ((back == 1 || is_op(owner, ONV_OP_Scan)) && k >= back && k - back < graph->n_outputs)
        visit(w, graph->outputs[k - back]);
}

static void visit_node(walk *w, const onv_node *node, uint32_t output)
{
    const onv_model *model = w->driver->model;
    if ((is_op(node, ONV_OP_Shape) || is_op(node, ONV_OP_Size)) && node->n_inputs > 0 &&
        onv_is_value(node->inputs[0])) {
        const onv_type *type = &onv_model_value(model, node->inputs[0])->type;
        for (int i = 0; onv_type_has_rank(type) && i < type->rank; i++)
            onv_dim_each_symbol(&model->dims, type->dims[i], note_symbol, w);
        return;
    }
    for (uint32_t k = 0; k < node->n_inputs; k++) visit(w, node->inputs[k]);
    for (uint32_t a = 0; a < node->n_attrs; a++) {
        if (node->attrs[a].kind != ONV_ATTR_GRAPH) continue;
        const onv_graph *body = onv_model_graph(model, node->attrs[a].graph);
        uint32_t k = output + (is_op(node, ONV_OP_Loop) ? 1 : 0);
        if (!body->never_runs && k < body->n_outputs) visit(w, body->outputs[k]);
    }
}

static bool walk_back(walk *w, onv_driver *driver, onv_value_id from)
{
    const onv_model *model = driver->model;
    *w = (walk){.driver = driver};
    if (driver->decider_stamps == NULL)
        driver->decider_stamps =
            ONV_ARENA_ARRAY(&driver->model->arena, uint32_t, model->values.count);
    w->queue = ONV_ARENA_ARRAY(&driver->scratch, onv_value_id, MAX_VALUES);
    if (driver->decider_stamps == NULL || w->queue == NULL) return false;
    driver->decider_stamp++;
    visit(w, from);
    for (uint32_t at = 0; at < w->count; at++) {
        const onv_value *value = onv_model_value(model, w->queue[at]);
        if (onv_value_is_weight(value) && !value->overridable) continue;
        if (note_contents(w, value->known)) continue;
        const onv_graph *graph = onv_model_graph(model, value->graph);
        if (onv_is_node(value->producer))
            visit_node(w, onv_model_node(model, value->producer), value->output_index);
        else if (!onv_is_node(graph->owner))
            note_input(w, value);
        else
            visit_body_input(w, w->queue[at], graph);
    }
    return true;
}

/* --- Text -------------------------------------------------------------------------------------- */

typedef struct line {
    char at[400];
    size_t length;
} line;

static void put(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->at + l->length, sizeof l->at - l->length, format, args);
    va_end(args);
    if (n > 0) l->length += (size_t)n;
    if (l->length >= sizeof l->at) l->length = sizeof l->at - 1;
}

/* The number that a condition compares with, as an example of a value that decides it. */
static bool compared_with(const onv_driver *driver, onv_value_id condition, int64_t *number)
{
    const onv_model *model = driver->model;
    const onv_node *node = onv_model_maker(model, condition);
    if (node == NULL || !is_op(node, ONV_OP_Equal)) return false;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        const onv_value *value = onv_node_input(model, node, k);
        const onv_known *known = value != NULL ? value->known : NULL;
        if (known == NULL || known->count != 1 || !onv_dtype_is_integer((onv_dtype)known->dtype) ||
            !onv_dim_is_const(known->elems[0].i))
            continue;
        *number = known->elems[0].i.raw;
        return true;
    }
    return false;
}

/* Whether --input-value can give what the input holds. */
static bool is_small(onv_driver *driver, const onv_value *input)
{
    onv_dim elems = onv_type_elems(&driver->model->dims, &input->type);
    return input->type.kind == ONV_TYPE_TENSOR && onv_dim_is_const(elems) &&
           elems.raw <= driver->model->most_known;
}

const char *onv_deciders_text(onv_driver *driver, onv_value_id value)
{
    walk w;
    line l = {.length = 0};
    int64_t number = 0;
    if (!onv_is_value(value) || !walk_back(&w, driver, value)) return NULL;
    const onv_dims *dims = &driver->model->dims;
    uint32_t n = w.n_inputs + w.n_symbols;
    if (n == 0) return NULL;
    if (w.n_inputs > 0) put(&l, "input%s ", w.n_inputs > 1 ? "s" : "");
    for (uint32_t i = 0; i < w.n_inputs; i++)
        put(&l, "%s'%.60s'", i > 0 ? ", " : "", w.inputs[i]->name);
    if (w.n_symbols > 0)
        put(&l, "%sdimension%s ", w.n_inputs > 0 ? " and " : "", w.n_symbols > 1 ? "s" : "");
    for (uint32_t i = 0; i < w.n_symbols; i++)
        put(&l, "%s'%.60s'", i > 0 ? ", " : "", onv_dim_symbol_name(dims, w.symbols[i]));
    put(&l, "%s %s", w.more ? " and others" : "", n > 1 || w.more ? "decide" : "decides");
    /* Where the contents of a large input decide too, the small ones alone settle nothing. */
    bool all = !w.more, opened = false;
    for (uint32_t i = 0; i < w.n_inputs; i++) all &= is_small(driver, w.inputs[i]);
    for (uint32_t i = 0; all && i < w.n_inputs; i++) {
        put(&l, "%s --input-value %.60s=", opened ? "" : "; bind with", w.inputs[i]->name);
        if (n == 1 && compared_with(driver, value, &number))
            put(&l, "%" PRId64, number);
        else
            put(&l, "VALUE");
        opened = true;
    }
    for (uint32_t i = 0; all && i < w.n_symbols; i++) {
        put(&l, "%s --dim '%.60s=N'", opened ? "" : "; bind with",
            onv_dim_symbol_name(dims, w.symbols[i]));
        opened = true;
    }
    return onv_arena_strndup(&driver->model->arena, l.at, l.length);
}

/* --- Diagnostics ------------------------------------------------------------------------------- */

/* Ifs that the same inputs decide are one diagnostic. */
typedef struct group {
    const char *deciders, *node;
    uint64_t more;
} group;

/* The name of a node, made from its place where the file gives none. */
static const char *label(onv_driver *driver, const onv_node *node, const onv_graph *inner)
{
    if (node->name[0] != '\0') return node->name;
    const char *end = strrchr(inner->name, '/');
    if (end == NULL) return node->op_type;
    const char *name =
        onv_arena_strndup(&driver->model->arena, inner->name, (size_t)(end - inner->name));
    return name != NULL ? name : node->op_type;
}

static const onv_graph *runs(const onv_model *model, const onv_node *node, const char *attr_name)
{
    const onv_attr *attr = onv_node_attr(node, attr_name);
    if (attr == NULL || attr->kind != ONV_ATTR_GRAPH) return NULL;
    const onv_graph *graph = onv_model_graph(model, attr->graph);
    return graph->never_runs ? NULL : graph;
}

static void note_branch(onv_driver *driver, const onv_node *node, group *groups, size_t *n_groups)
{
    const onv_graph *branch = runs(driver->model, node, "then_branch");
    if (branch == NULL || runs(driver->model, node, "else_branch") == NULL) return;
    const char *text = onv_deciders_text(driver, node->inputs[0]);
    if (text == NULL) text = "the data decides";
    size_t i = 0;
    while (i < *n_groups && strcmp(groups[i].deciders, text) != 0) i++;
    if (i < *n_groups) {
        groups[i].more++;
    } else if (*n_groups < MAX_GROUPS) {
        groups[(*n_groups)++] = (group){text, label(driver, node, branch), 0};
    }
}

static void note_trips(onv_driver *driver, const onv_node *node)
{
    onv_model *model = driver->model;
    const onv_graph *body = runs(model, node, "body");
    if (body == NULL || !onv_dim_is_bindable(&model->dims, body->trips)) return;
    onv_dim most = onv_dim_upper(&model->dims, body->trips);
    const char *name = onv_dim_symbol_name(&model->dims, body->trips);
    /* The condition that the body computes decides; M and the first one do where it says nothing. */
    const char *text = body->n_outputs > 0 ? onv_deciders_text(driver, body->outputs[0]) : NULL;
    for (uint32_t k = 2; k-- > 0 && text == NULL;)
        if (k < node->n_inputs) text = onv_deciders_text(driver, node->inputs[k]);
    if (text == NULL) text = "the data decides";
    char bound[64] = "";
    if (onv_dim_is_const(most)) snprintf(bound, sizeof bound, ", at most %" PRId64, most.raw);
    onv_model_diag(model, ONV_WARNING, "open-trips", label(driver, node, body),
                   "the body runs %s times%s: %s%s --dim '%s=N'", name,
                   bound[0] != '\0' ? bound : ", without a known limit", text,
                   strstr(text, "; bind with") != NULL ? ", or with" : "; bind with", name);
}

void onv_note_deciders(onv_driver *driver)
{
    onv_model *model = driver->model;
    group groups[MAX_GROUPS];
    size_t n_groups = 0;
    for (size_t g = 1; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        if (graph->never_runs || !onv_is_node(graph->owner)) continue;
        const onv_node *owner = onv_model_node(model, graph->owner);
        if (is_op(owner, ONV_OP_If) && owner->n_inputs > 0 &&
            strcmp(graph->owner_attr, "then_branch") == 0)
            note_branch(driver, owner, groups, &n_groups);
        else if (is_op(owner, ONV_OP_Loop))
            note_trips(driver, owner);
        onv_arena_reset(&driver->scratch);
    }
    for (size_t i = 0; i < n_groups; i++) {
        char more[80] = "";
        if (groups[i].more > 0)
            snprintf(more, sizeof more, " (and so for %" PRIu64 " more)", groups[i].more);
        onv_model_diag(model, ONV_WARNING, "open-branch", groups[i].node,
                       "one of two branches runs, the larger one is counted%s: %s", more,
                       groups[i].deciders);
    }
}
