/* The largest sizes of plans.
 *
 * A plan's segments are the same at every size, which are searched as size_facts.h says: the sizes that an answer stands
 * between are neighbours up to some 2,000, and beyond it a thousandth apart at most: more digits would cost most of the
 * analyses. An analysis at a size is of all plans that ask for it.
 *
 * Training as a whole chooses among plans that are made at the size at hand. So at larger sizes there are searches for
 * plans, and those of them that take the least are searched for in turn: the next one is at the largest size that any plan
 * so far reaches. What is given is a size at which a run that is asked for it has a plan that fits. */
#include "api/plan_sizes.h"

#include <string.h>

#include "api/known_plans.h"
#include "api/size_facts.h"
#include "base/checked.h"
#include "base/fail.h"

/* A search for plans costs more than all else: sizes of runs are told from each other as far as that part. */
enum { GAP_PARTS = 128, AHEAD_PARTS = 2, PAST_PARTS = 16, MOST_NEW = 8 };

typedef struct subject {
    onv_known_plan known;
    onv_size_facts facts;
} subject;

/* What a run that is asked for a size finds. */
typedef struct found_run {
    int64_t size;
    onv_known_plan *plans;
    uint32_t n_plans;             /* 0: it is beyond all bounds */
    const onv_known_plan *chosen; /* that fits; NULL: none does */
    const onv_known_plan *least;  /* takes the least */
} found_run;

typedef struct search {
    const onv_sizing *sizing;
    onv_training *training;
    onv_arena arena;
    ONV_VEC(subject) at;
    ONV_VEC(found_run) runs;
    onv_size_facts whole; /* of runs: the plan that takes the least, and whether any fits */
    int64_t to_better
        [ONV_SIZE_GOALS]; /* 0: each is searched for; else what does not reach it is left */
    int64_t confirmed;    /* the largest size at which a run of its own was seen to fit */
    int64_t closed;       /* that size, once no larger one up to the next run fits */
} search;

/* --- Analyses ---------------------------------------------------------------------------------- */

static onv_status fact_of(const search *all, int64_t size, const onv_training_figures *figures,
                          onv_size_fact *f, onv_error *err)
{
    onv_runtime_result r;
    ONV_TRY(onv_runtime_of_training(figures, &r, err));
    *f = onv_size_fact_of(&r, size, all->sizing->usable_bytes);
    return ONV_OK;
}

/* What is there at any size, about: parameters and what they take, and what stands beside the allocator. */
static onv_size_fact floor_of(const onv_size_fact *first, const onv_training_figures *figures)
{
    onv_size_fact f = {.size = 0};
    uint64_t rest = first->of[ONV_FITS] > figures->reserved_peak_bytes
                        ? first->of[ONV_FITS] - figures->reserved_peak_bytes
                        : 0;
    uint64_t parts[] = {figures->parameter_bytes, figures->optimizer_bytes, figures->gradient_bytes,
                        figures->buffer_bytes};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) rest = onv_u64_plus(rest, parts[i]);
    for (int k = 0; k < ONV_SIZE_GOALS; k++) f.of[k] = rest < first->of[k] ? rest : first->of[k];
    return f;
}

static onv_status add_subject(search *all, int64_t size, const onv_known_plan *known,
                              onv_error *err)
{
    subject s = {.known = *known, .facts = {.usable_bytes = all->sizing->usable_bytes}};
    onv_size_fact f;
    ONV_TRY(fact_of(all, size, &known->figures, &f, err));
    if (!onv_vec_push(&all->at, s)) return onv_fail_memory(err);
    onv_size_facts *facts = &all->at.at[all->at.count - 1].facts;
    if (size == 0) return ONV_OK;
    return onv_size_add(facts, f) && onv_size_add(facts, floor_of(&f, &known->figures))
               ? ONV_OK
               : onv_fail_memory(err);
}

static bool wants(const subject *s, int64_t size)
{
    return onv_size_helps(&s->facts, ONV_FITS, size) ||
           onv_size_helps(&s->facts, ONV_BY_RELEASE, size);
}

