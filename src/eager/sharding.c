/* DistributedDataParallel and fully_shard on one of their devices.
 *
 * Read in source (PyTorch 2.15: torch/nn/parallel/distributed.py, torch/csrc/distributed/c10d/reducer.cpp,
 * torch/distributed/fsdp/_fully_shard):
 *
 * DDP. The first iteration has one bucket for all gradients, for their order is not known yet; then buckets are
 * made anew in the order in which gradients came, the first of 1 MiB, the others of 25 MiB. A bucket is full
 * with the parameter that reaches its size. Gradients are copied into their bucket, or become views of it.
 * Buffers are broadcast through a flat copy before each forward pass. Passes before the last one of an
 * accumulation are taken for no_sync().
 *
 * FSDP. Each unit is a group of parameters, what lies in no unit is the root's. A device holds a part of each
 * parameter along its first dim, padded. Before a unit runs, its parts are gathered into one buffer, and copied
 * from there into the whole parameters; in forward the buffer stays until the next unit's parameters are copied
 * out, in backward it goes at once, and the buffer of the unit before is gathered already. A unit gives its
 * parameters back after its forward, the root after its backward. Then its gradients are copied into one buffer,
 * which stays until the next unit's, and reduced into this device's part of them. With parameters in 16 bits and
 * float32 masters (MixedPrecisionPolicy), parts are cast before they are gathered, and reduced in float32.
 * Streams: what is gathered, and cast for that, is made on one (all_gather_copy_in_stream), what is reduced on
 * another one (reduce_scatter_stream); each has cached memory of its own. Whole parameters, and the copies of
 * gradients that reducing reads, are made on the main one. With CPUOffloadPolicy parts are on the host: they are
 * copied to the device to be gathered, and what is reduced goes back.
 */
#include "eager/sharding.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

enum { GATHER_STREAM = 1, REDUCE_STREAM = 2 };
enum { FIRST_BUCKET_BYTES = 1 << 20, BUCKET_BYTES = 25 << 20, BROADCAST_BYTES = 250 << 20 };

static bool is_ddp(const onv_simulation *s)
{
    return s->options->parallel == ONV_PARALLEL_DDP ||
           s->options->parallel == ONV_PARALLEL_DDP_VIEWS;
}

static bool is_fsdp(const onv_simulation *s)
{
    return s->options->parallel == ONV_PARALLEL_FSDP;
}

/* --- Sizes ------------------------------------------------------------------------------------- */

static uint64_t first_dim(const onv_eager_storage *storage)
{
    return storage->rank > 0 && storage->dims[0] > 0 ? (uint64_t)storage->dims[0] : 1;
}

/* One device's part, padded, of what has `whole` of something for the parameter. */
static uint64_t part(const onv_simulation *s, const onv_eager_storage *storage, uint64_t whole)
{
    uint64_t rows = first_dim(storage);
    return (whole / rows + (whole % rows != 0)) * (rows / s->world + (rows % s->world != 0));
}

uint64_t onv_shard_of(const onv_simulation *s, const onv_eager_storage *storage, uint64_t bytes,
                      uint32_t stage)
{
    return is_fsdp(s) ? part(s, storage, bytes) : onv_sim_shard(s, bytes, stage);
}

uint64_t onv_sim_optimized_bytes(const onv_simulation *s, const onv_eager_storage *storage)
{
    bool low = storage->elems > 0 && storage->bytes / storage->elems < sizeof(float);
    return s->options->master_weights && low ? storage->elems * sizeof(float) : storage->bytes;
}

/* --- Units ------------------------------------------------------------------------------------- */

/* By storage: the unit that alone reads it, the root otherwise. */
static void find_owners(const onv_simulation *s, const onv_sharding *h, uint32_t *owner)
{
    uint32_t root = h->n_units - 1;
    for (uint32_t i = 0; i < s->eager->storages.count; i++) owner[i] = UINT32_MAX;
    for (uint32_t i = 0; i < s->eager->ops.count; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t *at = &owner[onv_sim_storage(s, op->in[k].tensor)];
            if (*at == UINT32_MAX)
                *at = h->unit_of[i];
            else if (*at != h->unit_of[i])
                *at = root;
        }
    }
}

/* Whether something with a gradient comes in from outside. */
static bool takes_grads(const onv_simulation *s, const onv_shard_unit *unit)
{
    for (uint32_t i = unit->first_op; i <= unit->last_op; i++) {
        const onv_eager_op *op = &s->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) {
            const onv_eager_tensor *t = &s->eager->tensors.at[op->in[k].tensor];
            const onv_eager_storage *storage = &s->eager->storages.at[t->storage];
            if (t->needs_grad && storage->kind >= ONV_STORAGE_ACTIVATION &&
                s->made_by[t->storage] < unit->first_op)
                return true;
        }
    }
    return false;
}

