#include "load/bytes.h"

#include "load/load.h"
#include "support/test.h"

enum { VARINT = 0, BYTES = 2, FIXED32 = 5 };

/* --- Wire -------------------------------------------------------------------------------------- */

msg *m_new(void)
{
    msg *m = calloc(1, sizeof *m);
    assert_non_null(m);
    return m;
}

void m_free(msg *m)
{
    if (m != NULL) free(m->at);
    free(m);
}

void m_append(msg *m, const void *data, size_t bytes)
{
    if (m->count + bytes > m->capacity) {
        m->capacity = (m->count + bytes) * 2;
        m->at = realloc(m->at, m->capacity);
        assert_non_null(m->at);
    }
    if (bytes > 0) memcpy(m->at + m->count, data, bytes);
    m->count += bytes;
}

void m_varint(msg *m, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        m_append(m, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

void m_tag(msg *m, uint32_t field, unsigned wire_type)
{
    m_varint(m, (uint64_t)field << 3 | wire_type);
}

void m_int(msg *m, uint32_t field, int64_t value)
{
    m_tag(m, field, VARINT);
    m_varint(m, (uint64_t)value);
}

void m_f32(msg *m, uint32_t field, float value)
{
    m_tag(m, field, FIXED32);
    m_append(m, &value, sizeof value);
}

void m_bytes(msg *m, uint32_t field, const void *data, size_t bytes)
{
    m_tag(m, field, BYTES);
    m_varint(m, bytes);
    m_append(m, data, bytes);
}

void m_text(msg *m, uint32_t field, const char *text)
{
    m_bytes(m, field, text, strlen(text));
}

void m_put(msg *m, uint32_t field, msg *child)
{
    m_bytes(m, field, child->at, child->count);
    m_free(child);
}

/* --- Messages ---------------------------------------------------------------------------------- */

/* Calls `each` with every word of a list. */
static void words(const char *list, void (*each)(msg *, uint32_t, const char *), msg *m,
                  uint32_t field)
{
    char *copy = strdup(list), *rest = copy;
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) each(m, field, word);
    free(copy);
}

static void put_name(msg *m, uint32_t field, const char *name)
{
    m_text(m, field, strcmp(name, "-") == 0 ? "" : name);
}

static void put_info(msg *m, uint32_t field, const char *text)
{
    m_put(m, field, m_info(text));
}

msg *m_opset(const char *domain, int64_t version)
{
    msg *m = m_new();
    m_text(m, 1, domain);
    m_int(m, 2, version);
    return m;
}

msg *m_model(msg *graph)
{
    msg *m = m_new();
    m_int(m, M_IR, 8);
    m_put(m, M_OPSET, m_opset("", 17));
    m_put(m, M_GRAPH, graph);
    return m;
}

msg *m_graph(const char *inputs, const char *outputs)
{
    msg *m = m_new();
    words(inputs, put_info, m, G_INPUT);
    words(outputs, put_info, m, G_OUTPUT);
    return m;
}

static msg *shape_of(char *dims)
{
    msg *shape = m_new();
    for (char *dim; (dim = strtok_r(dims, ",]", &dims)) != NULL;) {
        msg *m = m_new();
        bool number = (*dim >= '0' && *dim <= '9') || *dim == '-';
        if (number) m_int(m, 1, strtoll(dim, NULL, 10));
        if (!number && strcmp(dim, "?") != 0) m_text(m, 2, dim);
        m_put(shape, 1, m);
    }
    return shape;
}

msg *m_info(const char *text)
{
    char *copy = strdup(text), *type = strchr(copy, ':');
    if (type != NULL) *type++ = '\0';
    char *dims = type != NULL ? strchr(type, '[') : NULL;
    if (dims != NULL) *dims++ = '\0';
    msg *info = m_new();
    m_text(info, 1, copy);
    if (type != NULL) {
        msg *tensor = m_new(), *m = m_new();
        m_int(tensor, 1, strcmp(type, "i64") == 0 ? ONV_INT64 : ONV_FLOAT);
        if (dims != NULL) m_put(tensor, 2, shape_of(dims));
        m_put(m, 1, tensor);
        m_put(info, 2, m);
    }
    free(copy);
    return info;
}

msg *m_node(const char *op_type, const char *name, const char *inputs, const char *outputs)
{
    msg *m = m_new();
    words(inputs, put_name, m, 1);
    words(outputs, put_name, m, 2);
    if (name[0] != '\0') m_text(m, 3, name);
    m_text(m, 4, op_type);
    return m;
}

msg *m_attr(const char *name, onv_attr_kind kind)
{
    msg *m = m_new();
    m_text(m, A_NAME, name);
    m_int(m, A_TYPE, kind);
    return m;
}

msg *m_attr_int(const char *name, int64_t value)
{
    msg *m = m_attr(name, ONV_ATTR_INT);
    m_int(m, A_INT, value);
    return m;
}

msg *m_attr_graph(const char *name, msg *graph)
{
    msg *m = m_attr(name, ONV_ATTR_GRAPH);
    m_put(m, A_GRAPH, graph);
    return m;
}

msg *m_attr_tensor(const char *name, msg *tensor)
{
    msg *m = m_attr(name, ONV_ATTR_TENSOR);
    m_put(m, A_TENSOR, tensor);
    return m;
}

msg *m_attr_ref(const char *name, onv_attr_kind kind, const char *ref)
{
    msg *m = m_attr(name, kind);
    m_text(m, A_REF, ref);
    return m;
}

msg *m_tensor(const char *name, onv_dtype dtype, int rank, const int64_t *dims)
{
    msg *m = m_new();
    for (int i = 0; i < rank; i++) m_int(m, T_DIMS, dims[i]);
    m_int(m, T_DTYPE, dtype);
    m_text(m, T_NAME, name);
    return m;
}

msg *m_pair(const char *key, const char *value)
{
    msg *m = m_new();
    m_text(m, 1, key);
    m_text(m, 2, value);
    return m;
}

msg *m_external(const char *name, int64_t elems, const char *location)
{
    msg *m = m_tensor(name, ONV_FLOAT, 1, &elems);
    m_put(m, T_EXTERNAL, m_pair("location", location));
    m_int(m, T_LOCATION, 1);
    return m;
}

msg *m_function(const char *domain, const char *name, const char *inputs, const char *outputs)
{
    msg *m = m_new();
    m_text(m, 1, name);
    words(inputs, m_text, m, 4);
    words(outputs, m_text, m, 5);
    m_text(m, 10, domain);
    m_put(m, F_OPSET, m_opset("", 17));
    return m;
}

/* --- Loading ----------------------------------------------------------------------------------- */

onv_status m_load(const msg *file, onv_model *model, onv_error *err)
{
    *err = (onv_error){0};
    return onv_load_memory(file->at, file->count, NULL, NULL, model, err);
}

static void print_values(FILE *to, const onv_model *model, const onv_value_id *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        fprintf(to, "%s%s", i > 0 ? "," : "",
                onv_is_value(ids[i]) ? onv_model_value(model, ids[i])->name : "-");
}

static void print_graph(FILE *to, const onv_model *model, const onv_graph *graph)
{
    fprintf(to, "%s(", graph->name);
    print_values(to, model, graph->inputs, graph->n_inputs);
    fprintf(to, ")->(");
    print_values(to, model, graph->outputs, graph->n_outputs);
    fprintf(to, "):");
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const onv_node *node = onv_model_node(model, graph->nodes[i]);
        fprintf(to, "%s %s%s%s(", i > 0 ? ";" : "", node->op_type, node->name[0] ? " " : "",
                node->name);
        print_values(to, model, node->inputs, node->n_inputs);
        fprintf(to, ")->");
        print_values(to, model, node->outputs, node->n_outputs);
    }
    fputc('\n', to);
}

