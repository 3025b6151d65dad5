/* The largest sizes of plans.
 *
 * A plan's segments are the same at every size. Its largest size is found by halving, on sizes that do not depend on the
 * budget: 1, 2, 4, ... until one does not fit, then in the middle. So a larger budget never has a smaller answer, even
 * where totals fall in places. Totals grow nearly in proportion: a size that a line through the two nearest
 * analysed ones places clearly on one side needs no analysis; both sizes that an answer stands between have one. These are
 * neighbours up to 2 * FINE, and beyond it a FINEth part apart at most: more digits would cost most of the analyses.
 * An analysis at a size is of all plans that ask for it.
 *
 * Training as a whole chooses among plans that are made at the size at hand. So at the largest size of all plans there is a
 * search for plans, and those of them that take the least are searched for in turn, once more if that gains much. What is
 * given is a size at which a run that is asked for it has a plan that fits. */
#include "api/plan_sizes.h"

#include <math.h>
#include <string.h>

#include "api/known_plans.h"
#include "base/checked.h"
#include "base/fail.h"

enum { FITS, BY_RELEASE, N_GOALS };
/* A search for plans costs more than all else: a second one follows where the first gained that part. */
enum { FINE = 1024, MOST_FACTS = 64, ROUNDS = 2, GAIN_PARTS = 32, MOST_NEW = 8 };

/* Of one size. */
typedef struct fact {
    int64_t size;
    bool is_known;         /* analysed; else about */
    uint64_t of[N_GOALS];  /* the total, and with what is allocated in place of what is reserved */
    bool reaches[N_GOALS]; /* what is asked for */
} fact;

typedef struct subject {
    onv_ckpt_plan plan;
    const char *id;
    uint64_t pass_macs;
    fact facts[MOST_FACTS];
    uint32_t n_facts;
    uint32_t errors; /* how often a total was on the other side of the line that was drawn to it */
    int64_t wanted[N_GOALS]; /* the size that is to be analysed next; 0: `found` is the answer */
    int64_t found[N_GOALS];
} subject;

/* What a run that is asked for a size finds. */
typedef struct found_run {
    int64_t size;
    bool exists;           /* it is within all bounds */
    onv_training training; /* plans, figures, and which one is chosen */
} found_run;

typedef struct search {
    const onv_sizing *sizing;
    onv_training *training;
    onv_arena arena;
    ONV_VEC(subject) at;
    ONV_VEC(found_run) runs;
    int64_t to_better[N_GOALS]; /* 0: each is searched for; else what does not reach it is left */
    int64_t confirmed;          /* the largest size at which a run of its own was seen to fit */
} search;

/* --- What is known of a size ------------------------------------------------------------------- */

static const fact *find_fact(const subject *s, int64_t size)
{
    for (uint32_t i = 0; i < s->n_facts; i++)
        if (s->facts[i].size == size && s->facts[i].is_known) return &s->facts[i];
    return NULL;
}

static void add_fact(subject *s, fact f)
{
    if (s->n_facts < MOST_FACTS && find_fact(s, f.size) == NULL) s->facts[s->n_facts++] = f;
}

static int64_t gap_of(const fact *f, int64_t size)
{
    return f->size > size ? f->size - size : size - f->size;
}

static double times_apart(int64_t a, int64_t b)
{
    return a > b ? (double)a / (double)b : (double)b / (double)a;
}

/* By which part of the usable bytes a line has to miss them, the nearest analysed size being so many times as large or
 * small; 1: no line is clear. Of large sizes totals are smooth. */
