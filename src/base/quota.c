#include "base/quota.h"

/* Some milliseconds of work. */
enum { ASK_EVERY = 1 << 16 };

static _Thread_local onv_quota *quota;

onv_quota *onv_quota_enter(onv_quota *entered)
{
    onv_quota *before = quota;
    quota = entered;
    return before;
}

onv_quota *onv_quota_now(void)
{
    return quota;
}

static bool ask(onv_quota *q)
{
    if (q->spent) return false;
    if (q->most_work > 0 && q->work > q->most_work) q->spent = true;
    if (!q->spent && q->over != NULL && q->over(q->context)) q->spent = true;
    q->ask_at = q->spent ? 0 : q->work + ASK_EVERY;
    if (q->most_work > 0 && q->ask_at > q->most_work) q->ask_at = q->most_work;
    return !q->spent;
}

bool onv_work(uint64_t units)
{
    onv_quota *q = quota;
    if (q == NULL) return true;
    q->work += units;
    return q->work <= q->ask_at || ask(q);
}