static void add_parameter(const onv_simulation *s, onv_shard_unit *unit, uint32_t index)
{
    const onv_eager_storage *storage = &s->eager->storages.at[index];
    uint64_t shard = part(s, storage, storage->elems);
    unit->storages[unit->n_storages++] = index;
    unit->shard_elems += shard;
    unit->gather_elems += shard * s->world;
    if (storage->trained) unit->reduce_elems += shard * s->world;
    if (storage->elems == 0) return;
    unit->elem_bytes = storage->bytes / storage->elems;
    unit->state_bytes = onv_sim_optimized_bytes(s, storage) / storage->elems;
}

static onv_status check_units(const onv_simulation *s, onv_error *err)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < s->options->n_units; i++) {
        onv_tape_segment at = s->options->units[i];
        if (at.first_op < end || at.last_op < at.first_op || at.last_op >= s->eager->first_loss_op)
            return onv_fail(err, ONV_ERR_USAGE,
                            "unit %u (operations %u to %u) overlaps another one", i, at.first_op,
                            at.last_op);
        end = at.last_op + 1;
    }
    return ONV_OK;
}

static onv_status make_units(onv_simulation *s, onv_error *err)
{
    onv_sharding *h = s->sharding;
    uint32_t n = (uint32_t)s->eager->storages.count, n_ops = (uint32_t)s->eager->ops.count;
    ONV_TRY(check_units(s, err));
    h->n_units = s->options->n_units + 1;
    h->units = ONV_ARENA_ARRAY(&s->arena, onv_shard_unit, h->n_units);
    h->unit_of = ONV_ARENA_ARRAY(&s->arena, uint32_t, n_ops);
    uint32_t *owner = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    uint32_t *room = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    if (s->arena.failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < n_ops; i++) h->unit_of[i] = h->n_units - 1;
    for (uint32_t u = 0; u < h->n_units; u++) {
        bool root = u + 1 == h->n_units;
        uint32_t last = s->eager->first_loss_op > 0 ? s->eager->first_loss_op - 1 : 0;
        onv_tape_segment at = root ? (onv_tape_segment){0, last} : s->options->units[u];
        h->units[u] = (onv_shard_unit){.first_op = at.first_op,
                                       .last_op = at.last_op,
                                       .gathering_row = ONV_NO_ROW,
                                       .grad_row = ONV_NO_ROW};
        for (uint32_t i = at.first_op; i <= at.last_op && !root; i++) h->unit_of[i] = u;
    }
    find_owners(s, h, owner);
    for (uint32_t u = 0; u < h->n_units; u++) {
        h->units[u].storages = room;
        for (uint32_t i = 0; i < n; i++)
            if (owner[i] == u && s->eager->storages.at[i].kind == ONV_STORAGE_PARAMETER)
                add_parameter(s, &h->units[u], i);
        room += h->units[u].n_storages;
    }
    for (uint32_t u = 0; u + 1 < h->n_units; u++)
        h->units[u].takes_grads = takes_grads(s, &h->units[u]);
    return ONV_OK;
}

onv_status onv_shard_prepare(onv_simulation *s, onv_error *err)
{
    uint32_t n = (uint32_t)s->eager->storages.count;
    if (!is_ddp(s) && !is_fsdp(s)) return ONV_OK;
    if (s->world < 2)
        return onv_fail(err, ONV_ERR_USAGE,
                        "training is shared out among 2 devices or more: --world N");
    onv_sharding *h = s->sharding = ONV_ARENA_ARRAY(&s->arena, onv_sharding, 1);
    if (h == NULL) return onv_fail_memory(err);
    h->held_row = h->reducing_row = ONV_NO_ROW;
    h->bucket_of = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    h->gathered_row = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    h->order = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    h->came = ONV_ARENA_ARRAY(&s->arena, uint32_t, n);
    h->has_come = ONV_ARENA_ARRAY(&s->arena, bool, n);
    if (s->arena.failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < n; i++) h->gathered_row[i] = h->bucket_of[i] = ONV_NO_ROW;
    return is_fsdp(s) ? make_units(s, err) : ONV_OK;
}

/* --- Buffers that are counted ------------------------------------------------------------------ */

static void let_go(onv_simulation *s, uint32_t *row, uint64_t *sum)
{
    if (*row == ONV_NO_ROW || s->failed) return;
    *sum -= onv_sim_bytes(s, *row);
    onv_sim_drop(s, row);
}

