/* The timeline of a replay as CSV: what was held at each step, predicted next to measured. */
#include "base/fail.h"
#include "report/format.h"

static void write_rows(onv_writer *out, const onv_replay_result *r)
{
    for (uint32_t s = 0; s < r->n_steps && !out->failed; s++)
        onv_write_format(
            out, "%s,%s,%s,%lu,%llu,%llu,%llu,%llu\n", r->runtime, r->plan != NULL ? r->plan : "",
            r->mode, (unsigned long)s, (unsigned long long)r->predicted_held_at[s],
            (unsigned long long)r->measured_held_at[s], (unsigned long long)r->predicted_live_at[s],
            (unsigned long long)r->measured_live_at[s]);
}

onv_status onv_format_dump_replay_write(const onv_report_job *job)
{
    const onv_replays *replays = &job->views[0]->replays;
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "the replay dump takes one model at a time");
    if (replays->kind == NULL)
        return onv_fail(job->err, ONV_ERR_USAGE, "the replay dump needs a replay");
    onv_write_text(job->out, "runtime,plan,mode,step,predicted_bytes,measured_bytes,"
                             "predicted_live_bytes,measured_live_bytes\n");
    for (size_t i = 0; i < replays->results.count; i++)
        write_rows(job->out, &replays->results.at[i]);
    return ONV_OK;
}