static double clear_part(double times, int64_t size)
{
    if (times <= 1.01 && size >= FINE) return 1.0 / 512;
    static const double parts[][2] = {
        {1.05, 1.0 / 64}, {1.5, 1.0 / 16}, {4, 1.0 / 8}, {16, 1.0 / 4}, {64, 1.0 / 2}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (times <= parts[i][0]) return parts[i][1];
    return 1;
}

/* The bytes at a size by the two nearest ones; false: there are no two. `times`: how far the nearest one that was analysed
 * is from it, 0 where none is. */
static bool draw_line(const subject *s, int goal, int64_t size, double *bytes, double *times)
{
    const fact *near = NULL, *next = NULL;
    for (uint32_t i = 0; i < s->n_facts; i++) {
        const fact *f = &s->facts[i];
        if (f->of[goal] == UINT64_MAX) continue;
        if (near == NULL || gap_of(f, size) < gap_of(near, size)) {
            next = near;
            near = f;
        } else if (next == NULL || gap_of(f, size) < gap_of(next, size)) {
            next = f;
        }
    }
    if (next == NULL) return false;
    double from = (double)near->of[goal], step = (double)next->of[goal] - from;
    *bytes = from + step * (double)(size - near->size) / (double)(next->size - near->size);
    const fact *analysed = near->is_known ? near : next;
    *times = analysed->is_known ? times_apart(analysed->size, size) : 0;
    return true;
}

/* What is far from all that is in doubt is clear without a line. */
static bool is_far(const subject *s, int goal, int64_t size, bool *reaches)
{
    enum { FAR = 4 };
    for (uint32_t i = 0; i < s->n_facts; i++) {
        const fact *f = &s->facts[i];
        *reaches = f->reaches[goal];
        if (f->is_known && (*reaches ? f->size / FAR >= size : f->size <= size / FAR)) return true;
    }
    return false;
}

/* What returned memory achieves follows from what is allocated, too, but not at once from how much that may be: the
 * analysed sizes tell. */
static bool is_known_by_release(const subject *s, double bytes, bool *reaches)
{
    for (uint32_t i = 0; i < s->n_facts; i++) {
        const fact *f = &s->facts[i];
        double at = (double)f->of[BY_RELEASE];
        *reaches = f->reaches[BY_RELEASE];
        if (f->is_known && (*reaches ? bytes <= at : bytes >= at)) return true;
    }
    return false;
}

/* False: it has to be analysed. */
static bool decide(const search *all, const subject *s, int goal, int64_t size, bool *reaches)
{
    const fact *known = find_fact(s, size);
    double usable = (double)all->sizing->usable_bytes, bytes, times;
    if (known != NULL) {
        *reaches = known->reaches[goal];
        return true;
    }
    if (is_far(s, goal, size, reaches)) return true;
    if (!draw_line(s, goal, size, &bytes, &times)) return false;
    if (goal == BY_RELEASE && bytes < usable)
        return times > 0 && is_known_by_release(s, bytes, reaches);
    double part = times > 0 && s->errors < 2 ? clear_part(times, size) : 1;
    if (s->errors == 1 && part < 1.0 / 4) part = 1.0 / 4;
    *reaches = bytes < usable;
    return part < 1 && fabs(bytes - usable) > part * usable;
}

/* How far sizes are apart that are told from each other: a power of two, so that halving meets it. */
static int64_t grain_of(int64_t size)
{
    int64_t grain = 1;
    while (size / grain >= 2 * (int64_t)FINE) grain *= 2;
    return grain;
}

/* Sets what is found, or what is wanted for it. */
static void look(const search *all, subject *s, int goal)
{
    int64_t low = 0, high = 0, *wanted = &s->wanted[goal];
    bool reaches = false;
    if (all->to_better[goal] > 0) {
        *wanted = all->to_better[goal];
        if (!decide(all, s, goal, *wanted, &reaches)) return;
        if (!reaches) *wanted = s->found[goal] = 0;
        if (!reaches) return;
    }
    while ((high == 0 && low < ONV_MAX_BATCH) || high - low > grain_of(low)) {
        int64_t size = high > 0 ? low + (high - low) / 2 : low > 0 ? 2 * low : 1;
        if (size > ONV_MAX_BATCH) size = ONV_MAX_BATCH;
        *wanted = size;
        if (!decide(all, s, goal, size, &reaches)) return;
        *(reaches ? &low : &high) = size;
    }
    s->found[goal] = low;
    *wanted = low > 0 && find_fact(s, low) == NULL     ? low
              : high > 0 && find_fact(s, high) == NULL ? high
                                                       : 0;
}

/* Where the search was cut, or there are too many facts: the largest size that is known to fit. */
static void settle(subject *s, int goal)
{
    s->found[goal] = s->wanted[goal] = 0;
    for (uint32_t i = 0; i < s->n_facts; i++)
        if (s->facts[i].is_known && s->facts[i].reaches[goal] && s->facts[i].size > s->found[goal])
            s->found[goal] = s->facts[i].size;
}

/* --- Analyses ---------------------------------------------------------------------------------- */

static onv_status fact_of(const search *all, int64_t size, const onv_training_figures *figures,
                          fact *f, onv_error *err)
{
    onv_runtime_result r;
    ONV_TRY(onv_runtime_of_training(figures, &r, err));
    uint64_t total = r.total_bytes.high;
    *f = (fact){.size = size, .is_known = true, .of = {total, total}};
    f->reaches[FITS] = total <= all->sizing->usable_bytes;
    f->reaches[BY_RELEASE] = f->reaches[FITS] || r.release.suffices;
    if (figures->reserved_peak_bytes >= figures->allocated_peak_bytes &&
        total >= figures->reserved_peak_bytes)
        f->of[BY_RELEASE] -= figures->reserved_peak_bytes - figures->allocated_peak_bytes;
    return ONV_OK;
}

/* What is there at any size, about: parameters and what they take, and what stands beside the allocator. */
static fact floor_of(const fact *first, const onv_training_figures *figures)
{
    fact f = {.size = 0};
    uint64_t rest = first->of[FITS] > figures->reserved_peak_bytes
                        ? first->of[FITS] - figures->reserved_peak_bytes
                        : 0;
    uint64_t parts[] = {figures->parameter_bytes, figures->optimizer_bytes, figures->gradient_bytes,
                        figures->buffer_bytes};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!onv_u64_add(rest, parts[i], &rest)) rest = UINT64_MAX;
    for (int k = 0; k < N_GOALS; k++) f.of[k] = rest < first->of[k] ? rest : first->of[k];
    return f;
}

