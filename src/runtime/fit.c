#include "runtime/fit.h"

void onv_fit_judge(onv_fit *fit, const onv_runtime_result *results, size_t count)
{
    /* Whole percents of 2^64 bytes fit 128 bits. */
    unsigned __int128 kept = (unsigned __int128)fit->budget_bytes * (100 - fit->margin_percent);
    fit->usable_bytes = (uint64_t)(kept / 100);
    fit->fits = count > 0;
    for (size_t i = 0; i < count && i < ONV_MAX_RUNTIMES; i++) {
        fit->of[i].fits = results[i].total_bytes.high <= fit->usable_bytes;
        fit->fits &= fit->of[i].fits;
    }
}