/* What most ask for next; 0: nothing is asked for. */
static int64_t choose_size(search *all, size_t first)
{
    int64_t best = 0;
    uint32_t most = 0;
    for (size_t i = first; i < all->at.count; i++)
        for (int goal = 0; goal < ONV_SIZE_GOALS; goal++)
            onv_size_narrow(&all->at.at[i].facts, goal, all->to_better[goal]);
    for (size_t i = first; i < all->at.count; i++) {
        for (int goal = 0; goal < ONV_SIZE_GOALS; goal++) {
            int64_t size = all->at.at[i].facts.wanted[goal];
            uint32_t n = 0;
            for (size_t k = first; k < all->at.count && size > 0; k++)
                n += wants(&all->at.at[k], size);
            if (n > most) best = size;
            if (n > most) most = n;
        }
    }
    return best;
}

/* Where the tape lacks places of the plan a line decides, and what is found by it is no answer. */
static void guess(const search *all, const subject *s, onv_size_fact *f)
{
    double bytes, times;
    f->is_guess = true;
    for (int goal = 0; goal < ONV_SIZE_GOALS; goal++)
        f->reaches[goal] = onv_size_line(&s->facts, goal, f->size, &bytes, &times)
                               ? bytes < (double)all->sizing->usable_bytes
                               : f->size < all->sizing->first;
}

static onv_status take_facts(search *all, size_t first, int64_t size, const onv_analysis *made,
                             onv_error *err)
{
    uint32_t n = 0;
    for (size_t i = first; i < all->at.count; i++) {
        subject *s = &all->at.at[i];
        onv_size_fact f = {.size = size, .is_known = true, .of = {UINT64_MAX, UINT64_MAX}};
        if (!wants(s, size)) continue;
        const onv_training_plan *plan = made != NULL ? &made->training.plans[n++] : NULL;
        if (plan != NULL && !plan->is_missing)
            ONV_TRY(fact_of(all, size, &plan->figures, &f, err));
        else if (plan != NULL)
            guess(all, s, &f);
        if (!onv_size_add(&s->facts, f)) return onv_fail_memory(err);
    }
    return ONV_OK;
}

/* The plans from `first` on. */
static onv_status find(search *all, size_t first, onv_error *err)
{
    onv_ckpt_plan *plans = ONV_ARENA_ARRAY(&all->arena, onv_ckpt_plan, all->at.count);
    onv_plan_text *texts = ONV_ARENA_ARRAY(&all->arena, onv_plan_text, all->at.count);
    if (plans == NULL || texts == NULL) return onv_fail_memory(err);
    for (int64_t size; (size = choose_size(all, first)) > 0;) {
        onv_known_plans known = {
            .at = plans, .texts = texts, .n_ops = all->at.at[first].known.n_ops};
        onv_analysis *made = NULL;
        for (size_t i = first; i < all->at.count; i++) {
            const subject *s = &all->at.at[i];
            if (!wants(s, size)) continue;
            texts[known.count] = s->known.text;
            plans[known.count++] = s->known.plan;
        }
        ONV_TRY(all->sizing->analyse(all->sizing->context, size, &known, &made, err));
        onv_status status = take_facts(all, first, size, made, err);
        onv_analysis_destroy(made);
        ONV_TRY(status);
    }
    return ONV_OK;
}

/* --- Training as a whole ----------------------------------------------------------------------- */

/* Whether a line decided what was found, or that the next size is too large. */
static bool is_guessed(const subject *s, int goal)
{
    bool below = false, above = false;
    int64_t found = s->facts.found[goal], next = INT64_MAX;
    for (size_t i = 0; i < s->facts.at.count; i++) {
        const onv_size_fact *f = &s->facts.at.at[i];
        if (!f->is_known || f->size < found || f->size >= next) continue;
        *(f->size == found ? &below : &above) = f->is_guess;
        if (f->size > found) next = f->size;
    }
    return below || above;
}

/* Sizes for ONV_FITS are confirmed by runs; no run confirms the others. */
static int64_t most_found(const search *all, int goal, size_t *which)
{
    int64_t most = goal == ONV_BY_RELEASE ? all->confirmed : 0;
    for (size_t i = 0; i < all->at.count; i++) {
        const subject *s = &all->at.at[i];
        if (s->facts.found[goal] <= most || (goal == ONV_BY_RELEASE && is_guessed(s, goal)))
            continue;
        most = s->facts.found[goal];
        *which = i;
    }
    return most;
}

