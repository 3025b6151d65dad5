#include "ckpt/ckpt.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/nearest.h"
#include "ckpt/plan_names.h"

const onv_ckpt_plan_kind *const onv_ckpt_plan_kinds[] = {
    &onv_ckpt_none,      &onv_ckpt_sqrt,    &onv_ckpt_every,   &onv_ckpt_segments,
    &onv_ckpt_blocks,    &onv_ckpt_optimal, &onv_ckpt_modules, &onv_ckpt_save,
    &onv_ckpt_reentrant, &onv_ckpt_offload, &onv_ckpt_joint,
};
const size_t onv_n_ckpt_plan_kinds = sizeof onv_ckpt_plan_kinds / sizeof onv_ckpt_plan_kinds[0];

/* --- Lists ------------------------------------------------------------------------------------- */

typedef struct request {
    const onv_ckpt_plan_kind *kind;
    uint32_t count;   /* 0: the square root of the units */
    const char *text; /* what follows "="; NULL: nothing does */
    size_t length;    /* of the text */
} request;

typedef struct requests {
    ONV_VEC(request) at;
} requests;

/* A number from 1 that ends at `end`; 0 if it is none. */
static uint32_t parse_count(const char *text, const char *end)
{
    uint32_t count = 0;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || count > UINT32_MAX / 10 - 1) return 0;
        count = count * 10 + (uint32_t)(*text - '0');
    }
    return count;
}

static const char *plan_name(const void *unused, size_t index)
{
    (void)unused;
    return index < onv_n_ckpt_plan_kinds ? onv_ckpt_plan_kinds[index]->name : NULL;
}

static onv_status parse_item(const char *item, const char *end, requests *list, onv_error *err)
{
    int shown = end - item < 80 ? (int)(end - item) : 80;
    const char *equals = memchr(item, '=', (size_t)(end - item));
    size_t length = (size_t)((equals != NULL ? equals : end) - item);
    for (size_t i = 0; i < onv_n_ckpt_plan_kinds; i++) {
        const onv_ckpt_plan_kind *kind = onv_ckpt_plan_kinds[i];
        if (strlen(kind->name) != length || strncmp(kind->name, item, length) != 0) continue;
        const char *text = equals != NULL ? equals + 1 : end;
        request r = {kind, parse_count(text, end), equals != NULL ? text : NULL,
                     (size_t)(end - text)};
        bool counts = kind->argument != NULL && strcmp(kind->argument, "K") == 0;
        bool fits = counts ? r.count > 0 : (kind->argument != NULL) == (r.length > 0);
        if (!fits || (kind->argument == NULL && equals != NULL))
            return onv_fail(err, ONV_ERR_USAGE,
                            counts ? "the plan '%.*s' takes a count of at least 1: %s=4"
                            : kind->argument != NULL ? "the plan '%.*s' is incomplete: %s=%s"
                                                     : "the plan '%.*s' is just '%s'",
                            shown, item, kind->name, kind->argument);
        return onv_vec_push(&list->at, r) ? ONV_OK : onv_fail_memory(err);
    }
    return onv_fail_choice(err, "--checkpoint", item, length, plan_name, NULL);
}

static onv_status parse_all(requests *list, onv_error *err)
{
    for (size_t i = 0; i < onv_n_ckpt_plan_kinds; i++) {
        const onv_ckpt_plan_kind *kind = onv_ckpt_plan_kinds[i];
        if (kind->in_all && !onv_vec_push(&list->at, ((request){.kind = kind})))
            return onv_fail_memory(err);
    }
    return ONV_OK;
}

static onv_status parse(const char *text, requests *list, onv_error *err)
{
    for (const char *item = text;;) {
        const char *end = item + strcspn(item, ",@");
        if (end - item == 3 && strncmp(item, "all", 3) == 0)
            ONV_TRY(parse_all(list, err));
        else
            ONV_TRY(parse_item(item, end, list, err));
        if (list->at.count > ONV_CKPT_MAX_ITEMS)
            return onv_fail(err, ONV_ERR_LIMIT, "more than %d checkpointing plans are asked for",
                            ONV_CKPT_MAX_ITEMS);
        if (*end != ',') return ONV_OK;
        item = end + 1;
    }
}

