/* Seeded dags for the tests and measurements of orders. */
#ifndef ONV_TESTS_LIVE_DAGS_H
#define ONV_TESTS_LIVE_DAGS_H

#include "order/order_dag.h"

typedef struct dag_random {
    uint64_t state;
} dag_random;

uint64_t dag_below(dag_random *random, uint64_t n); /* in [0, n) */

/* Any shape: several results of a node, inputs, unused values, outputs, extra bytes, 0 bytes. */
bool dag_any(onv_dag *dag, uint32_t n_nodes, uint64_t seed);

/* Randomly wired cells (Xie et al. 2019): a ring lattice of `degree` neighbours, rewired with
 * `percent`, edges from the lower to the higher number; one source and one sink per cell. Sizes
 * are 1 to `n_sizes`. */
bool dag_wired(onv_dag *dag, uint32_t n_cells, uint32_t n_nodes, uint32_t degree, uint32_t percent,
               uint32_t n_sizes, uint64_t seed);

/* Layers of `width` nodes, each of which reads `reads` of the layer before. */
bool dag_layered(onv_dag *dag, uint32_t n_layers, uint32_t width, uint32_t reads, uint64_t seed);

/* A chain of n nodes; `skip` > 0: every one reads the one `skip` before as well. */
bool dag_chain(onv_dag *dag, uint32_t n_nodes, uint32_t skip, uint64_t seed);

/* Any two nodes with an edge of this chance, results of 1 to 100 bytes. */
bool dag_wide(onv_dag *dag, uint32_t n_nodes, uint32_t percent, uint64_t seed);

/* Three reads of the `window` nodes before it, sizes up to n_sizes; what nobody reads is an output. */
bool dag_window(onv_dag *dag, uint32_t n_nodes, uint32_t window, uint32_t n_sizes, uint64_t seed);

#endif