static void put_on_stream(onv_simulation *s, uint32_t row, uint8_t stream)
{
    if (row != ONV_NO_ROW && s->meter == NULL) s->timeline->buffers.at[row].stream = stream;
}

static uint32_t take(onv_simulation *s, uint64_t bytes, onv_buffer_kind kind, const char *label,
                     uint64_t *sum, uint64_t *most)
{
    uint32_t row = bytes > 0 ? onv_sim_alloc(s, bytes, kind, label) : ONV_NO_ROW;
    if (row != ONV_NO_ROW) *sum += bytes;
    if (*sum > *most) *most = *sum;
    return row;
}

/* --- FSDP: gathering --------------------------------------------------------------------------- */

static uint32_t take_gathered(onv_simulation *s, uint64_t bytes, const char *label)
{
    return take(s, bytes, ONV_BUFFER_WEIGHT, label, &s->sharding->gathered_bytes,
                &s->program->parts.gathered_bytes);
}

/* From the host, each by itself; casts are made there. */
static void copy_parts(onv_simulation *s, const onv_shard_unit *unit)
{
    for (uint32_t i = 0; i < unit->n_storages && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[unit->storages[i]];
        uint64_t elems = part(s, storage, storage->elems);
        uint32_t wide = ONV_NO_ROW, *row = &s->sharding->gathered_row[unit->storages[i]];
        if (unit->state_bytes != unit->elem_bytes)
            wide = take_gathered(s, elems * unit->state_bytes, "part from the host");
        *row = take_gathered(s, elems * unit->elem_bytes, "part to gather");
        put_on_stream(s, wide, GATHER_STREAM);
        put_on_stream(s, *row, GATHER_STREAM);
        let_go(s, &wide, &s->sharding->gathered_bytes);
    }
}

static void drop_whole(onv_simulation *s, const onv_shard_unit *unit)
{
    for (uint32_t i = 0; i < unit->n_storages; i++)
        let_go(s, &s->sharding->gathered_row[unit->storages[i]], &s->sharding->gathered_bytes);
}

static void unshard(onv_simulation *s, onv_shard_unit *unit, onv_phase phase)
{
    if (unit->is_gathered || unit->gathering_row != ONV_NO_ROW || unit->gather_elems == 0) return;
    onv_sim_step(s, phase, ONV_NO_NODE, "all_gather");
    bool is_offloaded = s->options->offload != ONV_OFFLOAD_NOTHING;
    uint32_t cast = ONV_NO_ROW;
    if (is_offloaded)
        copy_parts(s, unit);
    else if (unit->state_bytes != unit->elem_bytes)
        cast = take_gathered(s, unit->shard_elems * unit->elem_bytes, "part to gather");
    unit->gathering_row =
        take_gathered(s, unit->gather_elems * unit->elem_bytes, "gathered parameters");
    put_on_stream(s, cast, GATHER_STREAM);
    put_on_stream(s, unit->gathering_row, GATHER_STREAM);
    let_go(s, &cast, &s->sharding->gathered_bytes);
    if (is_offloaded) drop_whole(s, unit);
}

static void copy_out(onv_simulation *s, onv_shard_unit *unit, onv_phase phase)
{
    onv_sharding *h = s->sharding;
    if (unit->is_gathered || unit->gather_elems == 0) return;
    if (phase == ONV_PHASE_FORWARD) let_go(s, &h->held_row, &h->gathered_bytes);
    onv_sim_step(s, phase, ONV_NO_NODE, "all_gather_copy_out");
    for (uint32_t i = 0; i < unit->n_storages && !s->failed; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[unit->storages[i]];
        uint64_t bytes = part(s, storage, storage->elems) * s->world * unit->elem_bytes;
        h->gathered_row[unit->storages[i]] = take_gathered(s, bytes, storage->label);
    }
    unit->is_gathered = true;
    if (phase == ONV_PHASE_FORWARD) {
        h->held_row = unit->gathering_row;
        unit->gathering_row = ONV_NO_ROW;
    } else {
        let_go(s, &unit->gathering_row, &h->gathered_bytes);
    }
}

static void reshard(onv_simulation *s, onv_shard_unit *unit)
{
    drop_whole(s, unit);
    unit->is_gathered = false;
}

static void gather(onv_simulation *s, uint32_t index)
{
    onv_shard_unit *unit = &s->sharding->units[index];
    unit->ran = unit->is_reduced = false;
    unshard(s, unit, ONV_PHASE_FORWARD);
    copy_out(s, unit, ONV_PHASE_FORWARD);
}

