/* The ordering problem without ONNX: nodes, the values between them, and bytes.
 *
 *   value   bytes; written by one node, or by none (an input of the graph); read by any number of
 *           nodes; an output of the graph or not
 *   node    reads values, writes values, and needs `need` bytes beyond what was live before it
 *           while it runs: what it writes, and what exists only meanwhile
 *   order   all nodes, each behind the writers of what it reads
 *
 * Lives are those of live.h: an input is live from the first step through its last use (one that
 * nobody reads: in the first step), an output through the last step, a value that nobody reads in
 * its own step. So the bytes live between two steps depend on the set of nodes that have run, not
 * on their order, and a step takes the bytes live before it and its node's need.
 *
 * A value of 0 bytes is an edge. Everything lies in the dag's own arena.
 */
#ifndef ONV_ORDER_DAG_H
#define ONV_ORDER_DAG_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/liveness.h"

#define ONV_DAG_NONE UINT32_MAX

typedef struct onv_dag_value {
    uint64_t bytes;
    uint32_t writer; /* ONV_DAG_NONE: an input */
    bool is_output;
} onv_dag_value;

typedef struct onv_dag_read {
    uint32_t node, value;
} onv_dag_read;

typedef struct onv_dag {
    uint32_t n_nodes, n_values;
    onv_dag_value *values;
    uint64_t *need; /* by node */
    uint64_t *kept; /* by node: bytes of what it writes that outlive its step */
    /* What node n reads: reads[read_start[n]] up to reads[read_start[n + 1]], no value twice; what
     * it writes, and who reads a value, likewise. */
    uint32_t *read_start, *reads;
    uint32_t *write_start, *writes;
    uint32_t *reader_start, *readers;
    uint64_t start_bytes; /* inputs that are read or outputs: live before the first step */
    uint64_t first_bytes; /* other inputs: live in the first step only */
    uint64_t *early;      /* by node: its need in the first step of its subgraphs, which is its need
                             where it has none; NULL: no node has subgraphs */
    onv_arena arena;
} onv_dag;

/* What a node needs beyond start_bytes where it is the first of the order: inputs that nobody reads are
 * there in its first step alone. */
static inline uint64_t onv_dag_first_need(const onv_dag *dag, uint32_t node)
{
    uint64_t early = dag->early != NULL ? dag->early[node] : dag->need[node];
    early += dag->first_bytes;
    return early > dag->need[node] ? early : dag->need[node];
}

/* `extra` (by node, NULL: none) are the bytes that exist only while a node runs. A pair of node and
 * value may come twice. Fails where all bytes together do not fit 63 bits. The graph must have no
 * cycles. */
onv_status onv_dag_init(onv_dag *dag, uint32_t n_nodes, const uint64_t *extra,
                        const onv_dag_value *values, uint32_t n_values, const onv_dag_read *reads,
                        size_t n_reads, onv_error *err);
void onv_dag_cleanup(onv_dag *dag);

/* The main graph; node n is the nth of the file. `live` gives the sizes, and with them what the
 * subgraphs of a node hold, which counts as the node's need. Constants are values of 0 bytes. */
onv_status onv_dag_init_model(onv_dag *dag, const onv_model *model, const onv_live *live,
                              onv_error *err);

/* The bytes of every step of an order. Linear. */
onv_status onv_dag_steps(const onv_dag *dag, const uint32_t *order, uint64_t *bytes,
                         onv_error *err);

/* The largest of them. */
onv_status onv_dag_peak(const onv_dag *dag, const uint32_t *order, uint64_t *bytes, onv_error *err);

/* Whether the order holds every node once, behind the writers of what it reads. */
onv_status onv_dag_check_order(const onv_dag *dag, const uint32_t *order, onv_error *err);

#endif
