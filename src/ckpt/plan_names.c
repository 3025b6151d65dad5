#include "ckpt/plan_names.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "base/strings.h"
#include "ckpt/training.h"

const char *const onv_plan_form_names[ONV_N_PLAN_FORMS] = {"none",        "modules", "sequential",
                                                           "save_on_cpu", "compile", "operations"};

/* --- Naming ------------------------------------------------------------------------------------ */

static onv_plan_form form_of(const onv_training_plan *plan)
{
    if (plan->does.compiles) return ONV_PLAN_COMPILE;
    if (plan->does.saves_on_cpu) return ONV_PLAN_SAVE_ON_CPU;
    if (plan->does.sequential > 0) return ONV_PLAN_SEQUENTIAL;
    if (plan->does.n_segments == 0 && plan->until == NULL) return ONV_PLAN_NONE;
    if (plan->does.prunes || plan->until != NULL) return ONV_PLAN_OPERATIONS;
    for (uint32_t i = 0; i < plan->does.n_segments; i++)
        if (!plan->names[i].is_chain) return ONV_PLAN_OPERATIONS;
    return ONV_PLAN_MODULES;
}

/* FNV-1a: it is the same in every run, and no table rests on it. */
static void hash(uint64_t *sum, const char *text)
{
    for (; *text != '\0'; text++) *sum = (*sum ^ (unsigned char)*text) * 0x100000001b3;
    *sum = (*sum ^ '\n') * 0x100000001b3;
}

static const char *id_of(const onv_training_plan *plan, onv_arena *arena)
{
    uint64_t sum = 0xcbf29ce484222325;
    char number[48];
    snprintf(number, sizeof number, "%u %.9g", (unsigned)plan->does.sequential,
             plan->does.compiles ? plan->does.memory_budget : 0);
    hash(&sum, onv_plan_form_names[plan->form]);
    hash(&sum, number);
    for (uint32_t i = 0; i < plan->does.n_segments; i++) {
        const onv_segment_names *names = &plan->names[i];
        bool are_modules = plan->form == ONV_PLAN_MODULES;
        hash(&sum, are_modules ? names->modules : names->begin);
        hash(&sum, are_modules ? "" : names->end);
    }
    if (plan->does.n_kept_ops > 0) hash(&sum, "keep");
    for (uint32_t i = 0; i < plan->does.n_kept_ops && plan->does.save == NULL; i++)
        hash(&sum, plan->kept[i]);
    if (plan->does.save != NULL) hash(&sum, plan->does.save);
    if (plan->until != NULL) hash(&sum, "offload");
    if (plan->until != NULL) hash(&sum, plan->until);
    if (plan->does.is_reentrant) hash(&sum, "reentrant");
    return onv_arena_printf(arena, "%08x", (unsigned)(sum ^ (sum >> 32)));
}

static onv_status name_plan(onv_places *places, onv_training_plan *plan, onv_error *err)
{
    onv_arena *arena = &places->namer.model->arena;
    onv_segment_names *names = ONV_ARENA_ARRAY(arena, onv_segment_names, plan->does.n_segments);
    const char **kept = ONV_ARENA_ARRAY(arena, const char *, plan->does.n_kept_ops);
    if (names == NULL || kept == NULL) return onv_fail_memory(err);
    plan->names = names;
    plan->kept = kept;
    for (uint32_t i = 0; i < plan->does.n_segments; i++)
        ONV_TRY(onv_segment_name(&places->namer, plan->does.segments[i], &names[i], err));
    if (plan->does.offload_until > 0)
        ONV_TRY(onv_place_name(&places->namer, plan->does.offload_until, &plan->until, err));
    for (uint32_t i = 0; i < plan->does.n_kept_ops; i++) {
        kept[i] = onv_border_text(&places->borders.of_op[plan->does.kept_ops[i]], arena);
        if (kept[i] == NULL) return onv_fail_memory(err);
    }
    plan->form = form_of(plan);
    for (uint32_t i = 0; i < plan->does.n_segments && plan->form == ONV_PLAN_OPERATIONS; i++)
        plan->n_by_hand += !names[i].is_placed;
    plan->id = id_of(plan, arena);
    return plan->id != NULL ? ONV_OK : onv_fail_memory(err);
}

