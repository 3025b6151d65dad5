#include "ckpt/training.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "ckpt/figures.h"
#include "ckpt/plan_names.h"
#include "ckpt/shard_units.h"
#include "ckpt/warnings.h"
#include "graph/storage.h"
#include "lower/lower.h"

/* A plan that changes nothing is training without plans. */
static bool is_empty(const onv_ckpt_plan *plan)
{
    return plan->n_segments == 0 && plan->offload_until == 0 && !plan->saves_on_cpu &&
           !plan->compiles;
}

/* How a plan is measured. */
static void take_plan(const onv_network *trained, const onv_training_options *options,
                      const onv_ckpt_plan *plan, onv_network *n, onv_training_options *how)
{
    *n = *trained;
    *how = *options;
    if (!plan->compiles) n->compiling = NULL;
    n->budget = plan->memory_budget;
    how->train.units = n->units;
    how->train.n_units = n->n_units;
    if (options->is_probe) how->train.lower.cuda.choice = ONV_WORKSPACE_MOST;
    onv_ckpt_apply(plan, &how->train);
}

/* What is empty was measured, unless somebody wants its timeline. */
static onv_status measure_plan(const onv_network *trained, const onv_training_options *options,
                               const onv_ckpt_plan *from, const onv_training_figures *plain,
                               onv_training_plan *plan, onv_error *err)
{
    onv_training_options how;
    onv_network n;
    onv_status status = ONV_OK;
    bool with_ends = options->room_bytes > 0 && (!options->is_probe || options->known != NULL);
    *plan = (onv_training_plan){.does = *from};
    take_plan(trained, options, from, &n, &how);
    plan->figures = *plain;
    if (!is_empty(from) || options->take != NULL)
        status = onv_figures_measure(&n, &how, from->name, with_ends, &plan->figures, err);
    else if (with_ends)
        status = onv_figures_find_ends(&n, &how, false, &plan->figures, err);
    if (!onv_u64_mul(plan->figures.forward_macs, 3, &plan->pass_macs)) plan->pass_macs = UINT64_MAX;
    return status;
}

/* Makes a plan the one that the figures are of. */
static void choose_plan(onv_training *result, uint32_t plan)
{
    result->figures = result->plans[plan].figures;
    result->chosen = plan;
}

/* All figures of the plan that was chosen, and its timeline in place of that of training without plans. */
static onv_status measure_chosen(const onv_network *trained, const onv_training_options *options,
                                 const onv_ckpt_plan *from, onv_training *result, onv_error *err)
{
    onv_training_options how;
    onv_network n;
    onv_timeline timeline = {0};
    if (is_empty(from) || options->is_probe) return ONV_OK;
    take_plan(trained, options, from, &n, &how);
    how.take = NULL;
    onv_training_figures *figures = &result->plans[result->chosen].figures;
    const onv_training_figures row = *figures;
    ONV_TRY(onv_figures_of_program(&n, &how, from->name, figures, NULL,
                                   options->keeps_timeline ? &timeline : NULL, err));
    onv_status status = ONV_OK;
    if (row.held_ends[1] > 0) {
        memcpy(figures->held_ends, row.held_ends, sizeof row.held_ends);
        memcpy(figures->allocated_ends, row.allocated_ends, sizeof row.allocated_ends);
        figures->release = row.release;
    } else {
        status = onv_figures_find_ends(&n, &how, false, figures, err);
    }
    if (status != ONV_OK) {
        onv_timeline_cleanup(&timeline);
        return status;
    }
    choose_plan(result, result->chosen);
    onv_timeline_cleanup(&result->timeline);
    result->timeline = timeline;
    return ONV_OK;
}

/* The plans that are measured: rows of the result, and what each is of. */
typedef struct measured {
    const onv_network *n, *plain;
    const onv_training_options *options;
    onv_training_figures without;
    onv_training *result;
    const onv_ckpt_plan **from;
    uint32_t count; /* so far; the result has those that will be */
} measured;

enum { MOST_REFINED = 32 };

