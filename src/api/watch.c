#include "api/watch.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/fail.h"
#include "load/limits.h"

static void enter(onv_watch *watch)
{
    watch->quota.over = onv_watch_over;
    watch->quota.context = watch;
    watch->quota.ask_at = 0;
    watch->before = onv_quota_enter(&watch->quota);
    watch->locale = onv_locale_enter();
}

void onv_watch_start(onv_watch *watch, const onv_options *options)
{
    onv_limits limits = onv_limits_resolve(options->limits);
    uint64_t fallback = options->checkpoint != NULL ? ONV_DEFAULT_PLANS_WORK : 0;
    uint64_t most_work = limits.work > 0 ? limits.work : fallback;
    *watch = (onv_watch){.quota = {.limit = (size_t)limits.arena_bytes, .most_work = most_work},
                         .is_given = limits.work > 0,
                         .seconds = limits.seconds,
                         .cancelled = options->cancelled,
                         .cancel_context = options->cancel_context};
    clock_gettime(CLOCK_MONOTONIC, &watch->start);
    enter(watch);
}

/* b - a */
static struct timespec between(struct timespec a, struct timespec b)
{
    enum { SECOND = 1000000000 };
    bool borrows = b.tv_nsec < a.tv_nsec;
    return (struct timespec){.tv_sec = b.tv_sec - a.tv_sec - borrows,
                             .tv_nsec = b.tv_nsec - a.tv_nsec + (borrows ? SECOND : 0)};
}

/* While nobody is watched `start` holds what has passed. */
onv_status onv_watch_leave(onv_watch *watch, onv_status status, onv_error *err)
{
    struct timespec now;
    status = onv_watch_verdict(watch, status, err);
    clock_gettime(CLOCK_MONOTONIC, &now);
    watch->start = between(watch->start, now);
    watch->cancelled = NULL;
    onv_locale_leave(watch->locale);
    onv_quota_enter(watch->before);
    return status;
}

void onv_watch_resume(onv_watch *watch)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    watch->start = between(watch->start, now);
    enter(watch);
}

bool onv_watch_has_room(const onv_watch *w)
{
    enum { SEARCH = 64 };
    const onv_quota *q = &w->quota;
    return q->limit - q->used > 2 * q->most &&
           (q->most_work == 0 || q->work < q->most_work / SEARCH);
}

void onv_watch_begin_searches(onv_watch *watch)
{
    watch->searches = !watch->is_given;
    if (watch->searches) watch->quota.most_work = watch->quota.work + ONV_DEFAULT_SEARCH_WORK;
}

/* One that is spent stays for the verdict. */
void onv_watch_end_searches(onv_watch *watch)
{
    if (!watch->searches || watch->quota.spent) return;
    watch->searches = false;
    watch->quota.most_work = 0;
}

uint64_t onv_watch_begin_sizes(onv_watch *watch, bool with_plans)
{
    onv_quota *q = &watch->quota;
    uint64_t before = q->most_work;
    uint64_t most = with_plans ? ONV_DEFAULT_PLAN_SIZES_WORK : ONV_DEFAULT_SIZES_WORK;
    if (watch->searches && before - q->work > most) q->most_work = q->work + most;
    return before;
}

void onv_watch_end_sizes(onv_watch *watch, uint64_t before)
{
    if (!watch->quota.spent && watch->quota.most_work < before) watch->quota.most_work = before;
}

bool onv_watch_forgive_search(onv_watch *watch)
{
    onv_quota *q = &watch->quota;
    bool is_search = watch->searches && q->work > q->most_work && !q->refused;
    if (!is_search || onv_watch_over(watch)) return false;
    q->most_work = q->work + ONV_DEFAULT_SIZES_WORK / 4;
    q->ask_at = 0;
    q->spent = false;
    return true;
}

bool onv_watch_forgive_memory(onv_watch *watch)
{
    onv_quota *q = &watch->quota;
    if (!q->refused || q->spent || onv_watch_over(watch)) return false;
    q->refused = false;
    return true;
}

void onv_tell(const onv_options *options, const char *format, ...)
{
    char stage[80];
    va_list args;
    if (options->progress == NULL) return;
    va_start(args, format);
    vsnprintf(stage, sizeof stage, format, args);
    va_end(args);
    options->progress(options->progress_context, stage);
}

bool onv_watch_over(void *watch)
{
    onv_watch *w = watch;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    w->late = (uint64_t)between(w->start, now).tv_sec >= w->seconds;
    return w->late || (w->cancelled != NULL && w->cancelled(w->cancel_context));
}

onv_status onv_watch_why(const onv_watch *w, onv_error *err)
{
    const onv_quota *q = &w->quota;
    if (err != NULL) *err = (onv_error){0};
    if (q->most_work > 0 && q->work > q->most_work && w->searches)
        return onv_fail(err, ONV_ERR_LIMIT,
                        "the search, which repeats the analysis, takes more than %llu units of "
                        "work, the limit" ONV_RAISE("work"),
                        (unsigned long long)q->most_work);
    if (q->most_work > 0 && q->work > q->most_work)
        return onv_fail(
            err, ONV_ERR_LIMIT,
            "the analysis takes more than %llu units of work, the limit" ONV_RAISE("work"),
            (unsigned long long)q->most_work);
    if (!w->late) return onv_fail(err, ONV_ERR_CANCELLED, "the analysis was cancelled");
    return onv_fail(err, ONV_ERR_LIMIT,
                    "the analysis takes more than %llu s, the limit" ONV_RAISE("seconds"),
                    (unsigned long long)w->seconds);
}

onv_status onv_watch_check(onv_watch *w, onv_error *err)
{
    return onv_watch_over(w) ? onv_watch_why(w, err) : ONV_OK;
}

onv_status onv_watch_verdict(const onv_watch *w, onv_status status, onv_error *err)
{
    /* What goes on without the memory that it asked for would depend on the limit. */
    if (w->quota.refused) return onv_limits_spent(w->quota.limit, err);
    return w->quota.spent || status == ONV_ERR_CANCELLED ? onv_watch_why(w, err) : status;
}