onv_status onv_ckpt_check_list(const char *list, onv_error *err)
{
    requests parsed = {0};
    onv_status status = parse(list, &parsed, err);
    onv_vec_cleanup(&parsed.at);
    return status;
}

/* Those that are fronts, or those that are not. */
static onv_status make_items(const onv_ckpt_problem *problem, const requests *list, bool fronts,
                             onv_ckpt_plans *plans, onv_error *err)
{
    for (size_t i = 0; i < list->at.count; i++) {
        const request *r = &list->at.at[i];
        size_t first = plans->at.count, first_spare = plans->spare.count;
        onv_ckpt_problem one = *problem;
        one.count = r->count > 0 ? r->count : onv_ckpt_units_root(problem->units);
        if (r->kind->is_front != fronts) continue;
        if (r->text != NULL)
            one.argument = onv_arena_strndup(&one.model->arena, r->text, r->length);
        if (r->text != NULL && one.argument == NULL) return onv_fail_memory(err);
        ONV_TRY(r->kind->make(&one, plans, err));
        for (size_t k = first; k < plans->at.count; k++) plans->at.at[k].item = (uint32_t)i;
        for (size_t k = first_spare; k < plans->spare.count; k++)
            plans->spare.at[k].item = (uint32_t)i;
    }
    return ONV_OK;
}

/* Into the order of the list; those of one item stay as they are. */
static void sort_items(onv_ckpt_plans *plans)
{
    for (size_t i = 1, k; i < plans->at.count; i++) {
        onv_ckpt_plan plan = plans->at.at[i];
        for (k = i; k > 0 && plans->at.at[k - 1].item > plan.item; k--)
            plans->at.at[k] = plans->at.at[k - 1];
        plans->at.at[k] = plan;
    }
}

/* Fronts come last: they are to better all others. */
static onv_status make_fronts(const onv_ckpt_problem *others, onv_compiling *compiling,
                              const requests *list, onv_ckpt_plans *plans, onv_error *err)
{
    onv_ckpt_problem problem = *others;
    onv_ckpt_plans compiled = {0};
    bool any = false;
    for (size_t i = 0; i < list->at.count; i++) any |= list->at.at[i].kind->is_front;
    onv_status status = ONV_OK;
    if (any && compiling != NULL) status = onv_ckpt_compile(&problem, compiling, &compiled, err);
    problem.compiled = &compiled;
    problem.prunes = true;
    if (status == ONV_OK) status = make_items(&problem, list, true, plans, err);
    onv_ckpt_plans_cleanup(&compiled);
    return status;
}

/* Plans go to where their names put them. One of whole modules runs again as torch.utils.checkpoint does if that takes no
 * more than the pruned runs that the search counted: it is what people write. */
static onv_status settle(const onv_ckpt_problem *problem, onv_ckpt_plan *plan, onv_error *err)
{
    if (plan->sequential > 0 || plan->is_reentrant || plan->save != NULL) return ONV_OK;
    onv_tape_segment *whole =
        ONV_ARENA_ARRAY(&problem->model->arena, onv_tape_segment, plan->n_segments);
    if (whole == NULL) return onv_fail_memory(err);
    bool are_modules =
        plan->n_kept_ops == 0 && plan->offload_until == 0 &&
        onv_segments_are_chains(&problem->places->namer, plan->segments, plan->n_segments, whole);
    onv_ckpt_plan plain = *plan;
    plain.segments = whole;
    plain.prunes = false;
    if (are_modules && plan->prunes) {
        ONV_TRY(onv_ckpt_measure(problem, &plain, NULL, err));
        are_modules = plain.peak_bytes <= plan->peak_bytes &&
                      plain.requested_bytes <= plan->requested_bytes &&
                      plain.recomputed_macs <= plan->recomputed_macs;
    }
    if (!are_modules) return onv_plan_snap(problem->places, plan, err);
    *plan = plain;
    return ONV_OK;
}