onv_status onv_plans_name(onv_model *model, const onv_eager *eager, onv_training *result,
                          onv_error *err)
{
    onv_places places = {.is_told = false};
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_status status = onv_places_find(model, eager, &arena, &places, err);
    for (uint32_t i = 0; i < result->n_plans && status == ONV_OK; i++)
        status = name_plan(&places, &result->plans[i], err);
    onv_places_cleanup(&places);
    onv_arena_cleanup(&arena);
    return status;
}

onv_status onv_plan_snap(onv_places *places, onv_ckpt_plan *plan, onv_error *err)
{
    onv_arena *arena = &places->namer.model->arena;
    onv_tape_segment *to = ONV_ARENA_ARRAY(arena, onv_tape_segment, plan->n_segments);
    uint32_t n = 0;
    if (to == NULL) return onv_fail_memory(err);
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        uint32_t first = onv_namer_place(&places->namer, plan->segments[i].first_op);
        uint32_t end = onv_namer_place(&places->namer, plan->segments[i].last_op + 1);
        if (first < end) to[n++] = (onv_tape_segment){first, end - 1};
    }
    plan->segments = to;
    plan->n_segments = n;
    return ONV_OK;
}

/* --- Reading ----------------------------------------------------------------------------------- */

enum { MOST_NAMED = 5, MOST_NESTED = 64 };

typedef struct reader {
    onv_places *places;
    const onv_plan_text *text;
    onv_strings names;
    onv_arena arena;
    uint32_t *op_of, n_missing; /* by number of a name */
    const char *missing[MOST_NAMED];
} reader;

static onv_status add_name(reader *r, const char *text, uint32_t op, onv_error *err)
{
    size_t count = r->names.count;
    const char *name = text != NULL ? onv_intern(&r->names, text) : NULL;
    if (name == NULL || !onv_work(1)) return onv_fail_memory(err);
    if (r->names.count > count) r->op_of[onv_string_number(name)] = op;
    return ONV_OK;
}

/* All places that a plan of this network could name. */
static onv_status find_places(reader *r, onv_error *err)
{
    const onv_borders *borders = &r->places->borders;
    uint32_t n = r->places->namer.eager->first_loss_op;
    const char *const *nodes;
    r->op_of = ONV_ARENA_ARRAY(&r->arena, uint32_t, (size_t)3 * n + 1);
    if (r->op_of == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_namer_nodes(&r->places->namer, &nodes, err));
    for (uint32_t i = 0; i <= n; i++) {
        if (onv_border_is_known(&borders->before[i]))
            ONV_TRY(add_name(r, onv_border_text(&borders->before[i], &r->arena), i, err));
        if (i < n && onv_border_is_known(&borders->of_op[i]))
            ONV_TRY(add_name(r, onv_border_text(&borders->of_op[i], &r->arena), i, err));
        if (i < n) ONV_TRY(add_name(r, nodes[i], i, err));
    }
    return ONV_OK;
}

static uint32_t miss(reader *r, const char *text)
{
    if (r->n_missing < MOST_NAMED) r->missing[r->n_missing] = text;
    r->n_missing++;
    return 0;
}

static uint32_t find(reader *r, const char *text)
{
    const char *name = onv_interned(&r->names, text);
    return name != NULL ? r->op_of[onv_string_number(name)] : miss(r, text);
}

/* From the first operation of its first module to the last one of its last module. */
static onv_status find_row(reader *r, const char *row, onv_tape_segment *found, onv_error *err)
{
    onv_segment_names names;
    *found = (onv_tape_segment){UINT32_MAX, 0};
    for (const char *at = row; *at != '\0';) {
        size_t length = strcspn(at, " ");
        const onv_module_span *span = onv_scopes_module(&r->places->scopes, at, (uint32_t)length);
        if (span == NULL) {
            miss(r, row);
            return ONV_OK;
        }
        if (span->first_op < found->first_op) found->first_op = span->first_op;
        if (span->last_op > found->last_op) found->last_op = span->last_op;
        at += length + (at[length] == ' ');
    }
    if (found->first_op != UINT32_MAX) {
        ONV_TRY(onv_segment_name(&r->places->namer, *found, &names, err));
        if (names.is_chain && strcmp(names.modules, row) == 0) return ONV_OK;
    }
    return onv_fail(
        err, ONV_ERR_USAGE,
        "in this network '%.80s' is not a row of whole modules that follow each other, as "
        "the plan has it: ask for a new one with --checkpoint",
        row);
}

