#include "order/dags.h"

#include <stdlib.h>

#include "base/vec.h"

uint64_t dag_below(dag_random *random, uint64_t n)
{
    uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % n;
}

typedef struct maker {
    dag_random random;
    ONV_VEC(onv_dag_value) values;
    ONV_VEC(onv_dag_read) reads;
    bool failed;
} maker;

static uint32_t add_value(maker *m, uint64_t bytes, uint32_t writer)
{
    onv_dag_value value = {.bytes = bytes, .writer = writer};
    if (!onv_vec_push(&m->values, value)) m->failed = true;
    return (uint32_t)m->values.count - 1;
}

static void add_read(maker *m, uint32_t node, uint32_t value)
{
    onv_dag_read read = {node, value};
    if (!onv_vec_push(&m->reads, read)) m->failed = true;
}

/* Values that nobody reads become outputs where `outputs` says so. */
static bool finish(maker *m, onv_dag *dag, uint32_t n_nodes, const uint64_t *extra, bool outputs)
{
    onv_status status = ONV_ERR_MEMORY;
    for (size_t v = 0; outputs && v < m->values.count; v++) m->values.at[v].is_output = true;
    for (size_t i = 0; outputs && i < m->reads.count; i++)
        m->values.at[m->reads.at[i].value].is_output = false;
    if (!m->failed)
        status = onv_dag_init(dag, n_nodes, extra, m->values.at, (uint32_t)m->values.count,
                              m->reads.at, m->reads.count, NULL);
    onv_vec_cleanup(&m->values);
    onv_vec_cleanup(&m->reads);
    return status == ONV_OK;
}

bool dag_any(onv_dag *dag, uint32_t n_nodes, uint64_t seed)
{
    maker m = {.random = {seed}};
    uint64_t extra[64] = {0};
    uint64_t n_inputs = 1 + dag_below(&m.random, 3), range = 1 + dag_below(&m.random, 30);
    uint64_t density = 1 + dag_below(&m.random, 4), unused = dag_below(&m.random, 3);
    for (uint64_t i = 0; i < n_inputs; i++)
        add_value(&m, dag_below(&m.random, range), ONV_DAG_NONE);
    for (uint32_t n = 0; n < n_nodes && n < 64; n++) {
        size_t known = m.values.count;
        for (uint64_t k = dag_below(&m.random, density + 1); k > 0 && known > unused; k--)
            add_read(&m, n, (uint32_t)(unused + dag_below(&m.random, known - unused)));
        for (uint64_t k = dag_below(&m.random, 8) == 0 ? dag_below(&m.random, 4) : 1; k > 0; k--)
            add_value(&m, dag_below(&m.random, range), n);
        if (dag_below(&m.random, 4) == 0) extra[n] = dag_below(&m.random, range * 2);
    }
    for (size_t v = 0; v < m.values.count; v++)
        m.values.at[v].is_output = dag_below(&m.random, 8) == 0;
    return finish(&m, dag, n_nodes, extra, false);
}

/* One cell that reads `input`; returns its result. Nodes are `first` up to first + n + 1. */
static uint32_t add_cell(maker *m, uint32_t input, uint32_t first, uint32_t n, uint32_t degree,
                         uint32_t percent, uint32_t n_sizes)
{
    bool *linked = calloc((size_t)n * n, sizeof *linked);
    uint32_t *result = calloc((size_t)n + 1, sizeof *result);
    if (linked == NULL || result == NULL) m->failed = true;
    for (uint32_t i = 0; !m->failed && i < n; i++) {
        for (uint32_t k = 1; k <= degree / 2; k++) {
            uint32_t other = (i + k) % n;
            if (dag_below(&m->random, 100) < percent) do
                    other = (uint32_t)dag_below(&m->random, n);
                while (other == i);
            linked[i < other ? i * n + other : other * n + i] = true;
        }
    }
    for (uint32_t j = 0; !m->failed && j < n; j++) {
        bool reads = false;
        for (uint32_t i = 0; i < j; i++) {
            if (!linked[i * n + j]) continue;
            add_read(m, first + j, result[i]);
            reads = true;
        }
        if (!reads) add_read(m, first + j, input);
        result[j] = add_value(m, 1 + dag_below(&m->random, n_sizes), first + j);
    }
    for (uint32_t i = 0; !m->failed && i < n; i++) {
        bool is_read = false;
        for (uint32_t j = i + 1; j < n; j++) is_read |= linked[i * n + j];
        if (!is_read) add_read(m, first + n, result[i]);
    }
    free(linked);
    free(result);
    return add_value(m, 1 + dag_below(&m->random, n_sizes), first + n);
}

