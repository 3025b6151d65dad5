/* Caches of networks that take videos or sounds in parts: a causal convolution needs the last frames of the part before, so
 * that its module keeps a clone of them, in a list or a dictionary of the network, until the function that began the list
 * returns. What no later part reads is not in the file; traces tell the calls that are given such a list
 * (load/statements.h).
 *
 * A kernel of k places that moves by s needs the last k - s frames. `x[:, :, -(k - 1):]` of a kernel of one place are all. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "ir/path.h"
#include "lower/lowering.h"

/* Nodes of a module around a convolution that are looked at. */
enum { MOST_AROUND = 64, TIME = 2 };

static bool is_child(const char *scope, const char *module)
{
    size_t length = strlen(module);
    return onv_path_is_inside(scope, module) && strchr(scope + length + (length > 0), '.') == NULL;
}

/* Whether the module, whose nodes are around this one, has no other convolution. */
static bool is_only(onv_lowering *l, const onv_node *conv)
{
    for (int step = -1; step <= 1; step += 2) {
        uint32_t i = l->emit.node.index;
        for (uint32_t n = 0;; n++) {
            if ((step < 0 && i == 0) || (step > 0 && i + 1 == l->emit.model->nodes.count)) break;
            i += (uint32_t)step;
            const onv_node *node = &l->emit.model->nodes.at[i];
            if (!onv_path_is_of(node->scope, conv->cache_call)) break;
            if (n == MOST_AROUND || !onv_work(1)) return false;
            if (strcmp(node->op_type, "Conv") == 0 && node->scope != conv->scope) return false;
        }
    }
    return true;
}

/* What the module that keeps frames has of them: before the call that pads it, where this is the convolution's own. */
static uint32_t find_frames(onv_lowering *l, const onv_node *conv, uint32_t x, bool is_own)
{
    if (!is_own || !onv_is_value(conv->inputs[0])) return x;
    onv_node_id from = onv_model_value(l->emit.model, conv->inputs[0])->producer;
    const onv_node *pad = onv_is_node(from) ? onv_model_node(l->emit.model, from) : NULL;
    bool pads = pad != NULL && strcmp(pad->op_type, "Pad") == 0 && pad->scope == conv->scope &&
                pad->n_inputs > 0 && onv_is_value(pad->inputs[0]);
    return pads ? onv_node_in(l, pad, 0) : x;
}

static uint32_t make_clone(onv_lowering *l, uint32_t x, int64_t frames)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    int64_t dims[ONV_MAX_RANK];
    memcpy(dims, t.dims, t.rank * sizeof *dims);
    if (frames < dims[TIME]) dims[TIME] = frames;
    onv_emit_begin(&l->emit, "clone");
    onv_emit_in(&l->emit, x, ONV_GRAD_NONE);
    uint32_t clone = onv_emit_out(&l->emit, onv_tensor_new(&l->emit, t.dtype, t.rank, dims, NULL));
    onv_emit_end(&l->emit);
    return clone;
}

static void end_clone(onv_lowering *l, const onv_cached_clone *clone)
{
    uint32_t last = (uint32_t)l->emit.eager->ops.count - 1;
    l->emit.eager->storages.at[clone->storage].held_until = last;
}

static void keep(onv_lowering *l, const onv_node *conv, uint32_t clone)
{
    onv_cached_clone now = {conv->scope, conv->cache_owner, onv_tensor_at(&l->emit, clone).storage};
    uint64_t bytes = onv_tensor_at(&l->emit, clone).bytes;
    if (l->tally.cached.count++ == 0) l->cached.first = conv;
    l->tally.cached.bytes =
        bytes > UINT64_MAX - l->tally.cached.bytes ? UINT64_MAX : l->tally.cached.bytes + bytes;
    for (size_t i = 0; i < l->cached.frames.count; i++) {
        onv_cached_clone *other = &l->cached.frames.at[i];
        if (!onv_work(1)) l->emit.status = ONV_ERR_CANCELLED;
        if (onv_path_is_of(now.owner, other->owner)) now.owner = other->owner;
        if (other->scope != now.scope) continue;
        end_clone(l, other);
        *other = now;
        return;
    }
    if (!onv_vec_push(&l->cached.frames, now)) l->emit.status = onv_fail_memory(l->emit.err);
}

void onv_cached_keep(onv_lowering *l, const onv_node *conv, uint32_t x)
{
    if (conv->cache_call == NULL || conv->scope == NULL || x == ONV_NO_TENSOR ||
        l->emit.options->as_exported || conv->graph.index != 0 || l->emit.status != ONV_OK)
        return;
    bool is_own = strcmp(conv->scope, conv->cache_call) == 0;
    if (!is_own && (!is_child(conv->scope, conv->cache_call) || !is_only(l, conv))) return;
    onv_eager_tensor kernel = onv_tensor_at(&l->emit, onv_node_in(l, conv, 1));
    x = find_frames(l, conv, x, is_own);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    if (x == ONV_NO_TENSOR || kernel.rank != t.rank || (t.rank != 3 && t.rank != 5)) return;
    int64_t stride = onv_node_int_at(conv, "strides", 0, 1), reach;
    int64_t dilation = onv_node_int_at(conv, "dilations", 0, 1);
    if (stride < 1 || dilation < 1 || kernel.dims[TIME] < 1 ||
        !onv_i64_mul(kernel.dims[TIME] - 1, dilation, &reach) || !onv_i64_add(reach, 1, &reach))
        return;
    bool is_point = kernel.dims[TIME] == 1 && stride == 1 && !is_own;
    if (reach <= stride && !is_point) return;
    keep(l, conv, make_clone(l, x, is_point ? t.dims[TIME] : reach - stride));
}

void onv_cached_leave(onv_lowering *l, const onv_node *node)
{
    size_t left = 0;
    if (l->cached.frames.count == 0 || l->emit.eager->ops.count == 0 || node->graph.index != 0 ||
        node->scope == NULL || node->scope == l->cached.scope)
        return;
    l->cached.scope = node->scope;
    if (!onv_work((uint32_t)l->cached.frames.count)) l->emit.status = ONV_ERR_CANCELLED;
    for (size_t i = 0; i < l->cached.frames.count; i++) {
        const onv_cached_clone *clone = &l->cached.frames.at[i];
        if (onv_path_is_of(node->scope, clone->owner) || onv_path_is_of(clone->owner, node->scope))
            l->cached.frames.at[left++] = *clone;
        else
            end_clone(l, clone);
    }
    l->cached.frames.count = left;
}

void onv_cached_finish(onv_lowering *l)
{
    for (size_t i = 0; i < l->cached.frames.count && l->emit.eager->ops.count > 0; i++)
        end_clone(l, &l->cached.frames.at[i]);
    l->cached.frames.count = 0;
}
