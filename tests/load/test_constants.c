/* From messages to the model: Constant nodes and sparse tensors. */
#include "load/built.h"
#include "load/load.h"
#include "support/test.h"

static msg *constant(const char *out, msg *attr)
{
    msg *node = m_node("Constant", "", "", out);
    m_put(node, N_ATTR, attr);
    return node;
}

TEST(constants)
{
    const int64_t three = 3;
    msg *a[7], *graph = m_graph("", "c0");
    msg *tensor = m_tensor("t", ONV_FLOAT16, 1, &three);
    m_bytes(tensor, T_RAW, "\0\0\0\x3c\0\x40", 6);
    a[0] = m_attr_tensor("value", tensor);
    a[1] = m_attr_int("value_int", 5);
    a[2] = m_attr("value_ints", ONV_ATTR_INTS), m_bytes(a[2], A_INTS, "\x01\x02\x03", 3);
    a[3] = m_attr("value_float", ONV_ATTR_FLOAT), m_f32(a[3], A_FLOAT, 2.5f);
    a[4] = m_attr("value_floats", ONV_ATTR_FLOATS), m_f32(a[4], A_FLOATS, 1.0f);
    a[5] = m_attr("value_string", ONV_ATTR_STRING), m_text(a[5], A_STRING, "text");
    a[6] = m_attr("value_strings", ONV_ATTR_STRINGS), m_text(a[6], A_STRINGS, "text");
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        m_put(graph, G_NODE, constant(name, a[i]));
    }
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    static const struct {
        const char *shape;
        onv_dtype dtype;
        uint64_t bytes;
        double first;
    } want[] = {
        {"[3]", ONV_FLOAT16, 6, 0.0}, {"[]", ONV_INT64, 8, 5.0},  {"[3]", ONV_INT64, 24, 1.0},
        {"[]", ONV_FLOAT, 4, 2.5},    {"[1]", ONV_FLOAT, 4, 1.0}, {"[]", ONV_STRING, 0, 0.0},
        {"[1]", ONV_STRING, 0, 0.0},
    };
    for (int i = 0; i < 7; i++) {
        const onv_value *v = onv_model_value(model, model->nodes.at[i].outputs[0]);
        const onv_known *known;
        assert_int_equal(v->kind, ONV_VALUE_CONSTANT);
        assert_int_equal(v->producer.index, i);
        assert_string_equal(built_shape(model, &v->type), want[i].shape);
        assert_int_equal(v->type.dtype, want[i].dtype);
        assert_int_equal(v->tensor->bytes, want[i].bytes);
        assert_int_equal(onv_load_known(model, v->tensor, &known, NULL), ONV_OK);
        if (want[i].dtype == ONV_STRING) {
            assert_null(known);
        } else if (want[i].dtype == ONV_INT64) {
            assert_int_equal(known->elems[0].i.raw, (int64_t)want[i].first);
        } else {
            assert_true(known->elems[0].f == want[i].first);
        }
    }
    assert_int_equal(model->graphs.at[0].n_nodes, 7);
    built_done(model, file);
    built_refuse(m_model(GRAPH("", "c", "Constant k . c")), ONV_ERR_MODEL,
                 "a Constant without a value", "k");
}

static msg *sparse_tensor(const char *name)
{
    const int64_t dims[] = {2, 2};
    msg *sparse = m_new(), *values = m_tensor(name, ONV_FLOAT, 1, dims);
    m_put(sparse, 1, values);
    m_int(sparse, 3, 100); /* dims may stand on both sides of a part, which has dims, too */
    m_put(sparse, 2, m_tensor("", ONV_INT64, 2, dims));
    m_int(sparse, 3, 1000);
    return sparse;
}

TEST(sparse_tensors)
{
    msg *graph = m_graph("", "s"), *attr = m_attr("sparse_value", ONV_ATTR_SPARSE_TENSOR);
    m_put(graph, G_SPARSE, sparse_tensor("s"));
    m_put(attr, A_SPARSE, sparse_tensor("inner"));
    m_put(graph, G_NODE, constant("c", attr));
    msg *file = m_model(graph);
    onv_model *model = built_load(file);
    static const char *const names[] = {"s", "c"};
    for (int i = 0; i < 2; i++) {
        const onv_value *v = built_value(model, names[i]);
        const onv_known *known;
        assert_int_equal(v->type.kind, ONV_TYPE_SPARSE_TENSOR);
        assert_string_equal(built_shape(model, &v->type), "[100, 1000]");
        assert_int_equal(v->tensor->bytes, 2 * 4 + 4 * 8);
        assert_int_equal(onv_load_known(model, v->tensor, &known, NULL), ONV_OK);
        assert_null(known);
    }
    assert_int_equal(built_value(model, "s")->kind, ONV_VALUE_INITIALIZER);
    assert_int_equal(built_value(model, "c")->kind, ONV_VALUE_CONSTANT);
    built_done(model, file);
    graph = m_graph("", "");
    m_put(graph, G_SPARSE, m_new());
    built_refuse(m_model(graph), ONV_ERR_MODEL, "a sparse tensor has no values", "");
}
