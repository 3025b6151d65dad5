#include "infer/driver.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "ir/notes.h"

/* Reshapes are read in other ways while all attempts together infer at most so many nodes. */
enum { MAX_WORK = 1 << 22 };

/* --- Sizes ------------------------------------------------------------------------------------- */

bool onv_rebatch_is_in(const onv_driver *driver, onv_dim d)
{
    return onv_dim_contains(&driver->model->dims, d, driver->rebatch.symbol);
}

onv_dim onv_rebatch_at(const onv_driver *driver, onv_dim d, int64_t times)
{
    int64_t batch;
    if (__builtin_mul_overflow(driver->rebatch.old, times, &batch)) return ONV_DIM_UNKNOWN;
    return onv_dim_substitute(&driver->model->dims, d, driver->rebatch.symbol,
                              onv_dim_const(batch));
}

/* --- Rewrites ---------------------------------------------------------------------------------- */

static onv_known *copy_known(onv_model *model, const onv_known *known)
{
    onv_known *copy = onv_arena_copy(&model->arena, known, sizeof *known);
    if (copy == NULL) return NULL;
    copy->elems = onv_arena_copy(&model->arena, known->elems, known->count * sizeof *known->elems);
    return copy->elems != NULL ? copy : NULL;
}

onv_rewrite *onv_rebatch_find(const onv_rebatch *rebatch, uint32_t node, uint32_t input)
{
    if (rebatch->first == NULL) return NULL;
    for (int32_t i = rebatch->first[node]; i >= 0; i = rebatch->rewrites.at[i].next)
        if (rebatch->rewrites.at[i].input == input) return &rebatch->rewrites.at[i];
    return NULL;
}

onv_rewrite *onv_rebatch_add(onv_driver *driver, uint32_t node, uint32_t input,
                             const onv_known *known)
{
    onv_rebatch *rebatch = &driver->rebatch;
    if (rebatch->first == NULL) {
        size_t n = driver->model->nodes.count;
        rebatch->first = onv_heap_alloc(n * sizeof *rebatch->first);
        if (rebatch->first == NULL) return NULL;
        for (size_t i = 0; i < n; i++) rebatch->first[i] = -1;
    }
    onv_rewrite rewrite = {.node = node,
                           .input = input,
                           .known = copy_known(driver->model, known),
                           .next = rebatch->first[node]};
    if (rewrite.known == NULL || !onv_vec_push(&rebatch->rewrites, rewrite)) return NULL;
    rebatch->first[node] = (int32_t)rebatch->rewrites.count - 1;
    return &rebatch->rewrites.at[rebatch->rewrites.count - 1];
}

/* --- Runs -------------------------------------------------------------------------------------- */

/* A constant that feeds the node directly, for the message. */
static const char *constant_of(const onv_model *model, onv_node_id id)
{
    const onv_node *node = onv_model_node(model, id);
    for (uint32_t k = node->n_inputs; k-- > 0;) {
        const onv_value *value = onv_node_input(model, node, k);
        if (value != NULL && onv_value_is_weight(value)) return value->name;
    }
    return NULL;
}

const char *onv_rebatch_remedy(const onv_driver *driver)
{
    enum { MOST_NAMED = 3 };
    onv_arena *arena = &driver->model->arena;
    const onv_graph *graph = &driver->model->graphs.at[0];
    bool is_newer = driver->rebatch.has_roles;
    const char *open = is_newer ? "torch.export.Dim.DYNAMIC" : "\"batch\"";
    const char *axes = "",
               *names = ""; /* the older exporter opens inputs that it is given names for */
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->n_inputs && n <= MOST_NAMED && axes != NULL && names != NULL;
         i++) {
        const char *name = onv_model_value(driver->model, graph->inputs[i])->name;
        bool is_open = driver->rebatch.has_batch != NULL && driver->rebatch.has_batch[i];
        const char *comma = n++ > 0 ? ", " : "";
        if (n > MOST_NAMED) name = "...";
        names = onv_arena_printf(arena, "%s%s\"%.40s\"", names, comma, name);
        if (is_open && axes != NULL)
            axes = onv_arena_printf(arena, "%s%s\"%.40s\": {0: %s}", axes,
                                    axes[0] != '\0' ? ", " : "", name, open);
    }
    const char *text =
        axes == NULL || names == NULL ? NULL
        : is_newer ? onv_arena_printf(arena, "dynamo=True, dynamic_shapes={%s}", axes)
                   : onv_arena_printf(arena, "input_names=[%s], dynamic_axes={%s}", names, axes);
    return text != NULL ? text : "dynamic_shapes";
}