static onv_status describe(search *all, onv_largest_size largest, onv_error *err)
{
    largest.name = onv_arena_printf(all->sizing->arena, "%s", largest.name);
    largest.id = onv_arena_printf(all->sizing->arena, "%s", largest.id);
    all->training->largest = largest;
    return largest.name != NULL && largest.id != NULL ? ONV_OK : onv_fail_memory(err);
}

static bool is_searched(const search *all, const onv_known_plan *plan)
{
    for (size_t i = 0; i < all->at.count; i++)
        if (strcmp(all->at.at[i].known.id, plan->id) == 0) return true;
    return false;
}

static onv_largest_size largest_of(int64_t size, const onv_known_plan *known)
{
    const onv_ckpt_plan *plan = &known->plan;
    return (onv_largest_size){
        size, plan->name, known->id, plan->recomputed_macs, known->pass_macs, plan->n_segments};
}

/* Plans that were made at the size: those that take the least are searched for, and the one that is chosen there is told. */
static onv_status look_there(search *all, int goal, const found_run *run, onv_error *err)
{
    uint64_t limit = UINT64_MAX;
    for (uint32_t added = 0; added < MOST_NEW && added < run->n_plans; added++) {
        const onv_known_plan *best = NULL;
        uint64_t least = UINT64_MAX;
        for (uint32_t i = 0; i < run->n_plans; i++) {
            onv_size_fact f;
            ONV_TRY(fact_of(all, run->size, &run->plans[i].figures, &f, err));
            bool is_next = added == 0 || f.of[goal] > limit;
            if (is_next && f.of[goal] < least) best = &run->plans[i];
            if (is_next && f.of[goal] < least) least = f.of[goal];
        }
        if (best == NULL) break;
        limit = least;
        if (!is_searched(all, best)) ONV_TRY(add_subject(all, run->size, best, err));
    }
    if (goal != ONV_FITS || run->chosen == NULL || run->size < all->training->largest.size)
        return ONV_OK;
    return describe(all, largest_of(run->size, run->chosen), err);
}

static bool keep_plans(search *all, const onv_training *from, found_run *to)
{
    to->plans = ONV_ARENA_ARRAY(&all->arena, onv_known_plan, from->n_plans);
    to->n_plans = from->n_plans;
    for (uint32_t i = 0; to->plans != NULL && i < from->n_plans; i++)
        if (!onv_know_plan(&from->plans[i], from->n_plan_ops, &all->arena, &to->plans[i]))
            return false;
    if (to->plans != NULL && from->plan_fits && from->chosen != ONV_NO_PLAN)
        to->chosen = &to->plans[from->chosen];
    return to->plans != NULL;
}

/* A run of its own for each size, once. */
static onv_status look_at_run(search *all, int goal, int64_t size, onv_error *err)
{
    size_t i = 0;
    onv_analysis *made;
    while (i < all->runs.count && all->runs.at[i].size != size) i++;
    if (i == all->runs.count) {
        ONV_TRY(all->sizing->analyse(all->sizing->context, size, NULL, &made, err));
        found_run run = {.size = size};
        bool is_kept = made == NULL || keep_plans(all, &made->training, &run);
        onv_analysis_destroy(made);
        if (!is_kept) return onv_fail_memory(err);
        onv_size_fact least = {.size = size, .is_known = true, .of = {UINT64_MAX, UINT64_MAX}}, f;
        for (uint32_t k = 0; k < run.n_plans; k++) {
            ONV_TRY(fact_of(all, size, &run.plans[k].figures, &f, err));
            if (f.of[ONV_FITS] >= least.of[ONV_FITS]) continue;
            least = f;
            run.least = &run.plans[k];
        }
        least.reaches[ONV_FITS] = run.chosen != NULL;
        if (!onv_vec_push(&all->runs, run) || !onv_size_add(&all->whole, least))
            return onv_fail_memory(err);
    }
    return look_there(all, goal, &all->runs.at[i], err);
}

