/* Reports whose models are analysed by other processes. A part is what a format adds for one model: its text, then a
 * trailer with what the end of the report needs. The reader checks every length: a part may come from a process that
 * a hostile file took over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "report/format.h"

enum { MOST_FIELDS = 1 + ONV_COMPARED_MOST, LENGTH_BYTES = 4 };

void onv_write_between(onv_report_job *job, const char *text)
{
    if (job->written == 0) return;
    onv_write_text(job->out, text);
    job->between = strlen(text);
}

/* --- Writing ----------------------------------------------------------------------------------- */

static void put_trailer(onv_report_job *job)
{
    char between[24];
    const char *fields[MOST_FIELDS] = {between};
    size_t count = 1;
    uint32_t length = 0;
    snprintf(between, sizeof between, "%zu", job->between);
    for (size_t i = 0; job->compared.count > 0 && i < job->compared.at[0].count; i++)
        fields[count++] = job->compared.at[0].fields[i];
    job->out->most = 0; /* the limit is of the report */
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(fields[i]) + 1;
        onv_write_bytes(job->out, fields[i], bytes);
        length += (uint32_t)bytes;
    }
    onv_write_bytes(job->out, (const char *)&length, LENGTH_BYTES);
}

static bool discard(void *context, const char *text, size_t bytes)
{
    (void)context;
    (void)text;
    (void)bytes;
    return true;
}

onv_status onv_report_write_part(const onv_view *view, onv_format format, size_t expected,
                                 const onv_report_options *options, onv_write_fn write,
                                 void *context, onv_error *err)
{
    onv_report_job job;
    onv_status status = onv_report_start(&job, format, expected, options, discard, NULL, err);
    if (status == ONV_OK && job.format->begin != NULL) status = job.format->begin(&job);
    if (status == ONV_OK) {
        onv_writer_init(job.out, write, context);
        job.written = 1; /* a part is written as one that follows another */
        status = onv_report_put(&job, view, err);
    }
    if (status == ONV_OK) put_trailer(&job);
    if (status == ONV_OK) status = onv_writer_finish(job.out, err);
    onv_report_drop(&job);
    return status;
}

/* --- Reading ----------------------------------------------------------------------------------- */

/* The fields of the trailer, each with its terminator; false: it is not one. */
static bool split(const char *text, size_t bytes, const char *fields[], size_t *count)
{
    *count = 0;
    for (const char *end = text + bytes; text < end; text += strlen(text) + 1) {
        if (*count == MOST_FIELDS || memchr(text, '\0', (size_t)(end - text)) == NULL) return false;
        fields[(*count)++] = text;
    }
    return true;
}

static onv_status keep_row(onv_report_job *job, const char *const fields[], size_t count,
                           onv_error *err)
{
    onv_compared row = {.count = count};
    for (size_t i = 0; i < count; i++)
        row.fields[i] = onv_arena_printf(&job->kept, "%s", fields[i]);
    if (job->kept.failed || !onv_vec_push(&job->compared, row)) return onv_fail_memory(err);
    return ONV_OK;
}

onv_status onv_report_put_part(onv_report_job *job, const char *part, size_t bytes, onv_error *err)
{
    const char *fields[MOST_FIELDS];
    size_t count = 0;
    uint32_t length = 0;
    if (bytes >= LENGTH_BYTES) memcpy(&length, part + bytes - LENGTH_BYTES, LENGTH_BYTES);
    bool is_part = bytes >= LENGTH_BYTES && length <= bytes - LENGTH_BYTES &&
                   split(part + bytes - LENGTH_BYTES - length, length, fields, &count) &&
                   (count == 1 || (count > ONV_COMPARED_CELLS && count % 2 == 0));
    size_t text = is_part ? bytes - LENGTH_BYTES - length : 0;
    uint64_t before = is_part ? strtoull(fields[0], NULL, 10) : 0;
    if (!is_part || before > text)
        return onv_fail(err, ONV_ERR_FORMAT, "is not a part of a report: it is cut or changed");
    ONV_TRY(onv_report_open(job, err));
    size_t between = job->written > 0 ? 0 : (size_t)before;
    onv_write_bytes(job->out, part + between, text - between);
    if (count > 1) ONV_TRY(keep_row(job, fields + 1, count - 1, err));
    job->written++;
    return onv_writer_finish(job->out, err);
}
