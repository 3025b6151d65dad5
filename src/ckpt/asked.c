/* Plans of whole modules as people write them:
 *
 *   modules=PATTERN[/K]   modules that the pattern names, or each K-th of them, each under one checkpoint
 *   save=KINDS            blocks under create_selective_checkpoint_contexts, whose policy saves these operations
 *   reentrant             blocks under checkpoint(use_reentrant=True)
 */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "ckpt/ckpt.h"

enum { MOST_STEP = 1000000 };

/* --- Modules by name --------------------------------------------------------------------------- */

/* The K behind the last slash, from 1; what stands before it is cut off. 0: it is none. */
static uint32_t cut_step(char *pattern)
{
    char *slash = strrchr(pattern, '/'), *end;
    if (slash == NULL) return 1;
    *slash = '\0';
    if (strspn(slash + 1, "0123456789") != strlen(slash + 1)) return 0;
    unsigned long step = strtoul(slash + 1, &end, 10);
    return end > slash + 1 && step <= MOST_STEP ? (uint32_t)step : 0;
}

/* Those inside of others that are named, too, run in these. */
static uint32_t take_outermost(onv_tape_segment *at, uint32_t n, uint32_t step)
{
    uint32_t n_outer = 0, n_taken = 0, end = 0;
    onv_segments_sort(at, n);
    for (uint32_t i = 0; i < n; i++) {
        if (n_outer > 0 && at[i].last_op <= end) continue;
        end = at[i].last_op;
        if (++n_outer % step == 0) at[n_taken++] = at[i];
    }
    return n_taken;
}

static onv_status make_modules(const onv_ckpt_problem *problem, onv_ckpt_plans *plans,
                               onv_error *err)
{
    onv_arena *arena = &problem->model->arena;
    onv_tape_segment *at;
    uint32_t n = 0;
    char *pattern = onv_arena_strndup(arena, problem->argument, strlen(problem->argument));
    const char *name = onv_arena_printf(arena, "modules=%s", problem->argument);
    if (pattern == NULL || name == NULL) return onv_fail_memory(err);
    uint32_t step = cut_step(pattern);
    if (step == 0 || strspn(pattern, ONV_PATH_CHARACTERS "*?[]") != strlen(pattern))
        return onv_fail(err, ONV_ERR_USAGE,
                        "modules=: expected a pattern of names of modules, as in layers.*, or "
                        "layers.*/2 for every other one, found '%.80s'",
                        problem->argument);
    at = ONV_ARENA_ARRAY(arena, onv_tape_segment, problem->places->scopes.n_slots);
    if (at == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_scopes_match(&problem->places->scopes, problem->eager->first_loss_op,
                             "modules=", pattern, at, &n, err));
    const onv_ckpt_plan plan = {
        .name = name, .segments = at, .n_segments = take_outermost(at, n, step)};
    return onv_ckpt_plans_take(problem, &plan, plans, err);
}

/* --- Blocks ------------------------------------------------------------------------------------ */

/* As `blocks` has them, where they are whole modules. */
static onv_status find_blocks(const onv_ckpt_problem *problem, const char *name,
                              onv_tape_segment **blocks, uint32_t *n, onv_error *err)
{
    onv_ckpt_plans made = {0};
    onv_status status = onv_ckpt_blocks.make(problem, &made, err);
    if (status == ONV_OK) {
        const onv_ckpt_plan *plan = &made.at.at[0];
        bool are_whole = false;
        *n = plan->n_segments;
        *blocks = ONV_ARENA_ARRAY(&problem->model->arena, onv_tape_segment, *n);
        if (*blocks == NULL)
            status = onv_fail_memory(err);
        else
            are_whole = *n > 0 && onv_segments_are_chains(&problem->places->namer, plan->segments,
                                                          *n, *blocks);
        if (status == ONV_OK && !are_whole)
            status = onv_fail(err, ONV_ERR_USAGE,
                              "%s: the network has no repeated modules that are known as such; "
                              "modules=PATTERN names modules",
                              name);
    }
    onv_ckpt_plans_cleanup(&made);
    return status;
}

/* One of a list with "+" between. */
static bool lists(const char *list, const char *kind)
{
    for (const char *at = list; kind != NULL;) {
        size_t length = strcspn(at, "+");
        if (strlen(kind) == length && memcmp(at, kind, length) == 0) return true;
        if (at[length] == '\0') return false;
        at += length + 1;
    }
    return false;
}