/* A run at the size, and the largest sizes of its plans where they better all so far. */
static onv_status learn(search *all, int goal, int64_t size, onv_error *err)
{
    const size_t first = all->at.count;
    size_t which;
    ONV_TRY(look_at_run(all, goal, size, err));
    for (int k = 0; k < ONV_SIZE_GOALS; k++) {
        int64_t most = most_found(all, k, &which);
        all->to_better[k] = most < ONV_MAX_BATCH ? most + onv_size_grain(most) : most;
    }
    return find(all, first, err);
}

/* The smallest run above the confirmed one that has no plan that fits; INT64_MAX: there is none. */
static int64_t failed_above(const search *all)
{
    int64_t above = INT64_MAX;
    for (size_t i = 0; i < all->runs.count; i++) {
        const found_run *run = &all->runs.at[i];
        if (run->chosen == NULL && run->size > all->confirmed && run->size < above)
            above = run->size;
    }
    return above;
}

/* What is to be tried behind a run at `size`; 0: the answer is known, but for a gap. Plans that were made at one size are none
 * that a run at another one finds, so the answer is confirmed by a run of its own. */
static int64_t next_run(search *all, int64_t size)
{
    size_t which;
    onv_size_narrow(&all->whole, ONV_FITS, 0);
    all->confirmed = all->whole.found[ONV_FITS];
    const int64_t above = failed_above(all);
    if (above < INT64_MAX && above - all->confirmed <= all->confirmed / GAP_PARTS) return 0;
    int64_t wanted = all->whole.wanted[ONV_FITS],
            middle = all->confirmed + (above - all->confirmed) / 2;
    /* Lines that stay below the answer come nearer by small steps. */
    if (above < INT64_MAX && all->confirmed > 0 && wanted > 0 && wanted < middle)
        return middle - middle % onv_size_grain(middle);
    if (above < INT64_MAX || size == ONV_MAX_BATCH) return wanted;
    int64_t most = most_found(all, ONV_FITS, &which);
    return most > size ? most : size + onv_size_grain(size);
}

/* Totals fall in places, so sizes between the confirmed run and the one above it that does not fit may fit: the largest one that
 * the first one's smallest plan reaches is to be run; 0: there is none. It is looked at for that alone, as no run confirms
 * what it reaches by release. */
static onv_status look_in_gap(search *all, int64_t *size, onv_error *err)
{
    const int64_t low = all->confirmed, above = failed_above(all);
    size_t i = 0;
    onv_status status = ONV_OK;
    while (i < all->runs.count && all->runs.at[i].size != low) i++;
    if (low == all->closed || above == INT64_MAX || i == all->runs.count) return ONV_OK;
    const onv_known_plan *plan = all->runs.at[i].least;
    const onv_known_plans known = {&plan->plan, &plan->text, 1, plan->n_ops};
    onv_size_facts facts = {.usable_bytes = all->sizing->usable_bytes};
    onv_size_fact f = {.size = low, .is_known = true, .of = {UINT64_MAX, UINT64_MAX}};
    f.reaches[ONV_FITS] = true;
    bool is_kept = onv_size_add(&facts, f);
    f.reaches[ONV_FITS] = false;
    for (f.size = above; f.size > 0 && is_kept && status == ONV_OK;) {
        onv_analysis *made = NULL;
        onv_size_fact at = f;
        if (f.size < above)
            status = all->sizing->analyse(all->sizing->context, f.size, &known, &made, err);
        if (status == ONV_OK && made != NULL && !made->training.plans[0].is_missing)
            status = fact_of(all, f.size, &made->training.plans[0].figures, &at, err);
        onv_analysis_destroy(made);
        is_kept = onv_size_add(&facts, at);
        onv_size_narrow(&facts, ONV_FITS, 0);
        f.size = facts.wanted[ONV_FITS];
    }
    onv_vec_cleanup(&facts.at);
    if (facts.found[ONV_FITS] > low)
        *size = facts.found[ONV_FITS];
    else
        all->closed = low;
    return is_kept || status != ONV_OK ? status : onv_fail_memory(err);
}