static onv_status explain(onv_driver *driver, const onv_error *cause)
{
    const char *constant = constant_of(driver->model, driver->failed_node);
    onv_status status = onv_fail(
        driver->err, ONV_ERR_USAGE,
        "the export fixed the batch to %lld and it cannot be changed: "
        "%.120s%s%.60s%s; export with %s, or leave --batch out",
        (long long)driver->rebatch.old, cause->message, constant != NULL ? " (constant '" : "",
        constant != NULL ? constant : "", constant != NULL ? "')" : "", onv_rebatch_remedy(driver));
    onv_error_at(driver->err, cause->node, cause->op_type);
    return status;
}

static bool has_roles(const onv_model *model)
{
    for (size_t i = 0; i < model->nodes.count; i++)
        if (onv_node_is_noted(&model->nodes.at[i])) return true;
    return false;
}

/* The inputs whose first dim is the batch. */
static onv_status find_inputs(onv_driver *driver)
{
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    bool *has_batch = ONV_ARENA_ARRAY(&driver->model->arena, bool, graph->n_inputs);
    if (has_batch == NULL) return onv_fail_memory(driver->err);
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const onv_type *type = &onv_model_value(driver->model, graph->inputs[i])->type;
        has_batch[i] = onv_type_has_rank(type) && type->rank > 0 &&
                       onv_dim_same(type->dims[0], driver->rebatch.symbol);
    }
    driver->rebatch.has_batch = has_batch;
    return ONV_OK;
}

/* Gives them the batch: the symbol while constants are looked for, the number afterwards. */
static onv_status set_batch(onv_driver *driver, onv_dim batch)
{
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        if (!driver->rebatch.has_batch[i]) continue;
        onv_type *type = &onv_model_value(driver->model, graph->inputs[i])->type;
        if (!onv_type_set_dim(type, &driver->model->arena, 0, batch))
            return onv_fail_memory(driver->err);
    }
    return onv_rebatch_size_constants(driver, batch);
}

static onv_status bind_rewrites(onv_driver *driver, onv_dim batch)
{
    onv_rebatch *rebatch = &driver->rebatch;
    for (size_t i = 0; i < rebatch->rewrites.count; i++) {
        onv_rewrite *rewrite = &rebatch->rewrites.at[i];
        rewrite->bound = copy_known(driver->model, rewrite->known);
        if (rewrite->bound == NULL) return onv_fail_memory(driver->err);
        for (uint32_t e = 0; e < rewrite->bound->count; e++) {
            onv_dim *entry = &rewrite->bound->elems[e].i;
            *entry = onv_dim_substitute(&driver->model->dims, *entry, rebatch->symbol, batch);
        }
    }
    return ONV_OK;
}

/* As if inference had failed there, so that a constant upstream is looked for. */
static onv_status disbelieve(onv_driver *driver, onv_doubt found)
{
    if (!onv_is_node(found.node))
        return onv_fail(
            driver->err, ONV_ERR_USAGE,
            "the export fixed the batch to %lld and it cannot be changed: a result of "
            "the network is a constant of that batch; export with %s, or leave --batch out",
            (long long)driver->rebatch.old, onv_rebatch_remedy(driver));
    const onv_node *node = onv_model_node(driver->model, found.node);
    driver->failed_node = found.node;
    onv_status status = onv_fail(driver->err, ONV_ERR_MODEL, "%s", found.why);
    onv_error_at(driver->err, node->name, node->op_type);
    return status;
}

/* One run with the symbol, which finds Reshapes, and one with the number. */
static onv_status attempt(onv_driver *driver)
{
    const onv_graph_id main_graph = {0};
    onv_dim batch = onv_dim_const(driver->options->batch), symbol = driver->rebatch.symbol;
    size_t n_diags = driver->model->diags.count;
    driver->runs = 0;
    driver->failed_node = ONV_NO_NODE;
    driver->rebatch.is_unlikely = false;
    driver->rebatch.active = true;
    onv_status status = onv_driver_run_graph(driver, main_graph);
    onv_arena_reset(&driver->scratch);
    driver->rebatch.active = false;
    driver->model->diags.count = n_diags; /* the run with the number says them again */
    driver->unknown_ops.count = 0;
    if (status == ONV_OK) {
        onv_doubt found;
        ONV_TRY(onv_rebatch_doubt(driver, &found));
        if (found.why == NULL) ONV_TRY(onv_rebatch_note(driver));
        ONV_TRY(set_batch(driver, batch));
        ONV_TRY(bind_rewrites(driver, batch));
        status = onv_driver_run_graph(driver, main_graph);
        onv_arena_reset(&driver->scratch);
        if (status == ONV_OK && found.why == NULL) return ONV_OK;
        if (status == ONV_OK)
            status = disbelieve(driver, found);
        else
            driver->rebatch.is_unlikely = false;
        driver->model->diags.count = n_diags;
        driver->unknown_ops.count = 0;
        ONV_TRY(set_batch(driver, symbol));
    }
    return status;
}