static onv_status add_subject(search *all, int64_t size, const onv_training_plan *plan,
                              onv_error *err)
{
    subject s = {.pass_macs = plan->pass_macs};
    fact f;
    ONV_TRY(fact_of(all, size, &plan->figures, &f, err));
    if (size > 0) add_fact(&s, f);
    if (size > 0) add_fact(&s, floor_of(&f, &plan->figures));
    s.id = onv_arena_printf(&all->arena, "%s", plan->id);
    if (!onv_know_plan(plan, &all->arena, &s.plan) || s.id == NULL) return onv_fail_memory(err);
    return onv_vec_push(&all->at, s) ? ONV_OK : onv_fail_memory(err);
}

/* What most ask for next; 0: nothing is asked for. */
static int64_t choose_size(search *all, size_t first)
{
    int64_t best = 0;
    uint32_t most = 0;
    for (size_t i = first; i < all->at.count; i++)
        for (int goal = 0; goal < N_GOALS; goal++) look(all, &all->at.at[i], goal);
    for (size_t i = first; i < all->at.count; i++) {
        for (int goal = 0; goal < N_GOALS; goal++) {
            subject *s = &all->at.at[i];
            if (s->n_facts == MOST_FACTS) settle(s, goal);
            int64_t size = s->wanted[goal];
            uint32_t n = 0;
            for (size_t k = first; k < all->at.count && size > 0; k++)
                n += all->at.at[k].wanted[0] == size || all->at.at[k].wanted[1] == size;
            if (n > most) best = size;
            if (n > most) most = n;
        }
    }
    return best;
}

