

#include "rewrite/small_graphs.h"

#include "infer/infer.h"
#include "ir/check.h"
#include "load/load.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* --- Reading a case ---------------------------------------------------------------------------- */

static void strip_commas(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == ',') *text = ' ';
}

static void add_ints(model *m, const char *name, char *list)
{
    int64_t values[16];
    size_t count = 0;
    for (char *at = strtok(list, ","); at != NULL; at = strtok(NULL, ","))
        values[count++] = strtoll(at, NULL, 10);
    model_ints(m, name, count, values);
}

static void add_floats(model *m, const char *name, char *list)
{
    float values[16];
    char type[16];
    size_t count = 0;
    for (char *at = strtok(list, ","); at != NULL; at = strtok(NULL, ","))
        values[count++] = strtof(at, NULL);
    snprintf(type, sizeof type, "f32[%zu]", count);
    model_weight_data(m, name, type, values, count * sizeof *values);
}

static void add_node(model *m, const char *op, char *rest)
{
    static int n_nodes;
    char *arrow = strstr(rest, " -> "), name[32];
    if (arrow == NULL) fail_msg("no arrow in '%s %s'", op, rest);
    *arrow = '\0';
    char *outputs = arrow + 4, *attrs = strchr(outputs, ' ');
    if (attrs != NULL) *attrs++ = '\0';
    strip_commas(rest);
    strip_commas(outputs);
    snprintf(name, sizeof name, "node%d", n_nodes++);
    model_node(m, op, name, rest, outputs, attrs != NULL ? attrs : "");
}

static void add_statement(model *m, char *text)
{
    char *rest = strchr(text, ' ');
    if (rest == NULL) { /* end */
        model_end(m);
        return;
    }
    *rest++ = '\0';
    if (strcmp(text, "begin") == 0) {
        model_begin(m, rest);
        return;
    }
    char *type = strchr(rest, ' ');
    const char *const words[] = {"in", "out", "weight", "ints", "int", "bool", "float", "floats"};
    size_t word = 0;
    while (word < 8 && strcmp(text, words[word]) != 0) word++;
    if (word == 8) {
        add_node(m, text, rest);
        return;
    }
    *type++ = '\0';
    switch (word) {
    case 0: model_input(m, rest, type); break;
    case 1: model_output(m, rest, type); break;
    case 2: model_weight(m, rest, type); break;
    case 3: add_ints(m, rest, type); break;
    case 4: model_int(m, rest, strtoll(type, NULL, 10)); break;
    case 5: model_bool(m, rest, *type == '1'); break;
    case 6: model_float(m, rest, strtof(type, NULL)); break;
    default: add_floats(m, rest, type); break;
    }
}

model *read_graph(const rewrite_case *c)
{
    char text[2048];
    model *m = model_new(c->opset);
    snprintf(text, sizeof text, "%s", c->graph);
    for (char *at = text, *end; at != NULL; at = end) {
        while (*at == ' ') at++;
        end = strchr(at, ';');
        if (end != NULL) *end++ = '\0';
        add_statement(m, at);
    }
    return m;
}

/* --- Comparing --------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static void list_operators(const onv_model *rewritten, char *text, size_t size)
{
    const char *names[64];
    size_t count = 0, length = 0;
    for (size_t i = 0; i < rewritten->nodes.count && count < 64; i++)
        names[count++] = rewritten->nodes.at[i].op_type;
    qsort(names, count, sizeof names[0], by_text);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        length +=
            (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? " " : "", names[i]);
}

static bool is_counted(const onv_rewritten *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_counts; i++)
        if (strcmp(r->counts[i].name, name) == 0) return r->counts[i].count > 0;
    return name[0] == '\0' && r->n_counts == 0;
}

/* Inferred without bindings. */
void infer_model(model *m, onv_model *inferred)
{
    size_t size;
    onv_error err = {0};
    onv_infer_info info;
    onv_options options = onv_options_default();
    const unsigned char *bytes = model_bytes(m, &size);
    if (onv_load_memory(bytes, size, "test.onnx", NULL, inferred, &err) != ONV_OK ||
        onv_graph_check(inferred, &err) != ONV_OK ||
        onv_infer(inferred, &options, &info, &err) != ONV_OK)
        fail_msg("%s", err.message);
    onv_infer_info_cleanup(&info);
}

void check_rewrites(onv_provider provider, const rewrite_case *cases, size_t n_cases)
{
    int failed = 0;
    for (size_t i = 0; i < n_cases; i++) {
        OWNED_MODEL m = read_graph(&cases[i]);
        onv_model before;
        onv_rewritten r;
        onv_error err = {0};
        char operators[512];
        infer_model(m, &before);
        size_t n_nodes = before.nodes.count;
        if (onv_rewrite_model(&before, provider, cases[i].level, &r, &err) != ONV_OK)
            fail_msg("%s: %s", cases[i].graph, err.message);
        list_operators(&r.model, operators, sizeof operators);
        if (strcmp(operators, cases[i].operators) != 0 || !is_counted(&r, cases[i].counted)) {
            print_error("%s\n  expected '%s' (%s)\n  found    '%s' (%s)\n", cases[i].graph,
                        cases[i].operators, cases[i].counted, operators,
                        r.n_counts > 0 ? r.counts[0].name : "");
            failed++;
        }
        assert_int_equal(before.nodes.count, n_nodes);
        onv_rewritten_cleanup(&r);
        onv_model_cleanup(&before);
    }
    assert_int_equal(failed, 0);
}

void check_seen(const char *graph, const char *shape)
{
    OWNED_MODEL m = read_graph(&(rewrite_case){.opset = 17, .graph = graph});
    onv_model before;
    onv_rewritten r;
    onv_error err = {0};
    const char *text = "y is not there";
    infer_model(m, &before);
    assert_int_equal(onv_rewrite_model(&before, ONV_PROVIDER_CUDA, ONV_REWRITE_ALL, &r, &err),
                     ONV_OK);
    for (uint32_t i = 0; i < r.model.values.count; i++)
        if (strcmp(r.model.values.at[i].name, "y") == 0)
            text = onv_type_shape_text(&r.model.dims, &r.model.arena, &r.seen[i]);
    if (strcmp(text, shape) != 0) fail_msg("%s: expected %s, found %s", graph, shape, text);
    onv_rewritten_cleanup(&r);
    onv_model_cleanup(&before);
}
