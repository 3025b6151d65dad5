/* The tensors as CSV, one row each. */
#include "report/csv.h"

#include <string.h>

#include "base/fail.h"
#include "report/clean.h"
#include "report/format.h"
#include "report/value.h"

static bool is_blank(uint32_t c)
{
    return c <= ' ' || (c >= 0x7f && c <= 0xa0) || c == 0x1680 || (c >= 0x2000 && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f) || c == 0x3000 ||
           c == 0xfeff;
}

/* Spreadsheets skip blanks and may take full-width signs, small ones and the minus for what they look
 * like. */
static bool is_formula(const char *text)
{
    static const uint32_t signs[] = {'=',    '+',    '-',    '@',    0xff1d, 0xff0b, 0xff0d,
                                     0xff20, 0xfe66, 0xfe62, 0xfe63, 0xfe6b, 0x2212};
    if (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') return true;
    for (size_t length; *text != '\0'; text += length) {
        uint32_t code;
        length = onv_utf8_decode(text, &code);
        if (length == 0) return false;
        if (is_blank(code)) continue;
        for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
            if (code == signs[i]) return true;
        return false;
    }
    return false;
}

void onv_csv_field(onv_writer *out, const char *text)
{
    bool formula = is_formula(text);
    /* A semicolon parts cells where a comma marks decimals. */
    bool quoted = strpbrk(text, ",;\"\r\n\t") != NULL;
    if (quoted) onv_write_char(out, '"');
    if (formula) onv_write_char(out, '\'');
    while (*text != '\0') {
        onv_unit unit = onv_clean_next(&text, ONV_CLEAN_CELL);
        if (unit.text[0] == '"') onv_write_char(out, '"');
        onv_write_bytes(out, unit.text, unit.bytes);
    }
    if (quoted) onv_write_char(out, '"');
}

static void write_row(const onv_report_job *job, const onv_view *view, onv_value_id id)
{
    onv_writer *out = job->out;
    const onv_value *value = onv_model_value(&view->model, id);
    const onv_buffer *interval = onv_view_interval(view, id);
    const char *dtype = onv_view_dtype(job->arena, &value->type);
    const char *shape = onv_view_shape(view, job->arena, id, ONV_CLEAN_CELL);
    onv_csv_field(out, onv_view_path(view));
    onv_write_char(out, ',');
    onv_csv_field(out, value->name);
    onv_write_format(out, ",%s,", onv_view_kind(view, id));
    onv_csv_field(out, dtype != NULL ? dtype : "");
    onv_write_char(out, ',');
    onv_csv_field(out, shape != NULL ? shape : "");
    uint64_t bytes;
    onv_write_char(out, ',');
    if (onv_view_bytes(view, id, &bytes)) onv_write_format(out, "%llu", (unsigned long long)bytes);
    onv_write_format(out, ",%d,", onv_view_is_bound(view, id) ? 1 : 0);
    if (interval != NULL)
        onv_write_format(out, "%lu,%lu,", (unsigned long)interval->first,
                         (unsigned long)interval->last);
    else
        onv_write_text(out, ",,");
    if (interval != NULL && interval->becomes != ONV_NO_BUFFER)
        onv_csv_field(out, view->live.timeline.buffers.at[interval->becomes].label);
    onv_write_char(out, '\n');
}

onv_status onv_format_csv_begin(const onv_report_job *job)
{
    onv_write_text(job->out,
                   "model,name,kind,dtype,shape,bytes,bound,first_step,last_step,alias_of\n");
    return ONV_OK;
}

onv_status onv_format_csv_add(const onv_report_job *job)
{
    const onv_view *view = job->views[0];
    for (uint32_t v = 0; v < view->model.values.count && !job->out->failed; v++) {
        if (!onv_view_is_there(view, (onv_value_id){v})) continue;
        write_row(job, view, (onv_value_id){v});
        if (job->arena->failed) return onv_fail_memory(job->err);
        onv_arena_reset(job->arena);
    }
    return ONV_OK;
}