/* Where the tape is another one, as at a size of 1, plans cannot be told: a line decides. */
static void guess(const search *all, const subject *s, fact *f)
{
    double bytes, times;
    for (int goal = 0; goal < N_GOALS; goal++)
        f->reaches[goal] = draw_line(s, goal, f->size, &bytes, &times)
                               ? bytes < (double)all->sizing->usable_bytes
                               : f->size < all->sizing->first;
}

static void judge_line(const search *all, subject *s, const fact *f)
{
    double bytes, times;
    if (draw_line(s, FITS, f->size, &bytes, &times) && times > 0 &&
        (bytes < (double)all->sizing->usable_bytes) != f->reaches[FITS])
        s->errors++;
}

static onv_status take_facts(search *all, size_t first, int64_t size, const onv_analysis *made,
                             onv_error *err)
{
    uint32_t n = 0;
    for (size_t i = first; i < all->at.count; i++) {
        subject *s = &all->at.at[i];
        fact f = {.size = size, .is_known = true, .of = {UINT64_MAX, UINT64_MAX}};
        if (s->wanted[0] != size && s->wanted[1] != size) continue;
        if (made != NULL && n < made->training.n_plans)
            ONV_TRY(fact_of(all, size, &made->training.plans[n++].figures, &f, err));
        else if (made != NULL)
            guess(all, s, &f);
        judge_line(all, s, &f);
        add_fact(s, f);
    }
    return ONV_OK;
}

/* The plans from `first` on. */
static onv_status find(search *all, size_t first, onv_error *err)
{
    onv_ckpt_plan *plans = ONV_ARENA_ARRAY(&all->arena, onv_ckpt_plan, all->at.count);
    if (plans == NULL) return onv_fail_memory(err);
    for (int64_t size; (size = choose_size(all, first)) > 0;) {
        onv_known_plans known = {.at = plans, .n_ops = all->training->n_plan_ops};
        onv_analysis *made = NULL;
        for (size_t i = first; i < all->at.count; i++) {
            const subject *s = &all->at.at[i];
            if (s->wanted[0] == size || s->wanted[1] == size) plans[known.count++] = s->plan;
        }
        ONV_TRY(all->sizing->analyse(all->sizing->context, size, &known, &made, err));
        onv_status status = take_facts(all, first, size, made, err);
        onv_analysis_destroy(made);
        ONV_TRY(status);
    }
    return ONV_OK;
}

/* --- Training as a whole ----------------------------------------------------------------------- */