/* A plan that was read, behind those of the list. */
static onv_status add_given(const onv_ckpt_problem *problem, onv_compiling *compiling,
                            const onv_plan_text *text, uint32_t item, onv_ckpt_plans *plans,
                            onv_error *err)
{
    onv_ckpt_plan plan;
    size_t first = plans->at.count;
    if (text->form == ONV_PLAN_COMPILE && compiling == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "the plan is torch.compile's: add --compile");
    if (text->form == ONV_PLAN_SEQUENTIAL) {
        onv_ckpt_problem counted = *problem;
        counted.count = text->count;
        ONV_TRY(onv_ckpt_segments.make(&counted, plans, err));
        if (plans->at.at[first].sequential != text->count)
            return onv_fail(err, ONV_ERR_USAGE,
                            "the plan is checkpoint_sequential, and the network is not an "
                            "nn.Sequential");
    } else {
        ONV_TRY(onv_plans_resolve(problem->places, text, 1, &plan, NULL, err));
        ONV_TRY(text->save != NULL   ? onv_ckpt_take_saving(problem, &plan, plans, err)
                : text->is_reentrant ? onv_ckpt_take_reentrant(problem, &plan, plans, err)
                                     : onv_ckpt_plans_take(problem, &plan, plans, err));
    }
    plans->at.at[first].item = item;
    return ONV_OK;
}

onv_status onv_ckpt_make(onv_model *model, const onv_eager *eager, onv_pricing *pricing,
                         onv_compiling *compiling, const onv_train_options *options,
                         onv_ckpt_wanted wanted, onv_ckpt_plans *plans, onv_error *err)
{
    requests parsed = {0};
    onv_ckpt_units units;
    onv_places places = {.is_told = false};
    onv_arena arena;
    *plans = (onv_ckpt_plans){0};
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = wanted.list[0] != '\0' ? parse(wanted.list, &parsed, err) : ONV_OK;
    if (status == ONV_OK) status = onv_places_find(model, eager, &arena, &places, err);
    if (status == ONV_OK) status = onv_ckpt_units_find(model, eager, &places, &units, err);
    onv_ckpt_problem problem = {.model = model,
                                .eager = eager,
                                .units = &units,
                                .places = &places,
                                .options = options,
                                .pricing = pricing,
                                .others = plans};
    if (status == ONV_OK) status = make_items(&problem, &parsed, false, plans, err);
    if (status == ONV_OK) status = make_fronts(&problem, compiling, &parsed, plans, err);
    sort_items(plans);
    for (size_t i = 0; i < plans->at.count && status == ONV_OK; i++)
        status = settle(&problem, &plans->at.at[i], err);
    if (!wanted.spares) plans->spare.count = 0;
    for (size_t i = 0; i < plans->spare.count && status == ONV_OK; i++)
        status = settle(&problem, &plans->spare.at[i], err);
    if (status == ONV_OK && wanted.text != NULL)
        status = add_given(&problem, compiling, wanted.text, (uint32_t)parsed.at.count, plans, err);
    onv_vec_cleanup(&parsed.at);
    onv_places_cleanup(&places);
    onv_arena_cleanup(&arena);
    if (status != ONV_OK) onv_ckpt_plans_cleanup(plans);
    return status;
}

/* --- Plans ------------------------------------------------------------------------------------- */

uint64_t onv_ckpt_price(uint64_t recomputed_macs, uint64_t moved_bytes)
{
    uint64_t price;
    if (!onv_u64_mul(moved_bytes, ONV_CKPT_MACS_PER_BYTE, &price) ||
        !onv_u64_add(price, recomputed_macs, &price))
        return UINT64_MAX;
    return price;
}