static onv_status begin_plans(measured *m, size_t count, onv_error *err)
{
    onv_arena *arena = &m->n->model->arena;
    m->without = m->result->figures;
    m->without.release = m->result->release;
    memset(m->without.held_ends, 0, sizeof m->without.held_ends); /* those with names of Python */
    memset(m->without.allocated_ends, 0, sizeof m->without.allocated_ends);
    m->from = ONV_ARENA_ARRAY(arena, const onv_ckpt_plan *, count + MOST_REFINED);
    m->result->plans = ONV_ARENA_ARRAY(arena, onv_training_plan, count + MOST_REFINED);
    /* The arena is the model's: it may have failed for somebody else before. */
    return m->from != NULL && m->result->plans != NULL ? ONV_OK : onv_fail_memory(err);
}

static uint64_t price_of(const onv_ckpt_plan *plan)
{
    return onv_ckpt_price(plan->recomputed_macs, plan->moved_bytes);
}

/* A probe asks whether any plan fits: of those that may be chosen, since the most that cuDNN may take fits, less of it is to
 * fit, too. */
static onv_status confirm(const measured *m, const onv_ckpt_plan *from, uint32_t row,
                          onv_error *err)
{
    const onv_training_options *options = m->options;
    const onv_training *result = m->result;
    onv_training_figures *figures = &result->plans[row].figures;
    onv_training_options how;
    onv_network n;
    if (!options->is_probe || options->known != NULL || options->room_bytes == 0 ||
        !onv_figures_fit(options, figures) ||
        (result->plan_fits && price_of(from) > price_of(m->from[result->chosen])))
        return ONV_OK;
    take_plan(is_empty(from) ? m->plain : m->n, options, from, &n, &how);
    return onv_figures_find_ends(&n, &how, false, figures, err);
}

/* As the next row. `*is_preferred`: to all rows before. */
static onv_status add_plan(measured *m, const onv_ckpt_plan *from, bool *is_preferred,
                           onv_error *err)
{
    const onv_training_options *options = m->options;
    onv_training *result = m->result;
    uint32_t row = m->count++, selected = row;
    if (m->count > result->n_plans) result->n_plans = m->count;
    m->from[row] = from;
    if (options->taken_plan != NULL) *options->taken_plan = row;
    ONV_TRY(measure_plan(is_empty(from) ? m->plain : m->n, options, from, &m->without,
                         &result->plans[row], err));
    ONV_TRY(confirm(m, from, row, err));
    if (options->prefer != NULL)
        return options->prefer(options->prefer_context, result, row, is_preferred, err);
    if (options->select == NULL || result->chosen == ONV_NO_PLAN) return ONV_OK;
    ONV_TRY(onv_plans_name(m->n->model, m->n->eager, result, err));
    ONV_TRY(options->select(options->select_context, result, &selected, err));
    *is_preferred = selected == row;
    return ONV_OK;
}

static onv_status add_plans(measured *m, const onv_ckpt_plan *at, size_t count, onv_error *err)
{
    ONV_TRY(begin_plans(m, count, err));
    m->result->n_plans = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        bool is_preferred = count == 1;
        ONV_TRY(add_plan(m, &at[i], &is_preferred, err));
        if (is_preferred) m->result->chosen = (uint32_t)i;
    }
    return ONV_OK;
}

/* Plans of a tape with other operations, by the names of their places. */
static onv_status add_known(measured *m, const onv_known_plans *known, onv_error *err)
{
    onv_arena *arena = &m->n->model->arena;
    onv_places places = {.is_told = false};
    if (known->n_ops == m->n->eager->ops.count) return add_plans(m, known->at, known->count, err);
    onv_ckpt_plan *plans = ONV_ARENA_ARRAY(arena, onv_ckpt_plan, known->count);
    bool *is_missing = ONV_ARENA_ARRAY(arena, bool, known->count), is_preferred;
    if (plans == NULL || is_missing == NULL) return onv_fail_memory(err);
    onv_status status = onv_places_find(m->n->model, m->n->eager, arena, &places, err);
    if (status == ONV_OK)
        status = onv_plans_resolve(&places, known->texts, known->count, plans, is_missing, err);
    onv_places_cleanup(&places);
    if (status == ONV_OK) status = begin_plans(m, known->count, err);
    m->result->n_plans = status == ONV_OK ? known->count : 0;
    for (uint32_t i = 0; i < known->count && status == ONV_OK; i++) {
        const onv_plan_text *text = &known->texts[i];
        is_missing[i] |= text->form == ONV_PLAN_SEQUENTIAL || text->save != NULL;
        if (is_missing[i])
            m->result->plans[m->count++].is_missing = true;
        else
            status = add_plan(m, &plans[i], &is_preferred, err);
    }
    return status;
}