static int64_t most_found(const search *all, int goal, size_t *which)
{
    int64_t most = 0;
    for (size_t i = 0; i < all->at.count; i++) {
        if (all->at.at[i].found[goal] <= most) continue;
        most = all->at.at[i].found[goal];
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

static bool is_searched(const search *all, const onv_training_plan *plan)
{
    for (size_t i = 0; i < all->at.count; i++) {
        const onv_ckpt_plan *at = &all->at.at[i].plan;
        if (at->n_segments == plan->n_segments && at->n_kept_ops == plan->n_kept_ops &&
            at->prunes == plan->prunes && at->is_reentrant == plan->is_reentrant &&
            (at->save == NULL) == (plan->save == NULL) && at->sequential == plan->sequential &&
            at->saves_on_cpu == plan->saves_on_cpu && at->offload_until == plan->offload_until &&
            at->compiles == plan->compiles && at->memory_budget == plan->memory_budget &&
            memcmp(at->segments, plan->segments, plan->n_segments * sizeof *at->segments) == 0 &&
            memcmp(at->kept_ops, plan->kept_ops, plan->n_kept_ops * sizeof *at->kept_ops) == 0)
            return true;
    }
    return false;
}

/* Plans that were made at the size: those that take the least are searched for, and the one that is chosen there is told. */
static onv_status look_there(search *all, int goal, int64_t size, const onv_training *t,
                             onv_error *err)
{
    uint64_t limit = UINT64_MAX;
    for (uint32_t added = 0; added < MOST_NEW && added < t->n_plans; added++) {
        uint32_t best = t->n_plans;
        uint64_t least = UINT64_MAX;
        for (uint32_t i = 0; i < t->n_plans; i++) {
            fact f;
            ONV_TRY(fact_of(all, size, &t->plans[i].figures, &f, err));
            bool is_next = added == 0 || f.of[goal] > limit;
            if (is_next && f.of[goal] < least) best = i;
            if (is_next && f.of[goal] < least) least = f.of[goal];
        }
        if (best == t->n_plans) break;
        limit = least;
        if (!is_searched(all, &t->plans[best]))
            ONV_TRY(add_subject(all, size, &t->plans[best], err));
    }
    const onv_training_plan *chosen = t->chosen != ONV_NO_PLAN ? &t->plans[t->chosen] : NULL;
    if (goal != FITS || !t->plan_fits || chosen == NULL) return ONV_OK;
    return describe(all,
                    (onv_largest_size){size, chosen->name, chosen->id, chosen->recomputed_macs,
                                       chosen->pass_macs, chosen->n_segments},
                    err);
}

static bool copy_plans(search *all, const onv_training *from, onv_training *to)
{
    *to = *from;
    to->plans = onv_arena_copy(&all->arena, from->plans, from->n_plans * sizeof *to->plans);
    for (uint32_t i = 0; to->plans != NULL && i < from->n_plans; i++) {
        onv_ckpt_plan copy;
        const char *id = onv_arena_printf(&all->arena, "%s", from->plans[i].id);
        if (!onv_know_plan(&from->plans[i], &all->arena, &copy) || id == NULL) return false;
        to->plans[i].name = copy.name;
        to->plans[i].id = id;
        to->plans[i].save = copy.save;
        to->plans[i].segments = copy.segments;
        to->plans[i].kept_ops = copy.kept_ops;
    }
    return to->plans != NULL;
}

/* A run of its own for each size, once. `*found` stays until the next one. */
static onv_status look_at_run(search *all, int goal, int64_t size, const found_run **found,
                              onv_error *err)
{
    size_t i = 0;
    onv_analysis *made;
    while (i < all->runs.count && all->runs.at[i].size != size) i++;
    if (i == all->runs.count) {
        ONV_TRY(all->sizing->analyse(all->sizing->context, size, NULL, &made, err));
        found_run run = {.size = size, .exists = made != NULL};
        bool fits = made == NULL || copy_plans(all, &made->training, &run.training);
        onv_analysis_destroy(made);
        if (!fits || !onv_vec_push(&all->runs, run)) return onv_fail_memory(err);
    }
    *found = &all->runs.at[i];
    return (*found)->exists ? look_there(all, goal, size, &(*found)->training, err) : ONV_OK;
}

static onv_status find_whole(search *all, int goal, onv_error *err)
{
    size_t which = 0;
    int64_t size = most_found(all, goal, &which), before = 0;
    for (int round = 0;
         round < ROUNDS && size - before > before / GAIN_PARTS && size < ONV_MAX_BATCH; round++) {
        const found_run *found;
        size_t first = all->at.count;
        ONV_TRY(look_at_run(all, goal, size, &found, err));
        if (!found->exists) break;
        for (int k = 0; k < N_GOALS; k++) {
            int64_t most = most_found(all, k, &which);
            all->to_better[k] = most < ONV_MAX_BATCH ? most + grain_of(most) : most;
        }
        ONV_TRY(find(all, first, err));
        before = size;
        size = most_found(all, goal, &which);
    }
    return ONV_OK;
}

/* By what the best plan takes at a size where none fits: totals grow nearly in proportion. */
static int64_t next_to_confirm(const search *all, int64_t low, int64_t high, const onv_training *t,
                               onv_error *err)
{
    int64_t next = low + (high - low) / 2;
    uint64_t least = UINT64_MAX;
    fact f;
    for (uint32_t i = 0; i < t->n_plans; i++)
        if (fact_of(all, high, &t->plans[i].figures, &f, err) == ONV_OK && f.of[FITS] < least)
            least = f.of[FITS];
    if (least < UINT64_MAX && least > all->sizing->usable_bytes)
        next = (int64_t)((double)high * (double)all->sizing->usable_bytes / (double)least);
    next -= next % grain_of(next);
    return next > low ? next < high ? next : high - grain_of(low) : low + grain_of(low);
}

/* A plan that was made at another size is none that a run at this size finds: the answer fits in a run of its own, and one
 * more does not. */
static onv_status confirm(search *all, onv_error *err)
{
    size_t which = 0;
    int64_t low = 0, high = ONV_MAX_BATCH + 1, size = most_found(all, FITS, &which);
    int64_t step = grain_of(size);
    while (size > low && size < high) {
        const found_run *found;
        ONV_TRY(look_at_run(all, FITS, size, &found, err));
        bool fits = found->exists && found->training.plan_fits;
        *(fits ? &low : &high) = size;
        if (!fits)
            size = next_to_confirm(all, low, high, &found->training, err);
        else if (high - low <= grain_of(low))
            size = low;
        else if (high - low <= step)
            size = low + (high - low) / 2;
        else
            size = low + step;
        if (fits) step *= 2;
        all->confirmed = low;
    }
    return ONV_OK;
}

static int64_t size_of(const search *all, int64_t found)
{
    return found < ONV_MAX_BATCH ? found * all->sizing->unit : found;
}

/* The plan that reaches the largest size, where none was chosen there. */
static onv_status describe_largest(search *all, onv_error *err)
{
    size_t which = 0;
    int64_t size = most_found(all, FITS, &which);
    onv_largest_size *to = &all->training->largest;
    if (size > 0 && size == all->confirmed && to->size != size) {
        const subject *s = &all->at.at[which];
        ONV_TRY(describe(all,
                         (onv_largest_size){size, s->plan.name, s->id, s->plan.recomputed_macs,
                                            s->pass_macs, s->plan.n_segments},
                         err));
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
        bool is_lost = is_cut && s->found[BY_RELEASE] == 0;
        t->plans[i].max_batch = is_lost ? ONV_BATCH_NOT_FOUND : size_of(all, s->found[FITS]);
        t->plans[i].max_batch_by_release =
            is_lost ? ONV_BATCH_NOT_FOUND : size_of(all, s->found[BY_RELEASE]);
    }
    of->max_batch = size_of(all, all->confirmed);
    of->max_batch_by_release = size_of(all, most_found(all, BY_RELEASE, &which));
    return describe_largest(all, err);
}

static onv_status run(search *all, bool *is_cut, onv_error *err)
{
    onv_training *t = all->training;
    for (uint32_t i = 0; i < t->n_plans; i++)
        ONV_TRY(add_subject(all, all->sizing->first, &t->plans[i], err));
    onv_status status = find(all, 0, err);
    if (status == ONV_OK) status = find_whole(all, FITS, err);
    if (status == ONV_OK) status = confirm(all, err);
    if (status == ONV_OK) status = find_whole(all, BY_RELEASE, err);
    *is_cut = status != ONV_OK && all->sizing->ends(all->sizing->context);
    if (!*is_cut) return status;
    for (size_t i = 0; i < all->at.count; i++)
        for (int goal = 0; goal < N_GOALS; goal++) settle(&all->at.at[i], goal);
    return ONV_OK;
}

onv_status onv_plan_sizes_find(const onv_sizing *sizing, onv_training *training, onv_fit_of *of,
                               bool *is_cut, onv_error *err)
{
    search all = {.sizing = sizing, .training = training};
    onv_arena_init(&all.arena, SIZE_MAX);
    onv_status status = run(&all, is_cut, err);
    if (status == ONV_OK) status = give(&all, training->n_plans, *is_cut, of, err);
    onv_vec_cleanup(&all.at);
    onv_vec_cleanup(&all.runs);
    onv_arena_cleanup(&all.arena);
    return status;
}
