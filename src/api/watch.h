/* How long an analysis may go on: the limit on the time of searches, and the caller's word. */
#ifndef ONV_API_WATCH_H
#define ONV_API_WATCH_H

#include <time.h>

#include "onnxvram/onnxvram.h"

typedef struct onv_watch {
    struct timespec start;
    uint64_t seconds;
    bool late; /* the limit was passed */
    const onv_options *options;
} onv_watch;

onv_watch onv_watch_start(const onv_options *options);

/* Tells the caller what is worked on. */
void onv_tell(const onv_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether to stop. The context is the watch: searches take this as their `cancelled`. */
bool onv_watch_over(void *watch);

/* The error for it: a search that ran out of time has passed a limit. */
onv_status onv_watch_why(const onv_watch *watch, onv_error *err);

/* The error if it is time to stop, ONV_OK if not. */
onv_status onv_watch_check(onv_watch *watch, onv_error *err);

#endif