static int compare_prices(const void *a, const void *b)
{
    uint64_t x = price_of(*(const onv_ckpt_plan *const *)a),
             y = price_of(*(const onv_ckpt_plan *const *)b);
    return (x > y) - (x < y);
}

/* Between the row that is chosen and the next one that costs less (or more), which is none to choose: those that were left out
 * of the list. `at`: room for them, by price. */
static size_t list_between(const measured *m, const onv_ckpt_plans *made, bool less,
                           const onv_ckpt_plan **at)
{
    uint64_t price = price_of(m->from[m->result->chosen]), end = less ? 0 : UINT64_MAX;
    size_t n = 0;
    for (uint32_t i = 0; i < m->result->n_plans; i++) {
        uint64_t other = price_of(m->from[i]);
        if (less ? other < price && other > end : other > price && other < end) end = other;
    }
    for (size_t i = 0; i < made->spare.count; i++) {
        uint64_t other = price_of(&made->spare.at[i]);
        bool is_between = less ? other < price && other > end : other > price && other < end;
        if (is_between) at[n++] = &made->spare.at[i];
    }
    if (n > 1) qsort(at, n, sizeof *at, compare_prices);
    return n;
}

/* What is chosen of a list stands between two plans of it; those that were left out there are searched by halving. */
static onv_status refine(measured *m, const onv_ckpt_plans *made, bool less, onv_error *err)
{
    const onv_ckpt_plan **at =
        ONV_ARENA_ARRAY(&m->n->model->arena, const onv_ckpt_plan *, made->spare.count + 1);
    if (at == NULL) return onv_fail_memory(err);
    size_t low = 0, high = list_between(m, made, less, at);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool is_preferred = false;
        ONV_TRY(add_plan(m, at[middle], &is_preferred, err));
        if (is_preferred) m->result->chosen = m->count - 1;
        *(is_preferred == less ? &high : &low) = is_preferred == less ? middle : middle + 1;
    }
    return ONV_OK;
}

/* Rows behind the first `count` go to the others of their item, by peak. */
static void sort_rows(measured *m, size_t count)
{
    onv_training *result = m->result;
    for (uint32_t i = (uint32_t)count; i < result->n_plans; i++) {
        onv_training_plan row = result->plans[i];
        const onv_ckpt_plan *from = m->from[i], *chosen = m->from[result->chosen];
        uint32_t at = i;
        for (; at > 0; at--) {
            const onv_training_plan *before = &result->plans[at - 1];
            if (before->does.item < row.does.item ||
                (before->does.item == row.does.item &&
                 before->figures.peak_bytes >= row.figures.peak_bytes))
                break;
            result->plans[at] = *before;
            m->from[at] = m->from[at - 1];
        }
        result->plans[at] = row;
        m->from[at] = from;
        for (uint32_t k = 0; k <= i; k++)
            if (m->from[k] == chosen) result->chosen = k;
    }
}

/* Each with the allocator. */
static onv_status measure_plans(measured *m, const onv_ckpt_plans *made, onv_error *err)
{
    onv_training *result = m->result;
    ONV_TRY(add_plans(m, made->at.at, made->at.count, err));
    if (result->chosen == ONV_NO_PLAN) return ONV_OK;
    if (result->plan_fits && m->options->take == NULL) ONV_TRY(refine(m, made, true, err));
    sort_rows(m, made->at.count);
    choose_plan(result, result->chosen);
    return measure_chosen(m->n, m->options, m->from[result->chosen], result, err);
}

