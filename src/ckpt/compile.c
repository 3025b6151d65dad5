#include "ckpt/compile.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "ckpt/compile_memory.h"
#include "lower/lower.h"

struct onv_compiling {
    onv_model *model;
    onv_eager eager; /* as lowered */
    onv_joint joint;
    onv_arena arena; /* of the joint graph */
};

/* One budget. */
typedef struct job {
    onv_model *model;
    const onv_eager *eager;
    const onv_joint *joint;
    onv_partition partition;
    onv_arena arena;
    onv_eager changed;  /* with what the partition keeps; shares all but operations and storages */
    uint32_t *last_use; /* by storage: the last operation of forward that touches it */
    uint32_t *keeper;   /* by node that is a base and saved: the operation that keeps it */
    uint32_t *storage;  /* likewise */
    onv_layout_copies copies;
    onv_compiled *result;
} job;

/* --- Who keeps what ---------------------------------------------------------------------------- */

/* The operations' lists of what they keep; those of the loss stay. */
static onv_status copy_tape(job *j, onv_error *err)
{
    j->changed = *j->eager;
    j->changed.ops.at =
        onv_heap_copy(j->eager->ops.at, j->eager->ops.count * sizeof *j->changed.ops.at);
    j->changed.ops.capacity = j->eager->ops.count;
    j->changed.storages.at = onv_heap_copy(
        j->eager->storages.at, j->eager->storages.count * sizeof *j->changed.storages.at);
    j->changed.storages.capacity = j->eager->storages.count;
    if (j->changed.ops.at == NULL || j->changed.storages.at == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < j->eager->first_loss_op; i++) j->changed.ops.at[i].n_saved = 0;
    return ONV_OK;
}

static onv_status find_last_uses(job *j, onv_error *err)
{
    const onv_eager *e = j->eager;
    j->last_use = ONV_ARENA_ARRAY(&j->arena, uint32_t, e->storages.count);
    j->keeper = ONV_ARENA_ARRAY(&j->arena, uint32_t, j->joint->nodes.count);
    j->storage = ONV_ARENA_ARRAY(&j->arena, uint32_t, j->joint->nodes.count);
    if (j->arena.failed) return onv_fail_memory(err);
    for (uint32_t i = 0; i < e->ops.count; i++) {
        const onv_eager_op *op = &e->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++)
            j->last_use[e->tensors.at[op->in[k].tensor].storage] = i;
        for (uint32_t k = 0; k < op->n_out; k++) j->last_use[e->tensors.at[op->out[k]].storage] = i;
    }
    for (size_t i = 0; i < j->joint->nodes.count; i++) j->keeper[i] = ONV_JOINT_NONE;
    return ONV_OK;
}

/* The last operation whose backward lets the value go: that of `last_read`, or one before it that has a
 * backward and still finds the value, which is made by operation `maker` and in memory until `until`. */
static uint32_t choose_keeper(const job *j, uint32_t maker, uint32_t until, uint32_t last_read)
{
    uint32_t op = last_read < until ? last_read : until;
    while (op > maker && !j->eager->ops.at[op].has_backward) op--;
    return j->eager->ops.at[op].has_backward ? op : ONV_JOINT_NONE;
}

/* In memory of its own, which is made for it alone. */
static onv_status keep_extra(job *j, uint32_t base, uint32_t last_read, onv_error *err)
{
    const onv_joint_node *node = &j->joint->nodes.at[base];
    onv_eager_storage extra = {.bytes = node->bytes,
                               .kind = ONV_STORAGE_EXTRA,
                               .becomes = UINT32_MAX,
                               .value = ONV_NO_VALUE,
                               .label = j->eager->ops.at[node->op].name};
    j->keeper[base] = choose_keeper(j, node->op, node->op, node->op);
    if (j->keeper[base] == ONV_JOINT_NONE) j->keeper[base] = last_read;
    j->storage[base] = (uint32_t)j->changed.storages.count;
    return onv_vec_push(&j->changed.storages, extra) ? ONV_OK : onv_fail_memory(err);
}

