/* What operators of com.microsoft that compute attention take. Read in source (contrib_ops/cuda/bert) and measured, ONNX Runtime
 * 1.31, CUDA build without a GPU; what splits of one query's keys take is not here (0.4 MiB in the largest of 30 graphs). */
#include "base/checked.h"
#include "ort/scratch.h"

enum { FLOAT_BYTES = 4, NEWEST = 90, FLASH = 80, GRAPH_BYTES = 256 /* cuDNN's own */ };

/* Sizes of a call; 0 where they are not known. */
typedef struct attention {
    uint64_t batch, queries, heads, of_query; /* elements of a query */
    uint64_t number;                          /* bytes of an element */
    bool is_half;
} attention;

static bool has_input(const onv_node *node, uint32_t i)
{
    return i < node->n_inputs && onv_is_value(node->inputs[i]);
}

/* Of [batch, tokens, width]. */
static bool read_call(const onv_ort_kernel *k, attention *a)
{
    if (!has_input(k->node, 0)) return false;
    const onv_type *query = onv_ort_input(k, 0);
    int64_t heads = onv_node_int(k->node, "num_heads", 0);
    *a = (attention){.is_half = query->dtype == ONV_FLOAT16 || query->dtype == ONV_BFLOAT16};
    if (query->rank != 3 || onv_ort_elements(query, 0) == 0 || heads < 1) return false;
    a->batch = (uint64_t)query->dims[0].raw;
    a->queries = (uint64_t)query->dims[1].raw;
    a->of_query = (uint64_t)query->dims[2].raw;
    a->heads = (uint64_t)heads;
    a->number = onv_dtype_bits((onv_dtype)query->dtype) / 8;
    return k->session->cuda.compute_capability >= FLASH;
}

/* Sums of rows before Hopper, whose kernels are cuDNN's and have a graph. */
static void add_kernel(onv_ort_kernel *k, const attention *a, bool is_cudnn)
{
    if (is_cudnn != (k->session->cuda.compute_capability >= NEWEST)) return;
    onv_ort_add(k, is_cudnn ? GRAPH_BYTES : a->batch * a->heads * a->queries,
                is_cudnn ? 1 : FLOAT_BYTES);
}

/* Lengths of the sequences, and queries that are turned or taken out of packed ones. */
void onv_ort_grouped_attention(onv_ort_kernel *k)
{
    attention a;
    int64_t of_keys = onv_node_int(k->node, "kv_num_heads", 0);
    if (!read_call(k, &a) || !a.is_half || of_keys < 0 || of_keys > INT32_MAX) return;
    bool is_packed = !has_input(k->node, 1);
    if (is_packed) a.of_query = a.of_query / (a.heads + 2 * (uint64_t)of_keys) * a.heads;
    add_kernel(k, &a, false);
    onv_ort_add(k, 3 * a.batch, sizeof(int32_t));
    if (is_packed || onv_node_int(k->node, "do_rotary", 0) != 0)
        onv_ort_add(k, a.batch * a.queries, a.of_query * a.number);
    add_kernel(k, &a, true);
}

/* Products that no kernel does as one: queries, keys and values by head, and scores twice. Kernels do without where there is no
 * mask, in 16 bits, or for 256 queries and more; then a bias is added to copies. Attention multiplies its input first. A mask of
 * lengths alone leaves it one kernel of cuDNN, which gets them. */
void onv_ort_attention(onv_ort_kernel *k)
{
    enum { MASK = 3, KEY_MASK = 4, LONG = 256 };
    const uint64_t units = 512; /* both begin at a multiple of 256 bytes */
    attention a;
    bool is_whole = k->node->code == ONV_OP_Attention;
    uint32_t mask = is_whole ? MASK : KEY_MASK;
    if (!read_call(k, &a) || k->node->n_inputs > mask + 1 || has_input(k->node, mask + 1)) return;
    bool has_mask = has_input(k->node, mask);
    bool has_lengths = has_mask && is_whole && a.is_half && onv_ort_input(k, mask)->rank == 1 &&
                       onv_ort_elements(onv_ort_input(k, mask), 0) == a.batch &&
                       k->session->cuda.compute_capability >= NEWEST;
    if (has_mask && !has_lengths && onv_ort_input(k, mask)->rank != 2) return;
    if (is_whole && !has_input(k->node, 2)) return;
    if (is_whole) a.of_query = onv_ort_elements(onv_ort_input(k, 2), 0) / 3;
    uint64_t queries = a.batch * a.queries * a.of_query, keys = queries, tokens = a.queries;
    if (!is_whole) {
        if (!has_input(k->node, 1) || !has_input(k->node, 2) || onv_ort_input(k, 1)->rank != 3)
            return;
        keys = onv_ort_elements(onv_ort_input(k, 1), 0);
        tokens = keys / a.batch / a.of_query;
    }
    uint64_t all = queries + 2 * keys, scores;
    if (!onv_u64_mul(a.batch * a.heads * a.queries, tokens, &scores) ||
        !onv_u64_mul(scores, 2 * a.number, &scores))
        scores = UINT64_MAX / 2; /* which no device has */
    bool is_one = (!has_mask || has_lengths) && (a.is_half || a.queries >= LONG);
    if (is_whole) onv_ort_add(k, all, a.number);
    if (is_one && a.is_half && !is_whole) add_kernel(k, &a, false);
    if (!is_one)
        onv_ort_add(k, all * a.number + (scores + units - 1) / units * units, 1);
    else if (is_whole || has_input(k->node, MASK))
        onv_ort_add(k, all, a.number);
    if (has_lengths) onv_ort_add(k, a.batch, sizeof(int32_t));
    if (is_one && a.is_half) add_kernel(k, &a, true);
}