/* One of those that were made, by the figures of all. */
static onv_status select_plan(const measured *measured_as, const onv_ckpt_plans *made,
                              const onv_ckpt_plan **at, onv_error *err)
{
    measured m = *measured_as;
    onv_training_options how = *m.options;
    onv_training all = *m.result;
    how.take = NULL;
    how.prefer = NULL;
    how.taken_plan = NULL;
    m.options = &how;
    m.result = &all;
    ONV_TRY(add_plans(&m, made->at.at, made->at.count, err));
    ONV_TRY(onv_plans_name(m.n->model, m.n->eager, &all, err));
    ONV_TRY(how.select(how.select_context, &all, &all.chosen, err));
    ONV_TRY(refine(&m, made, true, err));
    ONV_TRY(refine(&m, made, false, err));
    *at = m.from[all.chosen];
    return ONV_OK;
}

/* A probe asks what fits: a plan that asks for more than there is does not. The smallest one stays. */
static void drop_hopeless(onv_ckpt_plans *made, uint64_t room_bytes)
{
    size_t n = 0, count = made->at.count;
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || made->at.at[i].requested_bytes <= room_bytes)
            made->at.at[n++] = made->at.at[i];
    made->at.count = n;
}

static onv_status make_plans(measured *m, onv_error *err)
{
    const onv_network *n = m->n;
    const onv_training_options *options = m->options;
    onv_ckpt_plans made;
    const onv_ckpt_plan *selected = NULL;
    bool is_chosen = options->select != NULL || options->room_bytes > 0;
    onv_ckpt_wanted wanted = {options->checkpoint, options->plan, is_chosen};
    ONV_TRY(onv_ckpt_make(n->model, n->eager, n->pricing, n->compiling, &options->train, wanted,
                          &made, err));
    if (options->is_probe && options->room_bytes > 0) drop_hopeless(&made, options->room_bytes);
    onv_ckpt_plans one = {0};
    onv_status status = ONV_OK;
    if (options->select != NULL) status = select_plan(m, &made, &selected, err);
    if (selected != NULL && !onv_vec_push(&one.at, *selected)) status = onv_fail_memory(err);
    if (status == ONV_OK) status = measure_plans(m, selected != NULL ? &one : &made, err);
    onv_ckpt_plans_cleanup(&one);
    onv_ckpt_plans_cleanup(&made);
    if (status == ONV_OK) status = onv_plans_name(n->model, n->eager, m->result, err);
    if (status == ONV_OK && options->train.parallel == ONV_PARALLEL_FSDP)
        onv_training_warn_of_shards(n->model, m->result);
    return status;
}

static onv_status compute_plans(onv_network *n, const onv_network *plain,
                                const onv_training_options *options, onv_training *result,
                                onv_error *err)
{
    measured m = {.n = n, .plain = plain, .options = options, .result = result};
    result->n_plan_ops = (uint32_t)n->eager->ops.count;
    ONV_TRY(onv_pricing_open(n->model, n->eager, &options->train, &n->pricing, err));
    onv_status status =
        options->known != NULL ? add_known(&m, options->known, err) : make_plans(&m, err);
    onv_pricing_close(n->pricing);
    return status;
}

uint64_t onv_training_plan_price(const onv_training_plan *plan)
{
    uint64_t moved;
    if (!onv_u64_add(plan->figures.offloaded_bytes, plan->figures.returned_bytes, &moved))
        moved = UINT64_MAX;
    return onv_ckpt_price(plan->does.recomputed_macs, moved);
}

static void widen(onv_training *result, const onv_training_figures *end)
{
    if (end->peak_bytes > result->most.peak_bytes) result->most = *end;
    if (end->peak_bytes < result->least.peak_bytes) result->least = *end;
}

/* With the other answer to what the file leaves open. */
static onv_status measure_other(const onv_network *n, const onv_live *live, const bool *is_host,
                                const onv_training_options *how, onv_training_figures *figures,
                                onv_training *result, onv_error *err)
{
    onv_training_options other = *how;
    onv_training_figures most;
    onv_eager eager;
    other.train.lower.reports = false;
    other.take = NULL;
    ONV_TRY(onv_eager_lower(n->model, live, is_host, &other.train.lower, &eager, err));
    onv_network again = {.model = n->model, .eager = &eager};
    onv_status status = onv_figures_of_program(&again, &other, NULL, figures, &most, NULL, err);
    onv_eager_cleanup(&eager);
    if (status != ONV_OK) return status;
    widen(result, figures);
    widen(result, &most);
    return ONV_OK;
}

