#include "ops/case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/case_parse.h"

/* One case while it runs. */
typedef struct runner {
    const onv_case *test;
    onv_model model;
    onv_error error;
    case_parser parser;
    onv_node node;
    onv_op_ctx c;
    onv_op_index index;
    case_value inputs[CASE_MAX_VALUES];
    onv_op_value in[CASE_MAX_VALUES];
    bool in_present[CASE_MAX_VALUES];
    onv_op_value out[CASE_MAX_VALUES];
    const char *expected[CASE_MAX_VALUES]; /* squeezed words of test->out; NULL when it must fail */
    char *message;
    size_t message_bytes;
} runner;

static bool wrong(runner *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(runner *r, const char *format, ...)
{
    const onv_case *test = r->test;
    int used =
        snprintf(r->message, r->message_bytes, "{\"%s\", %d, \"%s\", \"%s\", \"%s\"}: ", test->op,
                 (int)test->version, test->in, test->attrs, test->out);
    if (used < 0 || (size_t)used >= r->message_bytes) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(r->message + used, r->message_bytes - (size_t)used, format, args);
    va_end(args);
    return false;
}

/* --- Building the node ------------------------------------------------------------------------ */

static onv_status run_subgraph(onv_op_ctx *c, onv_graph_id graph, const onv_op_value *in,
                               uint32_t n_in, onv_op_value *out, uint32_t n_out)
{
    (void)in;
    const case_parser *parser = c->driver;
    const case_graph *stored = &parser->graphs[graph.index];
    if (n_in != onv_model_graph(c->model, graph)->n_inputs || n_out != stored->n_outputs)
        return onv_op_fail(c, "the subgraph takes other numbers of inputs or outputs");
    memcpy(out, stored->outputs, n_out * sizeof *out);
    return ONV_OK;
}

static const onv_known *read_tensor(onv_op_ctx *c, const onv_tensor *tensor)
{
    const case_parser *parser = c->driver;
    for (uint32_t i = 0; i < parser->n_tensors; i++)
        if (parser->tensors[i].tensor == tensor) return parser->tensors[i].known;
    return NULL;
}

static uint32_t split_expected(runner *r)
{
    uint32_t count = 0;
    const char *text = r->test->out;
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        size_t length = case_word(text);
        if (count < CASE_MAX_VALUES)
            r->expected[count++] = case_squeeze(&r->model.arena, text, length);
        text += length;
    }
    return count;
}

static bool find_row(runner *r)
{
    const char *colon = strrchr(r->test->op, ':');
    const char *name = colon != NULL ? colon + 1 : r->test->op;
    size_t domain_length = colon != NULL ? (size_t)(colon - r->test->op) : 0;
    onv_node_set_op(&r->node, name);
    r->node.domain = onv_arena_strndup(&r->model.arena, r->test->op, domain_length);
    if (!onv_op_index_init(&r->index, &r->model.arena)) return wrong(r, "no memory for the index");
    r->c.op = onv_op_find(&r->index, r->node.domain, name, r->test->version);
    return r->c.op != NULL ||
           wrong(r, "no row for this operator and version: is its family in families.def?");
}

static bool build_inputs(runner *r)
{
    r->parser.model = &r->model;
    uint32_t n_in = case_parse_values(&r->parser, r->test->in, r->inputs);
    for (uint32_t i = 0; i < n_in; i++) {
        r->in[i] = r->inputs[i].value;
        r->in_present[i] = r->inputs[i].present;
    }
    r->node.n_inputs = n_in;
    if (r->parser.error == NULL)
        r->node.n_attrs = case_parse_attrs(&r->parser, r->test->attrs, &r->node.attrs);
    if (r->parser.error != NULL)
        return wrong(r, "bad case: expected %s at '%s'", r->parser.error, r->parser.at);
    return true;
}