static onv_status keep(job *j, uint32_t node, onv_error *err)
{
    uint32_t base = j->joint->nodes.at[node].base, last_read = j->partition.last_read[node];
    const onv_joint_node *b = &j->joint->nodes.at[base];
    if (b->is_free || last_read == ONV_JOINT_NONE) return ONV_OK;
    if (b->tensor == ONV_NO_TENSOR) {
        if (j->keeper[base] != ONV_JOINT_NONE) return ONV_OK;
        return keep_extra(j, base, last_read, err);
    }
    uint32_t storage = j->eager->tensors.at[b->tensor].storage;
    uint32_t keeper = last_read;
    if (b->kind != ONV_JOINT_PRIMAL)
        keeper = choose_keeper(j, b->op, j->last_use[storage], last_read);
    if (keeper == ONV_JOINT_NONE) {
        if (j->keeper[base] != ONV_JOINT_NONE) return ONV_OK;
        return keep_extra(j, base, last_read, err);
    }
    if (j->keeper[base] == ONV_JOINT_NONE || keeper < j->keeper[base]) j->keeper[base] = keeper;
    j->storage[base] = storage;
    return ONV_OK;
}

/* Each convolution keeps its own. */
static onv_status add_copies(job *j, onv_error *err)
{
    for (uint32_t i = 0; i < j->eager->first_loss_op; i++) {
        onv_eager_op *op = &j->changed.ops.at[i];
        if (j->copies.bytes[i] == 0) continue;
        onv_eager_storage copy = {.bytes = j->copies.bytes[i],
                                  .kind = ONV_STORAGE_EXTRA,
                                  .becomes = UINT32_MAX,
                                  .value = ONV_NO_VALUE,
                                  .label = "channels last"};
        op->saved[op->n_saved++] = (uint32_t)j->changed.storages.count;
        if (!onv_vec_push(&j->changed.storages, copy)) return onv_fail_memory(err);
    }
    return ONV_OK;
}

/* Writes down, by operation, what it keeps. */
static onv_status list_kept(job *j, onv_error *err)
{
    size_t n = j->joint->nodes.count;
    uint32_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (j->keeper[i] == ONV_JOINT_NONE) continue;
        j->changed.ops.at[j->keeper[i]].n_saved++;
        n_kept++;
    }
    n_kept += j->copies.count;
    uint32_t *all = ONV_ARENA_ARRAY(&j->arena, uint32_t, n_kept);
    if (all == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0, at = 0; i < j->eager->first_loss_op; i++) {
        onv_eager_op *op = &j->changed.ops.at[i];
        op->saved = &all[at];
        at += op->n_saved + (j->copies.bytes[i] > 0);
        op->n_saved = 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (j->keeper[i] == ONV_JOINT_NONE) continue;
        onv_eager_op *op = &j->changed.ops.at[j->keeper[i]];
        op->saved[op->n_saved++] = j->storage[i];
    }
    return add_copies(j, err);
}

static onv_status list_saved(job *j, onv_error *err)
{
    onv_compiled *result = j->result;
    size_t n = j->joint->nodes.count;
    for (size_t i = 0; i < n; i++) result->n_saved += j->keeper[i] != ONV_JOINT_NONE;
    onv_compiled_tensor *saved =
        ONV_ARENA_ARRAY(&j->model->arena, onv_compiled_tensor, result->n_saved);
    if (saved == NULL) return onv_fail_memory(err);
    result->saved = saved;
    for (size_t i = 0; i < n; i++) {
        const onv_joint_node *node = &j->joint->nodes.at[i];
        if (j->keeper[i] == ONV_JOINT_NONE) continue;
        const onv_eager_op *op = node->op != ONV_JOINT_NONE ? &j->eager->ops.at[node->op] : NULL;
        *saved++ = (onv_compiled_tensor){
            .bytes = node->bytes,
            .operation = op != NULL ? op->name : NULL,
            .node = op != NULL ? op->node : ONV_NO_NODE,
            .value = j->changed.storages.at[j->storage[i]].value,
        };
    }
    return ONV_OK;
}

/* --- The figures ------------------------------------------------------------------------------- */