/* What exports do not tell: whether activations overwrite their input, nn.ReLU is taken to, others not, and whether graphs inside the
 * network's have a gradient, which they are taken to. */
static onv_status find_ends(const onv_network *n, const onv_live *live, const bool *is_host,
                            const onv_training_options *how, onv_training *result, onv_error *err)
{
    static const char *const all[] = {"*"};
    const onv_eager *eager = n->eager;
    uint64_t peak = result->figures.peak_bytes;
    onv_training_options other = *how;
    onv_training_figures figures;
    if (how->train.lower.n_inplace == 0 && eager->open_activations > 0) {
        other.train.lower.inplace = all;
        other.train.lower.n_inplace = 1;
        ONV_TRY(measure_other(n, live, is_host, &other, &figures, result, err));
    }
    if (eager->has_inner_graphs) {
        other = *how;
        other.train.lower.inner_no_grad = true;
        ONV_TRY(measure_other(n, live, is_host, &other, &figures, result, err));
    }
    if (eager->untold_relus == 0) return ONV_OK;
    other = *how;
    other.train.lower.relu_makes_new = true;
    ONV_TRY(measure_other(n, live, is_host, &other, &figures, result, err));
    result->new_relus = figures;
    bool is_less = figures.peak_bytes < peak;
    if (how->train.lower.reports &&
        onv_is_news(is_less ? figures.peak_bytes : peak, is_less ? peak : figures.peak_bytes))
        onv_model_diag(
            n->model, ONV_WARNING, "relu-inplace", NULL,
            "%u ReLUs are taken to overwrite their input, which the file does not say; where "
            "they make new tensors, as nn.ReLU() does without inplace=True, the peak is %llu "
            "bytes instead of %llu: --inplace=none",
            eager->untold_relus, (unsigned long long)figures.peak_bytes, (unsigned long long)peak);
    return ONV_OK;
}

/* With FSDP, the units that the options ask for. */
static onv_status shard(onv_network *n, onv_training_options *how, onv_error *err)
{
    if (how->train.parallel != ONV_PARALLEL_FSDP) return ONV_OK;
    const char *patterns = how->units != NULL ? how->units : "";
    ONV_TRY(onv_shard_units_find(n->model, n->eager, patterns, &n->units, &n->n_units, err));
    how->train.units = n->units;
    how->train.n_units = n->n_units;
    return ONV_OK;
}

/* `eager` is to be cleaned up. */
static onv_status open_tape(onv_network *n, onv_eager *eager, const onv_live *live,
                            const bool *is_host, const onv_lower_options *lower,
                            onv_training_options *how, onv_error *err)
{
    ONV_TRY(onv_eager_lower(n->model, live, is_host, lower, eager, err));
    n->eager = eager;
    ONV_TRY(onv_eager_check(eager, err));
    ONV_TRY(onv_figures_count_runs(n, eager, how, err));
    return shard(n, how, err);
}

static bool asks_for_plans(const onv_training_options *options)
{
    return options->checkpoint != NULL || options->plan != NULL;
}

/* Plans, of the network as it is lowered for checkpoints: where fewer operations overwrite their input there, it is once more. */
static onv_status checkpoint(const onv_network *plain, const onv_live *live, const bool *is_host,
                             const onv_training_options *options, onv_training *result,
                             onv_error *err)
{
    onv_eager own = {0};
    onv_network n = *plain;
    onv_training_options how = *options;
    onv_lower_options lower = options->train.lower;
    onv_status status = ONV_OK;
    if (!asks_for_plans(options)) return ONV_OK;
    lower.checkpoints = true;
    lower.reports = false;
    if (n.eager == NULL || n.eager->differs_checkpoints)
        status = open_tape(&n, &own, live, is_host, &lower, &how, err);
    if (status == ONV_OK) status = compute_plans(&n, plain, &how, result, err);
    if (status == ONV_OK && options->lists_units)
        status = onv_unit_list_make(n.model, n.eager, &how.train, &result->units, err);
    onv_eager_cleanup(&own);
    return status;
}