static bool build(runner *r)
{
    bool any = r->test->out[0] == '!' || r->test->out[0] == '*';
    if (!build_inputs(r)) return false;
    uint32_t n_out = any ? 0 : split_expected(r);
    if (any) n_out = r->c.op->out.min > 0 ? (uint32_t)r->c.op->out.min : 1;
    r->node.name = "node";
    r->node.version = r->test->version;
    r->node.n_outputs = n_out;
    r->node.op = r->c.op;
    r->node.inputs = ONV_ARENA_ARRAY(&r->model.arena, onv_value_id, r->node.n_inputs);
    r->node.outputs = ONV_ARENA_ARRAY(&r->model.arena, onv_value_id, n_out);
    for (uint32_t i = 0; i < r->node.n_inputs; i++)
        r->node.inputs[i] = r->in_present[i] ? (onv_value_id){i} : ONV_NO_VALUE;
    for (uint32_t i = 0; i < n_out; i++) {
        bool asked = any || strcmp(r->expected[i], "-") != 0;
        r->node.outputs[i] = asked ? (onv_value_id){r->node.n_inputs + i} : ONV_NO_VALUE;
        r->out[i].type = (onv_type){.rank = -1};
    }
    const onv_op *op = r->c.op;
    if (r->node.n_inputs < (uint32_t)op->in.min || r->node.n_inputs > (uint32_t)op->in.max ||
        n_out < (uint32_t)op->out.min || n_out > (uint32_t)op->out.max)
        return wrong(r, "the row takes %d to %d inputs and %d to %d outputs", op->in.min,
                     op->in.max, op->out.min, op->out.max);
    r->c = (onv_op_ctx){.model = &r->model,
                        .node = &r->node,
                        .op = op,
                        .version = r->test->version,
                        .dims = &r->model.dims,
                        .arena = &r->model.arena,
                        .n_in = r->node.n_inputs,
                        .n_out = n_out,
                        .in = r->in,
                        .in_present = r->in_present,
                        .out = r->out,
                        .run_subgraph = run_subgraph,
                        .read_tensor = read_tensor,
                        .driver = &r->parser,
                        .err = &r->error};
    return true;
}

/* --- Comparing -------------------------------------------------------------------------------- */

/* What holds for every result, whatever the case expects. */
static bool check_output(runner *r, uint32_t k)
{
    const onv_op_value *out = &r->out[k];
    if (out->type.rank > ONV_MAX_RANK) return wrong(r, "output %u: rank beyond the limit", k);
    if (out->type.rank > 0 && out->type.dims == NULL)
        return wrong(r, "output %u has a rank and no dims", k);
    const onv_known *known = out->known;
    if (known == NULL) return true;
    uint64_t count = 1;
    for (int i = 0; i < known->rank; i++) count *= (uint64_t)known->dims[i];
    if (count != known->count || known->dtype != out->type.dtype || known->rank != out->type.rank)
        return wrong(r, "output %u: contents of another shape or dtype than its type", k);
    for (int i = 0; i < known->rank; i++)
        if (!onv_dim_is(out->type.dims[i], known->dims[i]))
            return wrong(r, "output %u: contents of another shape than its type", k);
    return true;
}

static bool compare_output(runner *r, uint32_t k)
{
    if (!check_output(r, k)) return false;
    const char *expected = r->expected[k];
    if (strcmp(expected, "-") == 0)
        return r->out[k].type.kind == ONV_TYPE_UNKNOWN ||
               wrong(r, "output %u was not asked for", k);
    const char *bound = strstr(expected, "<=");
    size_t length = bound != NULL ? (size_t)(bound - expected) : strlen(expected);
    const char *empty = strstr(expected, "={}");
    if (empty != NULL) length = (size_t)(empty - expected);
    const char *actual = case_value_text(&r->model, &r->out[k], false);
    if (strlen(actual) != length || strncmp(actual, expected, length) != 0)
        return wrong(r, "output %u is %s", k, actual);
    if (bound == NULL) return true;
    actual = case_value_text(&r->model, &r->out[k], true);
    return strcmp(actual, bound + 2) == 0 || wrong(r, "output %u is bounded by %s", k, actual);
}

static uint32_t mask_from(const char *text, size_t length)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != ',') mask |= ONV_BIT(strtoul(text + i, NULL, 10));
    return mask;
}