/* The units before it in the forward pass come next. */
static void pre_backward(onv_simulation *s, uint32_t index)
{
    onv_shard_unit *unit = &s->sharding->units[index];
    if (unit->ran) return;
    unit->ran = true;
    unshard(s, unit, ONV_PHASE_BACKWARD);
    copy_out(s, unit, ONV_PHASE_BACKWARD);
    if (index > 0) unshard(s, &s->sharding->units[index - 1], ONV_PHASE_BACKWARD);
}

/* --- FSDP: reducing ---------------------------------------------------------------------------- */

static uint32_t take_reducing(onv_simulation *s, uint64_t bytes, const char *label)
{
    onv_sim_step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "reduce_scatter");
    return take(s, bytes, ONV_BUFFER_GRADIENT, label, &s->sharding->reduce_bytes,
                &s->program->parts.reduce_bytes);
}

static void reduce(onv_simulation *s, onv_shard_unit *unit)
{
    onv_sharding *h = s->sharding;
    bool any = false;
    let_go(s, &h->reducing_row, &h->reduce_bytes);
    for (uint32_t i = 0; i < unit->n_storages; i++)
        any |= s->grad_row[unit->storages[i]] != ONV_NO_ROW;
    if (!any || s->failed) return;
    uint64_t elem_bytes =
        unit->state_bytes > unit->elem_bytes ? unit->state_bytes : unit->elem_bytes;
    h->reducing_row = take_reducing(s, unit->reduce_elems * elem_bytes, "gradients to reduce");
    for (uint32_t i = 0; i < unit->n_storages; i++)
        onv_sim_drop(s, &s->grad_row[unit->storages[i]]);
    onv_sim_step(s, ONV_PHASE_BACKWARD, ONV_NO_NODE, "reduce_scatter");
    uint32_t reduced = onv_sim_alloc(s, unit->reduce_elems / s->world * elem_bytes,
                                     ONV_BUFFER_GRADIENT, "gradient");
    put_on_stream(s, reduced, REDUCE_STREAM);
    if (unit->grad_row == ONV_NO_ROW && s->options->offload == ONV_OFFLOAD_NOTHING)
        unit->grad_row = reduced;
    else
        onv_sim_release(s, reduced);
}

static void post_backward(onv_simulation *s, onv_shard_unit *unit)
{
    if (unit->is_reduced) return;
    unit->is_reduced = true;
    reshard(s, unit);
    reduce(s, unit);
}

/* --- DDP: buckets ------------------------------------------------------------------------------ */

/* Parameters first to last of the order share a bucket. */
static void make_bucket(onv_simulation *s, uint32_t first, uint32_t last, uint64_t bytes)
{
    onv_sharding *h = s->sharding;
    uint32_t row = onv_sim_alloc(s, bytes, ONV_BUFFER_GRADIENT, "bucket");
    s->program->parts.bucket_bytes += bytes;
    for (uint32_t i = first; i <= last; i++) h->bucket_of[h->order[i]] = row;
}

static void make_buckets(onv_simulation *s, uint64_t first_limit, uint64_t limit)
{
    onv_sharding *h = s->sharding;
    uint64_t bytes = 0, full = first_limit;
    uint32_t first = 0;
    onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "buckets");
    s->program->parts.bucket_bytes = 0;
    for (uint32_t i = 0; i < h->n_order && !s->failed; i++) {
        bytes += s->eager->storages.at[h->order[i]].bytes;
        if (bytes < full && i + 1 < h->n_order) continue;
        make_bucket(s, first, i, bytes);
        first = i + 1;
        bytes = 0;
        full = limit;
    }
}

static void drop_buckets(onv_simulation *s)
{
    const onv_sharding *h = s->sharding;
    uint32_t last = ONV_NO_ROW;
    for (uint32_t i = 0; i < h->n_order && !s->failed; i++) {
        uint32_t row = h->bucket_of[h->order[i]];
        if (row != last) onv_sim_release(s, row);
        last = row;
    }
}

/* What backward did not come to stands last. */
static void take_order(onv_simulation *s)
{
    onv_sharding *h = s->sharding;
    for (uint32_t i = 0; i < h->n_order; i++)
        if (!h->has_come[h->order[i]]) h->came[h->n_came++] = h->order[i];
    memcpy(h->order, h->came, h->n_came * sizeof *h->order);
}