/* At the budget that was asked for. */
static onv_status compile(const onv_network *n, const onv_training_options *options,
                          onv_training *result, onv_error *err)
{
    onv_train_program program;
    if (n->compiling == NULL) return ONV_OK;
    ONV_TRY(onv_compiling_build(n->compiling, options->compile_budget, &options->train, &program,
                                &result->compiled, err));
    onv_train_program_cleanup(&program);
    return ONV_OK;
}

/* Training without plans, and its ends. */
static onv_status measure_plain(const onv_network *n, const onv_live *live, const bool *is_host,
                                const onv_training_options *options, onv_training *result,
                                onv_error *err)
{
    onv_training_options how = *options;
    onv_timeline *timeline = how.keeps_timeline ? &result->timeline : NULL;
    if (how.is_probe) {
        how.train.lower.cuda.choice = ONV_WORKSPACE_MOST;
        ONV_TRY(onv_figures_measure(n, &how, NULL, false, &result->figures, err));
        result->release = result->figures.release;
        return ONV_OK;
    }
    how.train.notes_holds = !how.train.lower.locals;
    ONV_TRY(onv_figures_of_program(n, &how, NULL, &result->figures, &result->most, timeline, err));
    result->least = result->new_relus = result->figures;
    result->release = result->figures.release;
    if (how.train.lower.reports) onv_training_warn_of_locals(n->model, result);
    ONV_TRY(onv_figures_find_ends(n, &how, true, &result->figures, err));
    return how.train.units == NULL ? find_ends(n, live, is_host, &how, result, err) : ONV_OK;
}

/* Where plans are known nobody asks for training without plans, unless one of them is just that. */
static bool asks_for_plain(const onv_training_options *options)
{
    bool is_asked = options->known == NULL;
    for (uint32_t i = 0; !is_asked && i < options->known->count; i++)
        is_asked = is_empty(&options->known->at[i]);
    return is_asked;
}

/* `eager` is to be cleaned up. */
static onv_status compute_plain(onv_network *n, onv_eager *eager, const onv_live *live,
                                const bool *is_host, onv_training_options *how,
                                onv_training *result, onv_error *err)
{
    onv_model *model = n->model;
    ONV_TRY(open_tape(n, eager, live, is_host, &how->train.lower, how, err));
    result->loss = eager->loss_name;
    result->folded_norms = eager->folded_norms;
    result->restored_norms = eager->restored_norms;
    result->is_unlisted = model->program == NULL && model->listed.n_parameters == 0 &&
                          how->train.lower.parameters == 0;
    result->slow_attentions = eager->slow_attentions;
    result->recurrent = eager->recurrent;
    result->reserve_bytes = eager->reserve_bytes;
    result->opaque = eager->opaque;
    result->n_units = n->n_units;
    onv_training_warn_of_units(model, how, n->n_units);
    return measure_plain(n, live, is_host, how, result, err);
}

onv_status onv_training_compute(onv_model *model, const onv_live *live,
                                const onv_training_options *options, onv_training *result,
                                onv_error *err)
{
    bool *is_host;
    onv_eager eager = {0};
    onv_training_options how = *options;
    onv_network n = {.model = model};
    *result = (onv_training){
        .model = model, .optimizer = options->train.optimizer, .chosen = ONV_NO_PLAN};
    if (options->train.optimizer == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "training needs an optimizer");
    ONV_TRY(onv_mark_host_values(model, live, &is_host, err));
    onv_status status = ONV_OK;
    if (asks_for_plain(&how)) status = compute_plain(&n, &eager, live, is_host, &how, result, err);
    /* Plans may have a tape of their own, the empty one has not. */
    bool is_needed = asks_for_plans(&how) && (!eager.differs_checkpoints || how.room_bytes > 0);
    if (how.take == NULL && !is_needed) {
        onv_eager_cleanup(&eager);
        n.eager = NULL;
    }
    if (status == ONV_OK && how.compiles)
        status = onv_compiling_open(model, live, is_host, &how.train, &n.compiling, err);
    if (status == ONV_OK) status = checkpoint(&n, live, is_host, &how, result, err);
    if (status == ONV_OK) status = compile(&n, &how, result, err);
    onv_compiling_close(n.compiling);
    onv_eager_cleanup(&eager);
    if (status == ONV_OK)
        onv_training_warn(model, options, result);
    else
        onv_timeline_cleanup(&result->timeline);
    return status;
}
