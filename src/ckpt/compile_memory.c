#include "ckpt/compile_memory.h"

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"

/* --- Channels last ----------------------------------------------------------------------------- */

static const onv_eager_tensor *input_of(const onv_eager *eager, const onv_eager_op *op, uint32_t k)
{
    uint32_t tensor = k < op->n_in ? op->in[k].tensor : ONV_NO_TENSOR;
    return tensor != ONV_NO_TENSOR ? &eager->tensors.at[tensor] : NULL;
}

static bool is_convolution(const onv_eager *eager, const onv_eager_op *op)
{
    if (op->aten != ONV_ATEN_conv) return false;
    const onv_eager_tensor *x = input_of(eager, op, 0), *w = input_of(eager, op, 1);
    return x != NULL && w != NULL && x->rank > 2 && w->rank == x->rank;
}

/* With so many nodes for each convolution, or one of these convolutions, the layout stays. */
static bool wants_channels_last(const onv_eager *eager, const onv_joint *joint,
                                const onv_partition *partition)
{
    enum { MANY_NODES = 300, FEW_CHANNELS = 64 };
    uint64_t n_nodes = 0, n = 0;
    bool all_small = true;
    for (size_t i = 0; i < joint->nodes.count; i++)
        n_nodes += partition->is_alive[i] || joint->nodes.at[i].kind == ONV_JOINT_PRIMAL;
    for (uint32_t i = 0; i < eager->first_loss_op; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        if (!is_convolution(eager, op)) continue;
        const onv_eager_tensor *x = input_of(eager, op, 0), *w = input_of(eager, op, 1);
        int64_t groups = w->dims[1] == 0 ? 1 : x->dims[1] / w->dims[1];
        if (groups > 1 && w->dims[1] > 1) return false;
        if (w->dims[0] <= w->dims[1] / 2 && w->dims[2] > 1) return false;
        all_small &= w->dims[0] <= FEW_CHANNELS && w->dims[1] <= FEW_CHANNELS;
        n++;
    }
    return n > 0 && n_nodes < MANY_NODES * n && !all_small;
}

/* Of one channel, or one place, both layouts are the same. */
static bool is_copied(const onv_eager *eager, const onv_eager_tensor *t)
{
    uint8_t kind = eager->storages.at[t->storage].kind;
    return (kind == ONV_STORAGE_PARAMETER || kind == ONV_STORAGE_INPUT) && t->rank == 4 &&
           t->dims[1] > 1 && t->dims[2] * t->dims[3] > 1;
}

onv_status onv_layout_copies_find(const onv_eager *eager, const onv_joint *joint,
                                  const onv_partition *partition, onv_arena *arena,
                                  onv_layout_copies *copies, onv_error *err)
{
    *copies = (onv_layout_copies){.bytes = ONV_ARENA_ARRAY(arena, uint64_t, eager->ops.count)};
    bool *seen = ONV_ARENA_ARRAY(arena, bool, eager->storages.count);
    if (copies->bytes == NULL || seen == NULL) return onv_fail_memory(err);
    if (!wants_channels_last(eager, joint, partition)) return ONV_OK;
    for (uint32_t i = 0; i < eager->first_loss_op; i++) {
        const onv_eager_op *op = &eager->ops.at[i];
        if (!is_convolution(eager, op) || !op->has_backward) continue;
        for (uint32_t k = 0; k < 2; k++) {
            const onv_eager_tensor *t = input_of(eager, op, k);
            if (seen[t->storage] || !is_copied(eager, t)) continue;
            seen[t->storage] = true;
            copies->count += copies->bytes[i] == 0;
            copies->bytes[i] += t->bytes;
            copies->total_bytes += t->bytes;
        }
    }
    return ONV_OK;
}

/* --- What runs again --------------------------------------------------------------------------- */

/* By operation the step of its backward, or of the next backward behind it that runs; of one iteration, whose
 * first step is `begin`. Backward goes down the tape. */
static uint32_t find_backward(const onv_eager *eager, const onv_timeline *t, uint32_t begin,
                              uint32_t *step_of)
{
    uint32_t end = begin, next = (uint32_t)eager->ops.count;
    while (end < t->steps.count && t->steps.at[end].iteration == t->steps.at[begin].iteration)
        end++;
    memset(step_of, 0xff, eager->ops.count * sizeof *step_of);
    for (uint32_t s = begin; s < end; s++) {
        const onv_step *step = &t->steps.at[s];
        if (step->phase != ONV_PHASE_BACKWARD || step->label == NULL) continue;
        for (uint32_t i = next; i-- > 0;) {
            const onv_eager_op *op = &eager->ops.at[i];
            if (op->node.index != step->node.index || op->name != step->label) continue;
            step_of[i] = s;
            next = i;
            break;
        }
    }
    uint32_t behind = UINT32_MAX;
    for (uint32_t i = 0; i < eager->ops.count; i++) {
        if (step_of[i] == UINT32_MAX) step_of[i] = behind;
        behind = step_of[i];
    }
    return end;
}