char *m_describe(const msg *file)
{
    onv_model model;
    onv_error err;
    if (m_load(file, &model, &err) != ONV_OK) fail_msg("%s", err.message);
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    for (size_t g = 0; g < model.graphs.count; g++) print_graph(to, &model, &model.graphs.at[g]);
    fclose(to);
    onv_model_cleanup(&model);
    return text;
}

msg *m_raw(const char *name, onv_dtype dtype, int64_t elems, const void *data, size_t bytes)
{
    msg *tensor = m_tensor(name, dtype, 1, &elems);
    m_bytes(tensor, T_RAW, data, bytes);
    return tensor;
}

msg *m_rich_model(void)
{
    msg *then = m_graph("", "t");
    m_put(then, G_NODE, m_node("Add", "", "y w", "t"));
    msg *otherwise = m_graph("", "e");
    m_put(otherwise, G_NODE, m_node("Relu", "", "y", "e"));
    msg *branch = m_node("If", "if", "c", "z");
    m_put(branch, N_ATTR, m_attr_graph("then_branch", then));
    m_put(branch, N_ATTR, m_attr_graph("else_branch", otherwise));
    msg *ints = m_attr("axes", ONV_ATTR_INTS);
    m_bytes(ints, A_INTS, "\x01\x02\xac\x02", 4);
    msg *call = m_node("Twice", "call", "x", "y");
    m_text(call, N_DOMAIN, "local");
    m_put(call, N_ATTR, ints);
    msg *graph = m_graph("x:f32[batch,3] c", "z:f32[batch,3]");
    m_put(graph, G_NODE, call);
    m_put(graph, G_NODE, branch);
    m_put(graph, G_INIT, m_raw("w", ONV_FLOAT, 2, "\0\0\0\0\0\0\x80\x3f", 8));
    m_put(graph, G_INIT, m_external("far", 1000, "weights.bin"));
    m_put(graph, G_INFO, m_info("y:f32[batch,3]"));
    msg *function = m_function("local", "Twice", "a", "b");
    m_put(function, F_NODE, m_node("Add", "", "a a", "b"));
    msg *file = m_new();
    m_int(file, M_IR, 8);
    m_put(file, M_OPSET, m_opset("", 17));
    m_put(file, M_OPSET, m_opset("local", 1));
    m_put(file, M_FUNCTION, function);
    m_put(file, M_GRAPH, graph);
    return file;
}
