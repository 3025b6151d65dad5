#include "load/built.h"

#include "load/load.h"
#include "support/capture.h"
#include "support/test.h"

msg *built_graph(const char *inputs, const char *outputs, const char *const *nodes, size_t n)
{
    msg *graph = m_graph(inputs, outputs);
    for (size_t i = 0; i < n; i++) {
        char op[32], name[32], in[64], out[64];
        assert_int_equal(sscanf(nodes[i], "%31s %31s %63s %63s", op, name, in, out), 4);
        for (char *c = in; *c != '\0'; c++)
            if (*c == ',') *c = ' ';
        for (char *c = out; *c != '\0'; c++)
            if (*c == ',') *c = ' ';
        m_put(graph, G_NODE,
              m_node(op, strcmp(name, "-") == 0 ? "" : name, strcmp(in, ".") == 0 ? "" : in, out));
    }
    return graph;
}

void built_expect(msg *file, const char *text)
{
    OWNED_TEXT got = m_describe(file);
    assert_string_equal(got, text);
    m_free(file);
}

void built_refuse(msg *file, onv_status status, const char *text, const char *node)
{
    onv_model model;
    onv_error err;
    assert_int_equal(m_load(file, &model, &err), status);
    if (strstr(err.message, text) == NULL) fail_msg("\"%s\" is not in \"%s\"", text, err.message);
    if (node != NULL) assert_string_equal(err.node, node);
    m_free(file);
}

onv_model *built_load(const msg *file)
{
    onv_model *model = malloc(sizeof *model);
    onv_error err;
    assert_non_null(model);
    if (m_load(file, model, &err) != ONV_OK) fail_msg("%s", err.message);
    return model;
}

void built_done(onv_model *model, msg *file)
{
    onv_model_cleanup(model);
    free(model);
    m_free(file);
}

const onv_value *built_value(const onv_model *model, const char *name)
{
    for (size_t i = 0; i < model->values.count; i++)
        if (strcmp(model->values.at[i].name, name) == 0) return &model->values.at[i];
    fail_msg("no value '%s'", name);
    return NULL;
}

size_t built_diags(const onv_model *model, const char *code)
{
    size_t n = 0;
    for (size_t i = 0; i < model->diags.count; i++)
        if (strcmp(model->diags.at[i].code, code) == 0) n++;
    return n;
}

const char *built_shape(onv_model *model, const onv_type *type)
{
    return onv_type_shape_text(&model->dims, &model->arena, type);
}