static onv_status add_one(uint64_t bytes, uint32_t first, uint32_t last, onv_timeline *t,
                          onv_error *err)
{
    onv_buffer buffer = onv_buffer_new(ONV_BUFFER_ACTIVATION, bytes, first, last, "computed again");
    return onv_vec_push(&t->buffers, buffer) ? ONV_OK : onv_fail_memory(err);
}

typedef struct again {
    const onv_joint *joint;
    const onv_partition *partition;
    uint32_t *step_of; /* by operation of the tape */
    uint64_t *freed;   /* by node: of what it is the last to read */
    uint64_t *now;     /* by step: what was computed again in it so far and is still there */
    uint64_t *most;    /* the most of these */
    uint64_t *left;    /* what of it is there at its end, or read by its own backward */
} again;

/* What only the same step's second run reads goes while that runs. Inductor lets a fused kernel write over
 * what it is the last to read. */
static bool passes(const onv_partition *p, uint32_t node)
{
    return !p->is_read[node] && p->first_read[node] == p->last_read[node] &&
           p->last_again[node] != ONV_JOINT_NONE;
}

static void run_again(again *a, uint32_t i, uint32_t step)
{
    const onv_joint_node *node = &a->joint->nodes.at[i];
    uint64_t goes = a->freed[i];
    bool takes_over = node->kind == ONV_JOINT_POINTWISE && goes >= node->bytes;
    a->now[step] += takes_over ? 0 : node->bytes;
    if (a->now[step] > a->most[step]) a->most[step] = a->now[step];
    a->now[step] -= takes_over ? goes - node->bytes : goes;
    if (passes(a->partition, i))
        a->freed[a->partition->last_again[i]] += node->bytes;
    else
        a->left[step] += node->bytes;
}

/* Of the iteration whose steps are known. */
static onv_status add_iteration(again *a, uint32_t begin, uint32_t end, onv_timeline *t,
                                onv_error *err)
{
    const onv_partition *p = a->partition;
    memset(a->freed, 0, a->joint->nodes.count * sizeof *a->freed);
    for (uint32_t i = 0; i < a->joint->nodes.count; i++) {
        const onv_joint_node *node = &a->joint->nodes.at[i];
        if (!p->is_again[i] || !p->is_written[i] || node->base != i || node->kind == ONV_JOINT_PART)
            continue;
        uint32_t first = a->step_of[p->first_read[i]], last = a->step_of[p->last_read[i]];
        if (first == UINT32_MAX || last == UINT32_MAX || first > last) continue;
        run_again(a, i, first);
        if (!passes(p, i)) ONV_TRY(add_one(node->bytes, first, last, t, err));
    }
    for (uint32_t s = begin; s < end; s++)
        if (a->most[s] > a->left[s]) ONV_TRY(add_one(a->most[s] - a->left[s], s, s, t, err));
    return ONV_OK;
}

onv_status onv_compile_add_again(const onv_eager *eager, const onv_joint *joint,
                                 const onv_partition *partition, onv_timeline *timeline,
                                 onv_error *err)
{
    size_t n = timeline->steps.count + 1;
    again a = {
        .joint = joint,
        .partition = partition,
        .step_of = onv_heap_calloc(eager->ops.count + 1, sizeof *a.step_of),
        .freed = onv_heap_calloc(joint->nodes.count + 1, sizeof *a.freed),
        .now = onv_heap_calloc(n, sizeof *a.now),
        .most = onv_heap_calloc(n, sizeof *a.most),
        .left = onv_heap_calloc(n, sizeof *a.left),
    };
    bool is_there =
        a.step_of != NULL && a.freed != NULL && a.now != NULL && a.most != NULL && a.left != NULL;
    onv_status status = is_there ? ONV_OK : onv_fail_memory(err);
    for (uint32_t begin = 0; begin < timeline->steps.count && status == ONV_OK;) {
        uint32_t end = find_backward(eager, timeline, begin, a.step_of);
        status = add_iteration(&a, begin, end, timeline, err);
        begin = end;
    }
    onv_heap_free(a.step_of);
    onv_heap_free(a.freed);
    onv_heap_free(a.now);
    onv_heap_free(a.most);
    onv_heap_free(a.left);
    return status;
}