/* The first run is at a size that no plan so far reaches: its plans do with less. */
static onv_status find_whole(search *all, onv_error *err)
{
    size_t which;
    int64_t size = most_found(all, ONV_FITS, &which);
    if (size > 0 && size < ONV_MAX_BATCH / 2)
        ONV_TRY(learn(all, ONV_FITS, size + size / AHEAD_PARTS, err));
    size = most_found(all, ONV_FITS, &which);
    for (int64_t past = PAST_PARTS; size > 0;) {
        ONV_TRY(learn(all, ONV_FITS, size, err));
        size = next_run(all, size);
        if (size == 0) ONV_TRY(look_in_gap(all, &size, err));
        if (size > 0 || past < PAST_PARTS / 2 || all->confirmed == ONV_MAX_BATCH) continue;
        size = all->confirmed + all->confirmed / past; /* totals fall in places */
        past /= 2;
    }
    size = most_found(all, ONV_BY_RELEASE, &which);
    return size > 0 && size < ONV_MAX_BATCH ? learn(all, ONV_BY_RELEASE, size, err) : ONV_OK;
}

static int64_t size_of(const search *all, int64_t found)
{
    return found < ONV_MAX_BATCH ? found * all->sizing->unit : found;
}

/* The plan that reaches the largest size, where none was chosen there. */
static onv_status describe_largest(search *all, onv_error *err)
{
    size_t which = 0;
    int64_t size = most_found(all, ONV_FITS, &which);
    onv_largest_size *to = &all->training->largest;
    if (size > 0 && size == all->confirmed && to->size != size) {
        ONV_TRY(describe(all, largest_of(size, &all->at.at[which].known), err));
    }
    to->size = size_of(all, to->size);
    return ONV_OK;
}

static onv_status give(search *all, size_t n_rows, bool is_cut, onv_fit_of *of, onv_error *err)
{
    size_t which;
    onv_training *t = all->training;
    for (size_t i = 0; i < n_rows; i++) {
        const subject *s = &all->at.at[i];
        bool is_lost = is_cut && s->facts.found[ONV_BY_RELEASE] == 0;
        int64_t found[ONV_SIZE_GOALS];
        for (int goal = 0; goal < ONV_SIZE_GOALS; goal++)
            found[goal] = is_lost || is_guessed(s, goal) ? ONV_BATCH_NOT_FOUND
                                                         : size_of(all, s->facts.found[goal]);
        t->plans[i].max_batch = found[ONV_FITS];
        t->plans[i].max_batch_by_release = found[ONV_BY_RELEASE];
    }
    of->max_batch = size_of(all, all->confirmed);
    of->max_batch_by_release = size_of(all, most_found(all, ONV_BY_RELEASE, &which));
    return describe_largest(all, err);
}

static onv_status run(search *all, bool *is_cut, onv_error *err)
{
    onv_training *t = all->training;
    found_run first = {.size = all->sizing->first};
    if (!keep_plans(all, t, &first)) return onv_fail_memory(err);
    for (uint32_t i = 0; i < t->n_plans; i++)
        ONV_TRY(add_subject(all, first.size, &first.plans[i], err));
    onv_status status = find(all, 0, err);
    if (status == ONV_OK) status = find_whole(all, err);
    *is_cut = status != ONV_OK && all->sizing->ends(all->sizing->context);
    if (!*is_cut) return status;
    if (all->confirmed == 0 && first.chosen != NULL) all->confirmed = first.size;
    for (size_t i = 0; i < all->at.count; i++)
        for (int goal = 0; goal < ONV_SIZE_GOALS; goal++)
            onv_size_settle(&all->at.at[i].facts, goal);
    return ONV_OK;
}

onv_status onv_plan_sizes_find(const onv_sizing *sizing, onv_training *training, onv_fit_of *of,
                               bool *is_cut, onv_error *err)
{
    search all = {
        .sizing = sizing, .training = training, .whole = {.usable_bytes = sizing->usable_bytes}};
    onv_arena_init(&all.arena, SIZE_MAX);
    onv_status status = run(&all, is_cut, err);
    if (status == ONV_OK) status = give(&all, training->n_plans, *is_cut, of, err);
    for (size_t i = 0; i < all.at.count; i++) onv_vec_cleanup(&all.at.at[i].facts.at);
    onv_vec_cleanup(&all.at);
    onv_vec_cleanup(&all.runs);
    onv_vec_cleanup(&all.whole.at);
    onv_arena_cleanup(&all.arena);
    return status;
}
