#include "support/flow.h"

#include "ir/check.h"
#include "load/load.h"
#include "order/order.h"
#include "support/test.h"

enum { MAX_DIMS = 8 };

static void expect_ok(onv_status status, const onv_error *err)
{
    if (status != ONV_OK) fail_msg("%s %s: %s", err->node, err->op_type, err->message);
}

static void compute(flow *f, const char *dims, const char *order)
{
    onv_error err = {0};
    onv_options options = onv_options_default();
    onv_dim_binding bindings[MAX_DIMS];
    char text[256], *rest = NULL;
    snprintf(text, sizeof text, "%s", dims != NULL ? dims : "");
    for (char *at = strtok_r(text, " ", &rest); at != NULL; at = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(at, '=');
        assert_non_null(equals);
        assert_true(options.n_dims < MAX_DIMS);
        *equals = '\0';
        bindings[options.n_dims++] =
            (onv_dim_binding){.name = at, .size = strtoll(equals + 1, NULL, 10)};
    }
    options.dims = bindings;
    expect_ok(onv_graph_check(&f->model, &err), &err);
    expect_ok(onv_infer(&f->model, &options, &f->infer, &err), &err);
    onv_order_result result;
    const onv_order *strategy = onv_order_find(order != NULL ? order : "model");
    expect_ok(onv_order_compute(strategy, &f->model, NULL, &result, &err), &err);
    expect_ok(onv_live_compute(&f->model, result.nodes, &f->live, &err), &err);
}

void flow_open(flow *f, const char *path, const char *dims, const char *order)
{
    onv_error err = {0};
    *f = (flow){0};
    expect_ok(onv_load(path, NULL, &f->model, &err), &err);
    compute(f, dims, order);
}

void flow_open_model(flow *f, model *m, const char *order)
{
    onv_error err = {0};
    size_t size;
    const unsigned char *bytes = model_bytes(m, &size);
    *f = (flow){0};
    expect_ok(onv_load_memory(bytes, size, "test.onnx", NULL, &f->model, &err), &err);
    compute(f, "", order);
}

onv_live flow_rewrite(const flow *f, onv_provider provider, onv_rewrite_level level,
                      onv_rewritten *to)
{
    onv_error err = {0};
    onv_order_result result;
    onv_live live;
    expect_ok(onv_rewrite_model(&f->model, provider, level, to, &err), &err);
    expect_ok(onv_order_compute(onv_order_find("ort"), &to->model, NULL, &result, &err), &err);
    expect_ok(onv_live_compute(&to->model, result.nodes, &live, &err), &err);
    return live;
}

void flow_close(flow *f)
{
    onv_infer_info_cleanup(&f->infer);
    onv_model_cleanup(&f->model);
}

onv_runtime_result flow_run(flow *f, const char *runtime, const onv_runtime_options *options)
{
    onv_error err = {0};
    onv_runtime_result result;
    const onv_runtime *found = onv_runtime_find(runtime);
    assert_non_null(found);
    assert_int_equal(f->live.unknown, 0);
    expect_ok(onv_runtime_compute(found, &f->model, &f->live, options, &result, &err), &err);
    return result;
}

uint32_t flow_row(const flow *f, const char *name)
{
    for (uint32_t i = 0; i < f->live.timeline.buffers.count; i++)
        if (strcmp(f->live.timeline.buffers.at[i].label, name) == 0) return i;
    fail_msg("no value '%s' with a lifetime", name);
    return 0;
}

const char *flow_sample(const char *name)
{
    static _Thread_local char path[512];
    snprintf(path, sizeof path, "%s/samples/%s", ONV_SOURCE_DIR, name);
    return path;
}
