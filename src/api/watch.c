#include "api/watch.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"
#include "load/limits.h"

onv_watch onv_watch_start(const onv_options *options)
{
    onv_watch w = {.seconds = onv_limits_resolve(options->limits).seconds, .options = options};
    clock_gettime(CLOCK_MONOTONIC, &w.start);
    return w;
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
    int64_t passed = now.tv_sec - w->start.tv_sec - (now.tv_nsec < w->start.tv_nsec);
    w->late = (uint64_t)passed >= w->seconds;
    return w->late ||
           (w->options->cancelled != NULL && w->options->cancelled(w->options->cancel_context));
}

onv_status onv_watch_why(const onv_watch *w, onv_error *err)
{
    if (err != NULL) *err = (onv_error){0};
    if (!w->late) return onv_fail(err, ONV_ERR_CANCELLED, "the analysis was cancelled");
    return onv_fail(err, ONV_ERR_LIMIT,
                    "searches take more than %llu s, the limit" ONV_RAISE("seconds"),
                    (unsigned long long)w->seconds);
}

onv_status onv_watch_check(onv_watch *w, onv_error *err)
{
    return onv_watch_over(w) ? onv_watch_why(w, err) : ONV_OK;
}
