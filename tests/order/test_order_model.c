/* Orders of models: the example of ONNX Runtime's order, and every strategy on every sample. */
#include <glob.h>

#include "infer/infer.h"
#include "ir/check.h"
#include "load/load.h"
#include "order/order_dag.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* Free dimensions become 8; those of images 64, so that kernels fit. */
static int64_t size_of(const char *dim)
{
    return strcmp(dim, "height") == 0 || strcmp(dim, "width") == 0 ? 64 : 8;
}

static bool infer_bound(onv_model *m, onv_dim_binding *dims, size_t n_dims, size_t *n_free)
{
    onv_infer_info info;
    onv_error err = {0};
    onv_options options = onv_options_default();
    options.dims = dims;
    options.n_dims = n_dims;
    if (onv_graph_check(m, &err) != ONV_OK || onv_infer(m, &options, &info, &err) != ONV_OK)
        fail_msg("%s", err.message);
    *n_free = info.free_dims.count;
    for (size_t i = 0; n_dims == 0 && i < info.free_dims.count && i < 16; i++) {
        const char *name = strdup(info.free_dims.at[i].name);
        dims[i] = (onv_dim_binding){.name = name, .size = size_of(name)};
    }
    onv_infer_info_cleanup(&info);
    return true;
}

static void load_bound(const char *path, onv_model *m)
{
    onv_error err = {0};
    onv_options options = onv_options_default();
    onv_dim_binding dims[16] = {0};
    size_t n_free, left;
    assert_int_equal(onv_load(path, options.limits, m, &err), ONV_OK);
    infer_bound(m, dims, 0, &n_free);
    if (n_free == 0) return;
    onv_model_cleanup(m);
    assert_true(n_free <= 16);
    assert_int_equal(onv_load(path, options.limits, m, &err), ONV_OK);
    infer_bound(m, dims, n_free, &left);
    for (size_t i = 0; i < n_free; i++) free((void *)(uintptr_t)dims[i].name);
}

/* The strategy's order keeps the rules, and liveness and dag agree on its peak. */
static uint64_t check_order(onv_model *m, const onv_dag *dag, const char *name, bool *proven)
{
    onv_error err = {0};
    onv_order_result result;
    onv_live live;
    uint64_t peak;
    uint32_t *place = calloc(m->nodes.count + 1, sizeof *place);
    uint32_t *order = calloc(dag->n_nodes + 1, sizeof *order);
    const onv_graph *graph = onv_model_graph(m, (onv_graph_id){0});
    assert_non_null(onv_order_find(name));
    assert_int_equal(onv_order_compute(onv_order_find(name), m, NULL, &result, &err), ONV_OK);
    assert_int_equal(result.n_nodes, graph->n_nodes);
    for (uint32_t i = 0; i < graph->n_nodes; i++) place[graph->nodes[i].index] = i;
    for (uint32_t i = 0; i < graph->n_nodes; i++) order[i] = place[result.nodes[i].index];
    assert_int_equal(onv_dag_check_order(dag, order, &err), ONV_OK);
    assert_int_equal(onv_live_compute(m, result.nodes, &live, &err), ONV_OK);
    assert_int_equal(onv_dag_peak(dag, order, &peak, &err), ONV_OK);
    assert_int_equal(peak, live.peak_bytes);
    *proven = result.proven;
    if (result.has_bound) {
        assert_int_equal(result.peak_bytes, peak);
        assert_true(result.lower_bound_bytes <= peak);
        assert_int_equal(result.proven, result.lower_bound_bytes == peak);
    }
    free(place);
    free(order);
    return peak;
}

TEST(samples_have_proven_orders)
{
    glob_t paths;
    assert_int_equal(glob(ONV_SOURCE_DIR "/samples/*.onnx", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        onv_model m;
        onv_live live;
        onv_dag dag;
        bool proven;
        load_bound(paths.gl_pathv[i], &m);
        assert_int_equal(onv_live_compute(&m, NULL, &live, NULL), ONV_OK);
        assert_int_equal(onv_dag_init_model(&dag, &m, &live, NULL), ONV_OK);
        uint64_t file = check_order(&m, &dag, "model", &proven);
        assert_int_equal(file, live.peak_bytes);
        uint64_t ort = check_order(&m, &dag, "ort", &proven);
        uint64_t greedy = check_order(&m, &dag, "greedy", &proven);
        uint64_t optimal = check_order(&m, &dag, "optimal", &proven);
        assert_true(greedy <= file);
        assert_true(optimal <= greedy);
        assert_true(optimal <= ort);
        if (!proven) fail_msg("%s is not proven", paths.gl_pathv[i]);
        onv_dag_cleanup(&dag);
        onv_model_cleanup(&m);
    }
    assert_true(paths.gl_pathc > 10);
    globfree(&paths);
}

TEST(ort_runs_depth_first_from_the_last_leaf)
{
    static const char *const expected[] = {"5", "1", "3", "0", "2", "4", "6"};
    model *m =
        model_read(17, "in x f32[4]", "a = Neg(x) 0", "b = Exp(x) 1", "c = Sin(a) 2",
                   "d = Cos(b) 3", "e = Add(c d) 4", "f = Abs(x) 5", "y = Mul(e f) 6", "out y f32");
    size_t size;
    const unsigned char *bytes = model_bytes(m, &size);
    onv_model loaded;
    onv_order_result result;
    onv_options options = onv_options_default();
    assert_int_equal(onv_load_memory(bytes, size, "memory", options.limits, &loaded, NULL), ONV_OK);
    assert_int_equal(onv_graph_check(&loaded, NULL), ONV_OK);
    assert_int_equal(onv_order_compute(onv_order_find("ort"), &loaded, NULL, &result, NULL),
                     ONV_OK);
    assert_int_equal(result.n_nodes, 7);
    for (uint32_t i = 0; i < 7; i++)
        assert_string_equal(onv_model_node(&loaded, result.nodes[i])->name, expected[i]);
    onv_model_cleanup(&loaded);
    model_free(m);
}

/* As onnxruntime 1.31.1 ran them, by its profile, with optimisation off (bench/order/ort_order.py). */
TEST(ort_runs_resnet18_as_measured)
{
    static const uint8_t measured[] = {
        16, 17, 18, 15, 19, 20, 14, 21, 22, 23, 13, 24, 25, 12, 26, 27, 28, 10, 32, 29, 30, 11,
        31, 33, 34, 9,  35, 36, 8,  37, 38, 39, 6,  43, 40, 41, 7,  42, 44, 45, 5,  46, 47, 4,
        48, 49, 50, 2,  54, 51, 52, 3,  53, 55, 56, 1,  57, 58, 0,  59, 60, 61, 62, 63, 64};
    onv_model m;
    onv_order_result result;
    onv_options options = onv_options_default();
    assert_int_equal(onv_load(ONV_SOURCE_DIR "/samples/resnet18.onnx", options.limits, &m, NULL),
                     ONV_OK);
    assert_int_equal(onv_graph_check(&m, NULL), ONV_OK);
    assert_int_equal(onv_order_compute(onv_order_find("ort"), &m, NULL, &result, NULL), ONV_OK);
    const onv_graph *graph = onv_model_graph(&m, (onv_graph_id){0});
    assert_int_equal(result.n_nodes, sizeof measured);
    for (uint32_t i = 0; i < result.n_nodes; i++)
        assert_int_equal(result.nodes[i].index, graph->nodes[measured[i]].index);
    onv_model_cleanup(&m);
}

TEST(there_is_no_other_order)
{
    assert_null(onv_order_find("random"));
    assert_int_equal(onv_n_orders, 4);
}