static bool is_kind(const char *text, size_t length)
{
    for (uint32_t i = 0; i < ONV_ATEN_N_IDS; i++) {
        uint16_t kind = onv_aten_ops[i].counted_as;
        const char *name = kind != ONV_ATEN_NONE ? onv_aten_ops[kind].name : "";
        if (length > 0 && strlen(name) == length && memcmp(name, text, length) == 0) return true;
    }
    return false;
}

onv_status onv_ckpt_take_saving(const onv_ckpt_problem *problem, onv_ckpt_plan *plan,
                                onv_ckpt_plans *plans, onv_error *err)
{
    const onv_eager *eager = problem->eager;
    for (const char *at = plan->save;; at++) {
        size_t length = strcspn(at, "+");
        if (!is_kind(at, length))
            return onv_fail(err, ONV_ERR_USAGE,
                            "save=: expected kinds of operations with + between, as in "
                            "product+attention, found '%.40s'",
                            plan->save);
        at += length;
        if (*at == '\0') break;
    }
    uint32_t *kept = ONV_ARENA_ARRAY(&problem->model->arena, uint32_t, eager->first_loss_op);
    if (kept == NULL) return onv_fail_memory(err);
    plan->kept_ops = kept;
    plan->n_kept_ops = 0;
    uint32_t end = 0;
    for (uint32_t s = 0; s < plan->n_segments; s++)
        for (uint32_t i = plan->segments[s].first_op; i <= plan->segments[s].last_op; i++)
            if (i >= end && lists(plan->save, onv_kind_of(&eager->ops.at[i]))) {
                kept[plan->n_kept_ops++] = i;
                end = i + 1;
            }
    return onv_ckpt_plans_take(problem, plan, plans, err);
}

static onv_status make_save(const onv_ckpt_problem *problem, onv_ckpt_plans *plans, onv_error *err)
{
    onv_tape_segment *blocks;
    onv_ckpt_plan plan = {.save = problem->argument};
    plan.name = onv_arena_printf(&problem->model->arena, "save=%s", plan.save);
    if (plan.name == NULL) return onv_fail_memory(err);
    ONV_TRY(find_blocks(problem, "save=", &blocks, &plan.n_segments, err));
    plan.segments = blocks;
    return onv_ckpt_take_saving(problem, &plan, plans, err);
}

/* Without an input that has a gradient, autograd never comes to the node that a reentrant checkpoint is. */
static bool has_gradient(const onv_ckpt_problem *problem, onv_tape_segment at)
{
    const onv_eager *eager = problem->eager;
    for (uint32_t i = at.first_op; i <= at.last_op; i++)
        for (uint32_t k = 0; k < eager->ops.at[i].n_in; k++) {
            uint32_t tensor = eager->ops.at[i].in[k].tensor;
            uint32_t made = problem->places->namer.made_by[tensor];
            if (made < at.first_op && eager->tensors.at[tensor].needs_grad) return true;
        }
    return false;
}

onv_status onv_ckpt_take_reentrant(const onv_ckpt_problem *problem, onv_ckpt_plan *plan,
                                   onv_ckpt_plans *plans, onv_error *err)
{
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        bool is_inside = s > 0 && plan->segments[s].first_op <= plan->segments[s - 1].last_op;
        if (is_inside || !has_gradient(problem, plan->segments[s]))
            return onv_fail(err, ONV_ERR_USAGE,
                            is_inside ? "reentrant: module %u of the plan is inside another one"
                                      : "reentrant: no input of module %u of the plan has a "
                                        "gradient, so that its parameters would get none",
                            (unsigned)s + 1);
    }
    plan->is_reentrant = true;
    return onv_ckpt_plans_take(problem, plan, plans, err);
}

static onv_status make_reentrant(const onv_ckpt_problem *problem, onv_ckpt_plans *plans,
                                 onv_error *err)
{
    onv_tape_segment *blocks;
    onv_ckpt_plan plan = {.name = "reentrant"};
    ONV_TRY(find_blocks(problem, "reentrant", &blocks, &plan.n_segments, err));
    plan.segments = blocks;
    return onv_ckpt_take_reentrant(problem, &plan, plans, err);
}

const onv_ckpt_plan_kind onv_ckpt_modules = {
    .name = "modules",
    .summary = "one segment for each module that is so called, or for each K-th",
    .argument = "PATTERN[/K]",
    .make = make_modules};
const onv_ckpt_plan_kind onv_ckpt_save = {
    .name = "save",
    .summary = "blocks that keep results of these kinds of operations: product+attention",
    .argument = "KINDS",
    .make = make_save};
const onv_ckpt_plan_kind onv_ckpt_reentrant = {
    .name = "reentrant", .summary = "blocks, with use_reentrant=True", .make = make_reentrant};
