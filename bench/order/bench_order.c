/* Orders of synthetic graphs and of models: peaks, whether the least one is proven, time.
 *
 *     bench-order [-e EFFORT] [MODEL.onnx ...]
 *
 * Free dimensions of models become 8, height and width 64. The last number of a row's name is the seed, or how many values of the
 * model have no known size (they count as nothing).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "infer/infer.h"
#include "ir/check.h"
#include "load/load.h"
#include "order/dags.h"
#include "order/order_dag.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static onv_order_options options; /* of every search */

static void print_row(const char *name, uint64_t seed, const onv_dag *dag)
{
    onv_dag_order greedy = {.nodes = calloc(dag->n_nodes, sizeof *greedy.nodes)};
    onv_dag_order optimal = {.nodes = calloc(dag->n_nodes, sizeof *optimal.nodes)};
    uint64_t model;
    if (greedy.nodes == NULL || optimal.nodes == NULL) die("out of memory");
    for (uint32_t i = 0; i < dag->n_nodes; i++) greedy.nodes[i] = optimal.nodes[i] = i;
    double t0 = now();
    if (onv_dag_peak(dag, greedy.nodes, &model, NULL) != ONV_OK ||
        onv_dag_order_greedy(dag, NULL, &greedy, NULL) != ONV_OK)
        die("failed");
    double t1 = now();
    if (onv_dag_order_optimal(dag, &options, &optimal, NULL) != ONV_OK ||
        onv_dag_check_order(dag, optimal.nodes, NULL) != ONV_OK)
        die("failed");
    double t2 = now();
    char label[64], gap[32] = "proven";
    snprintf(label, sizeof label, "%.40s %" PRIu64, name, seed);
    if (optimal.peak_bytes != optimal.lower_bound_bytes)
        snprintf(gap, sizeof gap, "+%.4f %%",
                 100.0 * (double)(optimal.peak_bytes - optimal.lower_bound_bytes) /
                     (double)optimal.lower_bound_bytes);
    printf("%-34s %7" PRIu32 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %10s %8.3f %8.3f %9" PRIu64
           "\n",
           label, dag->n_nodes, model, greedy.peak_bytes, optimal.peak_bytes, gap, t1 - t0, t2 - t1,
           optimal.searched);
    free(greedy.nodes);
    free(optimal.nodes);
}

/* Binds the free dimensions that an earlier inference found. */
static onv_status infer(const char *path, onv_model *model, onv_infer_info *info,
                        const onv_infer_info *free_dims, onv_error *err)
{
    onv_options how = onv_options_default();
    onv_dim_binding dims[16];
    for (; free_dims != NULL && how.n_dims < free_dims->free_dims.count && how.n_dims < 16;) {
        const char *name = free_dims->free_dims.at[how.n_dims].name;
        bool image = strcmp(name, "height") == 0 || strcmp(name, "width") == 0;
        dims[how.n_dims++] = (onv_dim_binding){.name = name, .size = image ? 64 : 8};
    }
    how.dims = dims;
    ONV_TRY(onv_load(path, how.limits, model, err));
    onv_status status = onv_graph_check(model, err);
    if (status == ONV_OK) status = onv_infer(model, &how, info, err);
    if (status != ONV_OK) onv_model_cleanup(model);
    return status;
}

static void print_model(const char *path)
{
    onv_model free_model, model;
    onv_infer_info free_info, info;
    onv_live live;
    onv_dag dag;
    onv_error err = {0};
    if (infer(path, &free_model, &free_info, NULL, &err) != ONV_OK ||
        infer(path, &model, &info, &free_info, &err) != ONV_OK)
        die(err.message);
    if (onv_live_compute(&model, NULL, &live, &err) != ONV_OK ||
        onv_dag_init_model(&dag, &model, &live, &err) != ONV_OK)
        die(err.message);
    const char *name = strrchr(path, '/');
    print_row(name != NULL ? name + 1 : path, live.unknown, &dag);
    onv_dag_cleanup(&dag);
    onv_infer_info_cleanup(&info);
    onv_infer_info_cleanup(&free_info);
    onv_model_cleanup(&model);
    onv_model_cleanup(&free_model);
}

static void print_synthetic(void)
{
    onv_dag dag;
    for (uint64_t seed = 0; seed < 8; seed++) {
        if (!dag_wired(&dag, 2, 32, 4, 75, 1, seed)) die("out of memory");
        print_row("wired 2 x 32, sizes alike", seed, &dag);
        onv_dag_cleanup(&dag);
    }
    for (uint64_t seed = 0; seed < 8; seed++) {
        if (!dag_wired(&dag, 1, 65, 4, 75, 1, seed)) die("out of memory");
        print_row("wired 66, sizes alike", seed, &dag);
        onv_dag_cleanup(&dag);
    }
    for (uint64_t seed = 0; seed < 8; seed++) {
        if (!dag_wired(&dag, 1, 65, 4, 75, 100, seed)) die("out of memory");
        print_row("wired 66", seed, &dag);
        onv_dag_cleanup(&dag);
    }
    for (uint64_t seed = 0; seed < 8; seed++) {
        if (!dag_layered(&dag, 12, 5, 2, seed)) die("out of memory");
        print_row("layered 12 x 5", seed, &dag);
        onv_dag_cleanup(&dag);
    }
    for (uint32_t window = 20; window <= 40; window += 10) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            if (!dag_window(&dag, 100, window, 30, seed)) die("out of memory");
            char name[32];
            snprintf(name, sizeof name, "window %u of 100", (unsigned)window);
            print_row(name, seed, &dag);
            onv_dag_cleanup(&dag);
        }
    }
    for (uint64_t seed = 0; seed < 4; seed++) {
        if (!dag_wide(&dag, 40, 8, seed)) die("out of memory");
        print_row("unstructured 40", seed, &dag);
        onv_dag_cleanup(&dag);
    }
    for (uint64_t seed = 0; seed < 2; seed++) {
        if (!dag_wide(&dag, 150, 3, seed)) die("out of memory");
        print_row("unstructured 150", seed, &dag);
        onv_dag_cleanup(&dag);
    }
    for (uint32_t skip = 0; skip < 4; skip++) {
        if (!dag_chain(&dag, 100000, skip, 1)) die("out of memory");
        print_row("chain, skip", skip, &dag);
        onv_dag_cleanup(&dag);
    }
}

int main(int argc, char **argv)
{
    printf("%-34s %7s %12s %12s %12s %10s %8s %8s %9s\n", "graph, seed or unknown sizes", "nodes",
           "model", "greedy", "optimal", "", "greedy s", "opt. s", "searched");
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-e") == 0) {
        options.effort = strtoull(argv[2], NULL, 10);
        first = 3;
    }
    if (argc == first) print_synthetic();
    for (int i = first; i < argc; i++) print_model(argv[i]);
    return 0;
}