static bool compare_traits(runner *r, const onv_op_traits *traits)
{
    const struct {
        const char *name;
        uint32_t actual;
    } columns[] = {{"inplace=", traits->inplace},
                   {"save_in=", traits->save_in},
                   {"save_out=", traits->save_out}};
    if (r->test->traits == NULL) return true;
    for (const char *at = r->test->traits; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        bool found = false;
        if (strncmp(at, "view=", 5) == 0) {
            found = true;
            if ((unsigned long)traits->view_of != strtoul(at + 5, NULL, 10))
                return wrong(r, "view is %u", traits->view_of);
        }
        if (strncmp(at, "weights=", 8) == 0) {
            found = true;
            onv_node node = *r->c.node;
            uint64_t bytes, elems;
            node.op = r->c.op;
            if (!onv_op_attr_weights(&node, &bytes, &elems) || bytes != strtoul(at + 8, NULL, 10))
                return wrong(r, "weights in attributes are %lu bytes", (unsigned long)bytes);
        }
        for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
            size_t skip = strlen(columns[i].name);
            if (strncmp(at, columns[i].name, skip) != 0) continue;
            found = true;
            if (mask_from(at + skip, length - skip) != columns[i].actual)
                return wrong(r, "%s mask 0x%x", columns[i].name, columns[i].actual);
        }
        if (!found) return wrong(r, "bad case: traits '%s'", at);
        at += length;
    }
    return true;
}

static bool compare_macs(runner *r, onv_dim macs)
{
    if (r->test->macs == NULL) return true;
    const char *text = onv_dim_text(&r->model.dims, &r->model.arena, macs);
    const char *actual = case_squeeze(&r->model.arena, text, strlen(text));
    const char *expected = case_squeeze(&r->model.arena, r->test->macs, strlen(r->test->macs));
    return strcmp(actual, expected) == 0 || wrong(r, "macs are %s", actual);
}

/* "*": whatever the rule makes of it must be sound; a failure must say why. */
static bool check_any(runner *r, onv_status status)
{
    if (status != ONV_OK)
        return r->error.code == status && r->error.message[0] != '\0' ? true
                                                                      : wrong(r, "failed silently");
    for (uint32_t k = 0; k < r->c.n_out; k++)
        if (!check_output(r, k)) return false;
    if (r->c.op->traits_fn != NULL) (void)r->c.op->traits_fn(&r->c);
    if (r->c.op->macs != NULL) (void)r->c.op->macs(&r->c);
    return true;
}

static bool run(runner *r)
{
    const onv_op *op = r->c.op;
    onv_status status = op->infer(&r->c);
    if (status == ONV_OK && op->fold != NULL) status = op->fold(&r->c);
    if (r->model.arena.failed) return wrong(r, "the arena failed");
    if (r->test->out[0] == '*') return check_any(r, status);
    if (r->test->out[0] == '!') {
        if (status == ONV_OK)
            return wrong(r, "did not fail: %s", case_value_text(&r->model, &r->out[0], false));
        return strstr(r->error.message, r->test->out + 1) != NULL ||
               wrong(r, "failed with '%s'", r->error.message);
    }
    if (status != ONV_OK) return wrong(r, "failed: %s", r->error.message);
    for (uint32_t k = 0; k < r->c.n_out; k++)
        if (!compare_output(r, k)) return false;
    onv_op_traits traits = op->traits_fn != NULL ? op->traits_fn(&r->c) : op->traits;
    onv_dim macs = op->macs != NULL ? op->macs(&r->c) : onv_dim_const(0);
    return compare_macs(r, macs) && compare_traits(r, &traits);
}

bool onv_case_run(const onv_case *test, char *message, size_t message_bytes)
{
    runner *r = calloc(1, sizeof *r);
    if (r == NULL) {
        snprintf(message, message_bytes, "out of memory");
        return false;
    }
    *r = (runner){.test = test, .message = message, .message_bytes = message_bytes};
    onv_model_init(&r->model, 64u << 20);
    bool holds = find_row(r) && build(r) && run(r);
    onv_model_cleanup(&r->model);
    free(r);
    return holds;
}