static onv_status build(job *j, const onv_train_options *options, onv_train_program *program,
                        onv_error *err)
{
    onv_compiled *result = j->result;
    onv_peak peak;
    ONV_TRY(onv_train_program_build(j->model, &j->changed, options, program, err));
    onv_status status =
        onv_compile_add_again(&j->changed, j->joint, &j->partition, &program->timeline, err);
    if (status == ONV_OK) status = onv_compile_order_products(&program->timeline, err);
    if (status == ONV_OK) status = onv_train_program_check(program, err);
    if (status == ONV_OK)
        status = onv_timeline_peak_without(&program->timeline, ONV_BUFFERS_BESIDE_TENSORS, &peak,
                                           NULL, err);
    if (status == ONV_OK) {
        result->peak_bytes = peak.bytes;
        program->saved_bytes -= j->copies.total_bytes;
        program->recomputed_macs = j->partition.recomputed_macs;
        result->saved_activation_bytes = program->saved_bytes;
        result->recomputed_macs = program->recomputed_macs;
        if (!onv_u64_mul(program->forward_macs, 3, &result->pass_macs))
            result->pass_macs = UINT64_MAX;
        return ONV_OK;
    }
    onv_train_program_cleanup(program);
    return status;
}

static onv_status divide(job *j, const onv_train_options *options, onv_train_program *program,
                         onv_error *err)
{
    ONV_TRY(onv_partition_make(j->joint, j->result->budget, &j->arena, &j->partition, err));
    ONV_TRY(onv_layout_copies_find(j->eager, j->joint, &j->partition, &j->arena, &j->copies, err));
    ONV_TRY(copy_tape(j, err));
    ONV_TRY(find_last_uses(j, err));
    for (uint32_t i = 0; i < j->joint->nodes.count; i++)
        if (j->partition.is_saved[i]) ONV_TRY(keep(j, i, err));
    ONV_TRY(list_kept(j, err));
    ONV_TRY(list_saved(j, err));
    return build(j, options, program, err);
}

onv_status onv_compiling_build(onv_compiling *compiling, double budget,
                               const onv_train_options *options, onv_train_program *program,
                               const onv_compiled **result, onv_error *err)
{
    onv_train_options how = *options;
    job j = {.model = compiling->model, .eager = &compiling->eager, .joint = &compiling->joint};
    j.result = ONV_ARENA_ARRAY(&compiling->model->arena, onv_compiled, 1);
    if (j.result == NULL) return onv_fail_memory(err);
    j.result->budget = budget;
    how.segments = NULL;
    how.n_segments = 0;
    onv_arena_init(&j.arena, SIZE_MAX);
    onv_status status = divide(&j, &how, program, err);
    onv_arena_cleanup(&j.arena);
    onv_vec_cleanup(&j.changed.ops);
    onv_vec_cleanup(&j.changed.storages);
    if (status == ONV_OK) *result = j.result;
    return status;
}

/* --- The network ------------------------------------------------------------------------------- */

static void warn(const onv_compiling *c)
{
    if (c->joint.n_unknown == 0) return;
    onv_model_diag(c->model, ONV_WARNING, "compile-unknown", NULL,
                   "what torch.compile makes of %u operations (first: %s) is not known: they are "
                   "taken for kernels of their own, which keep what eager PyTorch keeps",
                   (unsigned)c->joint.n_unknown, c->joint.unknown);
}

onv_status onv_compiling_open(onv_model *model, const onv_live *live, const bool *is_host,
                              const onv_train_options *options, onv_compiling **compiling,
                              onv_error *err)
{
    onv_lower_options lower = options->lower;
    onv_compiling *c = onv_heap_calloc(1, sizeof *c);
    if (c == NULL) return onv_fail_memory(err);
    c->model = model;
    /* AOTAutograd makes operations that work in place into those that do not. */
    lower.no_inplace = true;
    lower.is_traced = true;
    lower.reports = false;
    onv_status status = onv_eager_lower(model, live, is_host, &lower, &c->eager, err);
    if (status != ONV_OK) {
        onv_heap_free(c);
        return status;
    }
    onv_arena_init(&c->arena, SIZE_MAX);
    status = onv_eager_check(&c->eager, err);
    if (status == ONV_OK) status = onv_joint_make(&c->eager, &c->arena, &c->joint, err);
    if (status != ONV_OK) {
        onv_compiling_close(c);
        return status;
    }
    warn(c);
    *compiling = c;
    return ONV_OK;
}

void onv_compiling_close(onv_compiling *c)
{
    if (c == NULL) return;
    onv_joint_cleanup(&c->joint);
    onv_arena_cleanup(&c->arena);
    onv_eager_cleanup(&c->eager);
    onv_heap_free(c);
}