/* How far a batch was filled up is a matter of the network's code, not of a shape upstream. */
static bool is_pad(const onv_driver *driver)
{
    return onv_model_node(driver->model, driver->failed_node)->code == ONV_OP_Pad;
}

/* Attempts until one succeeds or nothing is left to change; then the cause is that of the first. */
static onv_status attempts(onv_driver *driver, onv_error *cause, bool *saw_unlikely)
{
    onv_status status;
    onv_error *report = driver->err;
    onv_node_id first = ONV_NO_NODE;
    uint64_t work = 0;
    bool changed;
    do {
        onv_error error = {0};
        changed = false;
        /* cppcheck-suppress autoVariables ; set back below */
        driver->err = &error;
        status = attempt(driver);
        work += driver->runs;
        if (driver->rebatch.is_unlikely) *saw_unlikely = true;
        if (status == ONV_ERR_MODEL && onv_is_node(driver->failed_node)) {
            onv_node_id failed = driver->failed_node;
            if (!is_pad(driver) && work <= MAX_WORK) {
                onv_status search = onv_rebatch_change_upstream(driver, &changed);
                if (search != ONV_OK) status = search;
            }
            if (onv_is_node(first)) continue;
            first = failed;
        }
        *cause = error;
    } while (changed);
    driver->err = report;
    if (status == ONV_ERR_MODEL && onv_is_node(first)) driver->failed_node = first;
    return status;
}

/* Without what the attempts before changed. */
static void start_anew(onv_driver *driver)
{
    onv_rebatch_restore_constants(driver);
    onv_rebatch_cleanup(&driver->rebatch);
}

/* Sizes that grow with the square of the batch are seldom meant (a contrastive loss), and so are results of
 * one sample with the batch inside: first without. */
static onv_status attempt_both(onv_driver *driver, onv_error *cause)
{
    onv_rebatch *rebatch = &driver->rebatch;
    bool saw_unlikely = false;
    rebatch->is_strict = true;
    onv_status status = attempts(driver, cause, &saw_unlikely);
    rebatch->is_strict = false;
    if (status != ONV_ERR_MODEL || !saw_unlikely) return status;
    start_anew(driver);
    return attempts(driver, cause, &saw_unlikely);
}

/* As before, and with constants that may be resized. The cause stays that of before where it fails too. */
static onv_status attempt_resizing(onv_driver *driver, onv_error *cause)
{
    onv_error other = {0};
    onv_node_id failed = driver->failed_node;
    start_anew(driver);
    driver->rebatch.may_resize = true;
    driver->branches_must_fit = true;
    onv_status status = attempt_both(driver, &other);
    driver->branches_must_fit = false;
    if (status == ONV_ERR_MODEL)
        driver->failed_node = failed;
    else
        *cause = other;
    return status;
}

onv_status onv_rebatch_run(onv_driver *driver)
{
    onv_error *report = driver->err;
    onv_error cause = {0};
    ONV_TRY(find_inputs(driver));
    driver->rebatch.has_roles = has_roles(driver->model);
    driver->branches_must_fit = true;
    onv_status status = attempt_both(driver, &cause);
    driver->branches_must_fit = false;
    if (status == ONV_ERR_MODEL && driver->model->graphs.count > 1) {
        /* Nothing is left to change: a branch may be impossible with that batch. */
        onv_error other = {0};
        onv_node_id failed = driver->failed_node;
        driver->err = &other;
        onv_status second = attempt(driver);
        if (second != ONV_ERR_MODEL) {
            status = second;
            cause = other;
        } else {
            driver->failed_node = failed;
        }
    }
    if (status == ONV_ERR_MODEL && onv_is_node(driver->failed_node))
        status = attempt_resizing(driver, &cause);
    driver->err = report;
    if (status == ONV_ERR_MODEL && onv_is_node(driver->failed_node)) return explain(driver, &cause);
    if (status != ONV_OK) *report = cause;
    return status;
}

void onv_rebatch_cleanup(onv_rebatch *rebatch)
{
    onv_vec_cleanup(&rebatch->rewrites);
    onv_heap_free(rebatch->first);
    rebatch->first = NULL;
    onv_vec_cleanup(&rebatch->resized);
    onv_vec_cleanup(&rebatch->notes);
}