bool dag_wired(onv_dag *dag, uint32_t n_cells, uint32_t n_nodes, uint32_t degree, uint32_t percent,
               uint32_t n_sizes, uint64_t seed)
{
    maker m = {.random = {seed}};
    uint32_t at = add_value(&m, 1, ONV_DAG_NONE);
    for (uint32_t c = 0; c < n_cells; c++)
        at = add_cell(&m, at, c * (n_nodes + 1), n_nodes, degree, percent, n_sizes);
    return finish(&m, dag, n_cells * (n_nodes + 1), NULL, true);
}

bool dag_layered(onv_dag *dag, uint32_t n_layers, uint32_t width, uint32_t reads, uint64_t seed)
{
    maker m = {.random = {seed}};
    uint32_t input = add_value(&m, 10, ONV_DAG_NONE);
    for (uint32_t l = 0; l < n_layers; l++) {
        for (uint32_t i = 0; i < width; i++) {
            uint32_t node = l * width + i;
            if (l == 0) add_read(&m, node, input);
            for (uint32_t k = 0; l > 0 && k < reads; k++)
                add_read(&m, node, 1 + (l - 1) * width + (uint32_t)dag_below(&m.random, width));
            add_value(&m, 1 + dag_below(&m.random, 100), node);
        }
    }
    return finish(&m, dag, n_layers * width, NULL, true);
}

bool dag_chain(onv_dag *dag, uint32_t n_nodes, uint32_t skip, uint64_t seed)
{
    maker m = {.random = {seed}};
    add_value(&m, 50, ONV_DAG_NONE);
    for (uint32_t n = 0; n < n_nodes; n++) {
        add_read(&m, n, n);
        if (skip > 0 && n >= skip) add_read(&m, n, n - skip);
        add_value(&m, 1 + dag_below(&m.random, 100), n);
    }
    return finish(&m, dag, n_nodes, NULL, true);
}

bool dag_wide(onv_dag *dag, uint32_t n_nodes, uint32_t percent, uint64_t seed)
{
    maker m = {.random = {seed}};
    uint32_t input = add_value(&m, 10, ONV_DAG_NONE);
    for (uint32_t n = 0; n < n_nodes; n++) {
        add_read(&m, n, input);
        for (uint32_t k = 0; k < n; k++)
            if (dag_below(&m.random, 100) < percent) add_read(&m, n, 1 + k);
        add_value(&m, 1 + dag_below(&m.random, 100), n);
    }
    return finish(&m, dag, n_nodes, NULL, true);
}

bool dag_window(onv_dag *dag, uint32_t n_nodes, uint32_t window, uint32_t n_sizes, uint64_t seed)
{
    maker m = {.random = {seed}};
    for (uint32_t n = 0; n < n_nodes; n++) {
        uint32_t before = n < window ? n : window;
        for (uint32_t k = 0; before > 0 && k < 3; k++)
            add_read(&m, n, n - 1 - (uint32_t)dag_below(&m.random, before));
        add_value(&m, 1 + dag_below(&m.random, n_sizes), n);
    }
    return finish(&m, dag, n_nodes, NULL, true);
}
