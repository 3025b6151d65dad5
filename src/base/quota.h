/* The quota of a thread: what its calls may take together: memory, work, time.
 *
 * Everything that an analysis allocates counts to its quota (heap.c), and every pass counts its work:
 * a unit for each node, value, buffer or edge it looks at, and for each 64 bytes that are allocated or
 * written. Work follows from the input alone; a clock is only asked once in a while. A quota that is
 * spent stays so: `onv_work` says so, and allocations fail. Whoever began it then knows why a pass
 * failed. The quota of a call is thread-local; the library has no other global state but the key of
 * its hashes.
 */
#ifndef ONV_BASE_QUOTA_H
#define ONV_BASE_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct onv_quota {
    size_t limit; /* of memory */
    size_t used;  /* as the allocator rounds it */
    size_t most;  /* that was used at once */
    bool refused; /* an allocation was, as it passed the limit */
    uint64_t work;
    uint64_t most_work;          /* 0: no limit */
    uint64_t ask_at;             /* work at which `over` is asked again */
    bool (*over)(void *context); /* whether to stop; NULL: never */
    void *context;
    bool spent; /* work passed its limit, or `over` said so */
} onv_quota;

/* From now on this thread's calls count to that quota; NULL: to none. Returns the one before. */
onv_quota *onv_quota_enter(onv_quota *entered);
onv_quota *onv_quota_now(void);

/* Counts; false where the pass is to fail, as work or time are spent. */
bool onv_work(uint64_t units);

/* The same in a function that returns a status. The error is filled in by whoever began the quota. */
#define ONV_WORK(units)                                                                            \
    do {                                                                                           \
        if (!onv_work(units)) return ONV_ERR_CANCELLED;                                            \
    } while (0)

#endif
