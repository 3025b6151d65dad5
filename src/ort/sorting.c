/* What kernels take that sort. Measured: ONNX Runtime 1.31, CUDA build without a GPU. */
#include "kernels/cub.h"
#include "ort/scratch.h"

/* By all bytes of the key. Tiles are those of compute capability 9.0. */
static uint64_t sort_bytes(uint64_t n, uint64_t key, uint64_t value, uint64_t counter)
{
    enum { SINGLE = 4864 };
    static const uint64_t tiles[] = {[2] = 5632, [4] = 5376, [8] = 4608};
    return onv_cub_sort_bytes(&(onv_cub_sort){.n = n,
                                              .key = key,
                                              .value = value,
                                              .counter = counter,
                                              .passes = key,
                                              .tile = value == 4 ? 8832 : tiles[key],
                                              .single = SINGLE});
}

/* Up to 32 of a long last axis are chosen block by block; more than 4096 are sorted. Between them is nothing, or kernels that take
 * little (0.5 MiB in the largest of 12 graphs). */
void onv_ort_top_k(onv_ort_kernel *k)
{
    enum { FEW = 32, LONG = 4096, BLOCK = 16384, MOST_BLOCKS = 64, MANY = 4096 };
    const onv_type *in = onv_ort_input(k, 0),
                   *out = &onv_model_value(k->model, k->node->outputs[0])->type;
    int64_t axis = onv_node_int(k->node, "axis", -1);
    if (onv_ort_elements(in, 0) == 0 || onv_ort_elements(out, 0) == 0 || in->rank < 1) return;
    if (axis < 0) axis += in->rank;
    if (axis < 0 || axis >= in->rank) return;
    uint64_t n = (uint64_t)in->dims[axis].raw, chosen = (uint64_t)out->dims[axis].raw;
    uint64_t key = onv_dtype_bits((onv_dtype)in->dtype) / 8, blocks = (n + BLOCK - 1) / BLOCK;
    bool is_short =
        in->dtype == ONV_FLOAT || (onv_dtype_is_float((onv_dtype)in->dtype) && key == 2);
    if (blocks > MOST_BLOCKS) blocks = MOST_BLOCKS;
    if (is_short && axis == in->rank - 1 && n > LONG && chosen <= FEW)
        onv_ort_add(k, onv_ort_elements(in, 0) / n * blocks, chosen * sizeof(int64_t));
    if (chosen <= MANY || key < 2 || key > 8 || onv_node_int(k->node, "sorted", 1) == 0 ||
        n > UINT32_MAX)
        return;
    for (int i = 0; i < 4; i++) onv_ort_add(k, n, i < 2 ? key : sizeof(int64_t));
    onv_ort_add(k, sort_bytes(n, key, sizeof(int64_t), sizeof(int64_t)), 1);
}

/* Of one class: what its scores are sorted with, and which of the boxes that are left cover which; how many are left, data tells. */
void onv_ort_suppression(onv_ort_kernel *k)
{
    enum { BITS = 32, CORNERS = 4 };
    uint64_t n = onv_ort_input_elements(k, 0, 0);
    if (n == 0 || n / CORNERS > UINT32_MAX || onv_ort_input(k, 0)->rank != 3) return;
    n = (uint64_t)onv_ort_input(k, 0)->dims[1].raw;
    onv_ort_add(k, sort_bytes(n, sizeof(float), sizeof(int32_t), sizeof(int32_t)), 1);
    for (int i = 0; i < 4; i++) onv_ort_add(k, n, sizeof(int32_t));
    onv_ort_add(k, n, CORNERS * sizeof(float));
    for (uint32_t i = 0; i < k->scratch->count; i++) k->scratch->rows[i].is_early = true;
    onv_ort_scratch_row *covers = onv_ort_add(k, n, (n + BITS - 1) / BITS * sizeof(int32_t));
    if (covers == NULL) return;
    covers->is_early = covers->is_uncertain = true;
    covers->most_bytes = covers->bytes;
}