/* A flat copy; at most two are under way. */
static void broadcast(onv_simulation *s, onv_storage_kind first, onv_storage_kind last)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->eager->storages.count; i++) {
        const onv_eager_storage *storage = &s->eager->storages.at[i];
        if (storage->kind < first || storage->kind > last || storage->on_host) continue;
        bytes += storage->bytes;
        if (bytes > UINT64_C(2) * BROADCAST_BYTES) bytes = UINT64_C(2) * BROADCAST_BYTES;
    }
    if (bytes == 0) return;
    onv_sim_step(s, ONV_PHASE_FORWARD, ONV_NO_NODE, "broadcast");
    onv_sim_temporary(s, bytes, "broadcast");
}

static void begin_ddp(onv_simulation *s)
{
    onv_sharding *h = s->sharding;
    if (s->pass > 0) return;
    if (s->iteration == 0) {
        broadcast(s, ONV_STORAGE_PARAMETER, ONV_STORAGE_BUFFER);
        for (uint32_t i = (uint32_t)s->eager->storages.count; i-- > 0;)
            if (s->eager->storages.at[i].trained) h->order[h->n_order++] = i;
        make_buckets(s, UINT64_MAX, UINT64_MAX);
    } else if (s->iteration == 1) {
        drop_buckets(s);
        take_order(s);
        make_buckets(s, FIRST_BUCKET_BYTES, BUCKET_BYTES);
    }
    broadcast(s, ONV_STORAGE_BUFFER, ONV_STORAGE_BUFFER);
}

static void put_into_bucket(onv_simulation *s, uint32_t storage)
{
    onv_sharding *h = s->sharding;
    if (s->iteration == 0 && !h->has_come[storage]) {
        h->has_come[storage] = true;
        h->came[h->n_came++] = storage;
    }
    uint32_t bucket = h->bucket_of[storage], *grad = &s->grad_row[storage];
    if (s->options->parallel != ONV_PARALLEL_DDP_VIEWS || *grad == bucket || s->failed) return;
    onv_sim_release(s, *grad);
    onv_sim_hold(s, bucket);
    *grad = bucket;
}

/* --- When -------------------------------------------------------------------------------------- */

void onv_shard_begin_pass(onv_simulation *s)
{
    if (s->sharding == NULL) return;
    if (is_ddp(s)) begin_ddp(s);
    if (is_fsdp(s)) gather(s, s->sharding->n_units - 1);
}

void onv_shard_before(onv_simulation *s, uint32_t op)
{
    if (!is_fsdp(s)) return;
    uint32_t unit = s->sharding->unit_of[op];
    if (s->sharding->units[unit].first_op == op && unit + 1 < s->sharding->n_units) gather(s, unit);
}

void onv_shard_after(onv_simulation *s, uint32_t op)
{
    if (!is_fsdp(s)) return;
    onv_sharding *h = s->sharding;
    uint32_t unit = h->unit_of[op];
    if (h->units[unit].last_op == op && unit + 1 < h->n_units) reshard(s, &h->units[unit]);
    if (op + 1 == s->eager->first_loss_op) let_go(s, &h->held_row, &h->gathered_bytes);
}

void onv_shard_before_backward(onv_simulation *s, uint32_t op)
{
    if (!is_fsdp(s) || op >= s->eager->first_loss_op) return;
    pre_backward(s, s->sharding->n_units - 1);
    pre_backward(s, s->sharding->unit_of[op]);
}

void onv_shard_after_backward(onv_simulation *s, uint32_t op)
{
    if (!is_fsdp(s)) return;
    onv_shard_unit *unit = &s->sharding->units[s->sharding->unit_of[op]];
    if (unit->takes_grads && unit->first_op == op) post_backward(s, unit);
}

void onv_shard_end_backward(onv_simulation *s)
{
    if (s->sharding == NULL || !is_fsdp(s)) return;
    onv_sharding *h = s->sharding;
    post_backward(s, &h->units[h->n_units - 1]);
    for (uint32_t u = 0; u + 1 < h->n_units; u++) post_backward(s, &h->units[u]);
    let_go(s, &h->reducing_row, &h->reduce_bytes);
    for (uint32_t u = 0; u < h->n_units; u++)
        let_go(s, &h->units[u].gathering_row, &h->gathered_bytes);
}

void onv_shard_take_grad(onv_simulation *s, uint32_t storage)
{
    bool syncs = s->pass + 1 == onv_train_passes(s->options);
    if (s->sharding != NULL && is_ddp(s) && syncs) put_into_bucket(s, storage);
}

void onv_shard_zero_grad(onv_simulation *s)
{
    if (s->sharding == NULL) return;
    for (uint32_t u = 0; u < s->sharding->n_units; u++)
        onv_sim_drop(s, &s->sharding->units[u].grad_row);
}