static uint64_t least_peak(const void *context, uint64_t recomputed_macs)
{
    const onv_ckpt_plans *rivals = context;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < rivals->at.count; i++) {
        const onv_ckpt_plan *at = &rivals->at.at[i];
        if (at->recomputed_macs <= recomputed_macs && at->moved_bytes == 0 && !at->compiles &&
            at->peak_bytes < least)
            least = at->peak_bytes;
    }
    return least;
}

onv_status onv_ckpt_measure(const onv_ckpt_problem *problem, onv_ckpt_plan *plan,
                            bool *is_kept_used, onv_error *err)
{
    onv_train_options options = *problem->options;
    onv_price price;
    const onv_price_rival rival = {least_peak, problem->rivals};
    onv_ckpt_apply(plan, &options);
    options.is_kept_used = is_kept_used;
    ONV_TRY(onv_pricing_find(problem->pricing, &options, problem->rivals != NULL ? &rival : NULL,
                             &price, err));
    plan->peak_bytes = price.peak_bytes;
    plan->requested_bytes = price.requested_bytes;
    plan->recomputed_macs = price.recomputed_macs;
    plan->moved_bytes = price.moved_bytes;
    return ONV_OK;
}

void onv_ckpt_apply(const onv_ckpt_plan *plan, onv_train_options *options)
{
    options->segments = plan->segments;
    options->n_segments = plan->n_segments;
    options->prunes = plan->prunes;
    options->selects = plan->save != NULL;
    options->is_reentrant = plan->is_reentrant;
    options->kept_ops = plan->kept_ops;
    options->n_kept_ops = plan->n_kept_ops;
    options->loop_from = plan->loop_from;
    options->saves_on_cpu = plan->saves_on_cpu;
    options->offload_until = plan->offload_until;
}

onv_status onv_ckpt_keep(const onv_ckpt_problem *problem, const bool *is_kept_used,
                         onv_ckpt_plan *plan, onv_error *err)
{
    onv_arena *arena = &problem->model->arena;
    uint32_t n = plan->n_kept_ops;
    uint32_t *kept = onv_arena_copy(arena, plan->kept_ops, n * sizeof *kept);
    plan->segments =
        onv_arena_copy(arena, plan->segments, plan->n_segments * sizeof *plan->segments);
    plan->kept_ops = kept;
    plan->n_kept_ops = 0;
    if (plan->segments == NULL || kept == NULL) return onv_fail_memory(err);
    for (uint32_t k = 0; k < n; k++)
        if (is_kept_used[k]) kept[plan->n_kept_ops++] = kept[k];
    return ONV_OK;
}

onv_status onv_ckpt_plans_take(const onv_ckpt_problem *problem, const onv_ckpt_plan *from,
                               onv_ckpt_plans *plans, onv_error *err)
{
    onv_ckpt_plan plan = *from;
    bool *is_used = onv_heap_calloc(from->n_kept_ops + 1, sizeof *is_used);
    onv_status status =
        is_used != NULL ? onv_ckpt_measure(problem, &plan, is_used, err) : onv_fail_memory(err);
    if (status == ONV_OK) status = onv_ckpt_keep(problem, is_used, &plan, err);
    onv_heap_free(is_used);
    if (status != ONV_OK) return status;
    return onv_vec_push(&plans->at, plan) ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_ckpt_plans_add(const onv_ckpt_problem *problem, const char *name,
                              const onv_tape_segment *segments, uint32_t n_segments,
                              onv_ckpt_plans *plans, onv_error *err)
{
    onv_ckpt_plan plan = {.name = name, .segments = segments, .n_segments = n_segments};
    plan.prunes = problem->places->is_told &&
                  (problem->prunes ||
                   !onv_segments_are_chains(&problem->places->namer, segments, n_segments, NULL));
    return onv_ckpt_plans_take(problem, &plan, plans, err);
}

void onv_ckpt_plans_cleanup(onv_ckpt_plans *plans)
{
    onv_vec_cleanup(&plans->at);
    onv_vec_cleanup(&plans->spare);
}
