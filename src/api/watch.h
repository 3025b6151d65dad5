/* What a call may take: its quota of memory, with the limits on time and work, and the caller's word. Meanwhile its thread has
 * the C locale. */
#ifndef ONV_API_WATCH_H
#define ONV_API_WATCH_H

#include <locale.h>
#include <time.h>

#include "base/quota.h"
#include "onnxvram/onnxvram.h"

/* The C locale for the thread of a call: what is read and written does not depend on the caller's. */
typedef struct onv_locale {
    locale_t plain, before;
} onv_locale;

/* Without memory the caller's locale stays. */
static inline onv_locale onv_locale_enter(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return (onv_locale){plain, uselocale(plain)};
}

static inline void onv_locale_leave(onv_locale l)
{
    uselocale(l.before);
    if (l.plain != (locale_t)0) freelocale(l.plain);
}

typedef struct onv_watch {
    onv_quota quota;
    struct timespec start;
    uint64_t seconds;
    bool late;     /* the limit was passed */
    bool is_given; /* the caller's limit on work */
    bool searches; /* without that: work has a limit of its own while the analysis is repeated */
    bool (*cancelled)(void *context);
    void *cancel_context;
    onv_quota *before; /* of the thread, and its locale */
    onv_locale locale;
} onv_watch;

/* From now on what this thread does counts, until onv_watch_leave(), which returns the verdict. The watch stays where it is
 * meanwhile. */
void onv_watch_start(onv_watch *watch, const onv_options *options);
onv_status onv_watch_leave(onv_watch *watch, onv_status status, onv_error *err);

/* Goes on with what a watch that was left has not taken; nobody cancels it any more. */
void onv_watch_resume(onv_watch *watch);

/* Whether the limits leave room for some tens of further analyses like the one that was made. */
bool onv_watch_has_room(const onv_watch *watch);

/* Between the two, analyses of the same model with other sizes or settings share a limit on work, unless the caller gave
 * one. */
void onv_watch_begin_searches(onv_watch *watch);
void onv_watch_end_searches(onv_watch *watch);

/* The search for one largest size takes a part of that limit, among plans a larger one. Gives the limit before, which the end takes. */
uint64_t onv_watch_begin_sizes(onv_watch *watch, bool with_plans);
void onv_watch_end_sizes(onv_watch *watch, uint64_t before);

/* Whether a search passed its limit, and nothing else. If so, what follows may take an eighth of a search's part again. */
bool onv_watch_forgive_search(onv_watch *watch);

/* Whether an analysis that was given up passed the limit on memory, and nothing else. If so, what follows may take
 * again what it gave back. */
bool onv_watch_forgive_memory(onv_watch *watch);

/* Tells the caller what is worked on. */
void onv_tell(const onv_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether to stop. The context is the watch: searches take this as their `cancelled`. */
bool onv_watch_over(void *watch);

/* The error for it: one that ran out of time or work has passed a limit. */
onv_status onv_watch_why(const onv_watch *watch, onv_error *err);

/* The error if it is time to stop, ONV_OK if not. */
onv_status onv_watch_check(onv_watch *watch, onv_error *err);

/* What became of a call: its own status, or the limit that it passed, whatever it made of that. */
onv_status onv_watch_verdict(const onv_watch *watch, onv_status status, onv_error *err);

#endif