/* One inside the other, or one behind the other. */
static onv_status check_nesting(const onv_ckpt_plan *plan, onv_error *err)
{
    uint32_t ends[MOST_NESTED], depth = 0;
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const onv_tape_segment *s = &plan->segments[i];
        while (depth > 0 && ends[depth - 1] < s->first_op) depth--;
        bool crosses = s->last_op < s->first_op || (depth > 0 && s->last_op > ends[depth - 1]) ||
                       (i > 0 && memcmp(s - 1, s, sizeof *s) == 0) ||
                       (s->first_op < plan->offload_until && s->last_op >= plan->offload_until);
        if (crosses || depth == MOST_NESTED)
            return onv_fail(err, ONV_ERR_USAGE,
                            "segment %u of the plan %s: segments are one behind the other or one "
                            "inside the other",
                            (unsigned)i + 1,
                            crosses ? "ends where that is not possible" : "is inside of 64 others");
        ends[depth++] = s->last_op;
    }
    return ONV_OK;
}

static onv_status resolve_segments(reader *r, onv_ckpt_plan *plan, onv_error *err)
{
    const onv_plan_text *text = r->text;
    onv_arena *arena = &r->places->namer.model->arena;
    bool are_modules = text->form == ONV_PLAN_MODULES;
    size_t n = are_modules ? text->n_modules : text->n_segments;
    onv_tape_segment *segments = ONV_ARENA_ARRAY(arena, onv_tape_segment, n);
    uint32_t *kept = ONV_ARENA_ARRAY(arena, uint32_t, text->n_kept);
    if (segments == NULL || kept == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (are_modules) {
            ONV_TRY(find_row(r, text->modules[i], &segments[i], err));
            continue;
        }
        uint32_t first = find(r, text->segments[i][0]), end = find(r, text->segments[i][1]);
        segments[i] = first < end ? (onv_tape_segment){first, end - 1} : (onv_tape_segment){1, 0};
    }
    for (size_t i = 0; i < text->n_kept; i++) {
        kept[i] = find(r, text->kept[i]);
        if (kept[i] == r->places->namer.eager->first_loss_op) miss(r, text->kept[i]);
    }
    onv_segments_sort(segments, n);
    onv_ops_sort(kept, text->n_kept);
    plan->segments = segments;
    plan->n_segments = (uint32_t)n;
    plan->kept_ops = kept;
    plan->n_kept_ops = (uint32_t)text->n_kept;
    if (text->until != NULL) plan->offload_until = find(r, text->until);
    plan->prunes = !are_modules && r->places->is_told;
    return ONV_OK;
}

static onv_status refuse_missing(const reader *r, onv_error *err)
{
    char list[400] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < r->n_missing && i < MOST_NAMED && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.60s'", i > 0 ? ", " : "",
                                 r->missing[i]);
    return onv_fail(err, ONV_ERR_USAGE,
                    "the network has no %s%s, which the plan names: ask for a new one with "
                    "--checkpoint",
                    list, r->n_missing > MOST_NAMED ? " and more" : "");
}

static onv_status resolve(reader *r, const onv_plan_text *text, onv_ckpt_plan *plan, onv_error *err)
{
    *plan = (onv_ckpt_plan){.name = text->name,
                            .save = text->save,
                            .is_reentrant = text->is_reentrant,
                            .saves_on_cpu = text->form == ONV_PLAN_SAVE_ON_CPU,
                            .compiles = text->form == ONV_PLAN_COMPILE,
                            .memory_budget = text->memory_budget};
    if (text->form != ONV_PLAN_MODULES && text->form != ONV_PLAN_OPERATIONS) return ONV_OK;
    r->text = text;
    r->n_missing = 0;
    ONV_TRY(resolve_segments(r, plan, err));
    if (r->n_missing > 0) return refuse_missing(r, err);
    return check_nesting(plan, err);
}

onv_status onv_plans_resolve(onv_places *places, const onv_plan_text *texts, uint32_t n,
                             onv_ckpt_plan *plans, bool *is_missing, onv_error *err)
{
    reader r = {.places = places};
    onv_arena_init(&r.arena, SIZE_MAX);
    onv_strings_init(&r.names, &r.arena);
    onv_status status = find_places(&r, err);
    for (uint32_t i = 0; i < n && status == ONV_OK; i++) {
        status = resolve(&r, &texts[i], &plans[i], is_missing != NULL ? NULL : err);
        if (is_missing == NULL || status != ONV_ERR_USAGE) continue;
        is_missing[i] = true;
        status = ONV_OK;
    }
    onv_strings_cleanup(&r.names);
    onv_arena_cleanup(&r.arena);
    return status;
}
