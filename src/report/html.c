/* The page: a template (web/report.html) whose marks are replaced. All figures are the JSON report's, in one
 * block that the page reads; without JavaScript a picture and the text report are shown. */
#include <string.h>
#include <zlib.h>

#include "base/base64.h"
#include "base/fail.h"
#include "base/heap.h"
#include "program/archive.h"
#include "report/clean.h"
#include "report/embedded.h"
#include "report/sections.h"
#include "report/viewers.h"

enum { NAME_COLUMNS = 80 };

/* Around a report, or around another document of the program. */
typedef struct page {
    onv_report_job *job; /* NULL: it is another one, */
    const char *title, *json, *still;
    const char *style, *scripts; /* of web/: scripts follow each other up to an empty one */
    onv_writer *out;
} page;

static onv_status put_title(const page *p)
{
    const onv_report_job *job = p->job;
    if (job == NULL)
        onv_write_fitted(p->out, p->title, NAME_COLUMNS, ONV_CLEAN_MARKDOWN, ONV_CUT_MIDDLE);
    for (size_t i = 0; job != NULL && i < job->count; i++) {
        if (i > 0) onv_write_text(job->out, ", ");
        onv_write_fitted(job->out, onv_view_file(job->views[i]), NAME_COLUMNS, ONV_CLEAN_MARKDOWN,
                         ONV_CUT_MIDDLE);
    }
    return ONV_OK;
}

static onv_status put_scripts(const page *p)
{
    for (const char *at = p->scripts; *at != '\0'; at += strlen(at) + 1) {
        onv_write_text(p->out, "<script>");
        onv_write_text(p->out, at);
        onv_write_text(p->out, "</script>\n");
    }
    return ONV_OK;
}

/* --- Without JavaScript ------------------------------------------------------------------------ */

/* An onv_write_fn over the page: what HTML acts on becomes text. */
static bool put_escaped(void *to, const char *text, size_t bytes)
{
    onv_writer *out = to;
    for (size_t i = 0; i < bytes; i++)
        if (strchr("<>&", text[i]) != NULL && text[i] != '\0')
            onv_write_format(out, "&#%u;", (unsigned)text[i]);
        else
            onv_write_char(out, text[i]);
    return !out->failed;
}

static onv_status put_text(const onv_report_job *job, const onv_view *view)
{
    enum { WIDTH = 120 };
    onv_report_options options = job->options;
    onv_writer text;
    options.color = false;
    options.unicode = true;
    options.width = WIDTH;
    options.verbosity = 0;
    onv_writer_init(&text, put_escaped, job->out);
    onv_write_text(job->out, "<pre>");
    const onv_page plain = onv_page_make(&text, job->arena, &options);
    onv_write_view(view, &plain, options.top);
    onv_status status = onv_writer_finish(&text, job->err);
    onv_write_text(job->out, "</pre>\n");
    return status;
}

static onv_status put_still(const page *p)
{
    onv_report_job *job = p->job;
    if (job == NULL) {
        onv_write_text(p->out, p->still);
        return ONV_OK;
    }
    ONV_TRY(onv_format_svg_write(job));
    for (size_t i = 0; i < job->count; i++) ONV_TRY(put_text(job, job->views[i]));
    return ONV_OK;
}

/* --- What is packed ------------------------------------------------------------------------------ */

/* A writer whose text is deflated and written as base64 to another one: what a page takes of a large report. */
typedef struct packer {
    onv_writer *to;
    z_stream stream; /* zlib's format */
    unsigned char packed[3 * 4096];
} packer;

/* false: out of memory. Then and after end_packing() nothing is to be cleaned up. */
static bool begin_packing(packer *p, onv_writer *to)
{
    p->to = to;
    p->stream = (z_stream){.zalloc = onv_program_zalloc, .zfree = onv_program_zfree};
    /* Names and numbers that repeat: the fastest level leaves a thirtieth. */
    if (deflateInit(&p->stream, Z_BEST_SPEED) != Z_OK) return false;
    p->stream.next_out = p->packed;
    p->stream.avail_out = sizeof p->packed;
    return true;
}

/* Hands over what is packed, where the buffer is full or nothing follows. */
static void drain(packer *p)
{
    char text[sizeof p->packed / 3 * 4];
    size_t n = sizeof p->packed - p->stream.avail_out; /* whole groups, but at the end */
    onv_base64_encode(p->packed, n, text);
    onv_write_bytes(p->to, text, (n + 2) / 3 * 4);
    p->stream.next_out = p->packed;
    p->stream.avail_out = sizeof p->packed;
}

/* An onv_write_fn over the packer. */
static bool pack(void *context, const char *text, size_t bytes)
{
    packer *p = context;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): zlib reads it alone, and takes it without const */
    p->stream.next_in = (Bytef *)(uintptr_t)text;
    p->stream.avail_in = (uInt)bytes; /* a buffer of the writer, at most */
    while (p->stream.avail_in > 0) {
        if (deflate(&p->stream, Z_NO_FLUSH) == Z_STREAM_ERROR) return false;
        if (p->stream.avail_out == 0) drain(p);
    }
    return !p->to->failed;
}

/* Writes the rest; false: out of memory. */
static bool end_packing(packer *p)
{
    int status = Z_OK;
    p->stream.avail_in = 0;
    while (status == Z_OK) {
        status = deflate(&p->stream, Z_FINISH);
        drain(p);
    }
    deflateEnd(&p->stream);
    return status == Z_STREAM_END;
}

/* --- The data ------------------------------------------------------------------------------------ */

static void put_report(const onv_report_job *job, onv_writer *to)
{
    onv_json json;
    onv_json_init(&json, to, job->arena);
    json.is_embedded = true;
    onv_json_write_document(job, &json);
}

/* A page of many nodes would have tens of megabytes: it has them deflated, and a browser inflates them. */
static bool is_large(const onv_report_job *job)
{
    enum { MANY = 5000 };
    size_t nodes = 0;
    for (size_t i = 0; i < job->count; i++) nodes += job->views[i]->model.nodes.count;
    return nodes > MANY;
}

/* Brackets are in strings alone, and nothing else of JSON ends a script. */
static void put_json(onv_writer *out, const char *json)
{
    for (const char *at = json; *at != '\0'; at++)
        if (strchr("<>&", *at) != NULL)
            onv_write_format(out, "\\u%04x", (unsigned)*at);
        else
            onv_write_char(out, *at);
}

static onv_status put_data(const page *p)
{
    const onv_report_job *job = p->job;
    if (job == NULL) {
        put_json(p->out, p->json);
        return ONV_OK;
    }
    if (!is_large(job)) {
        put_report(job, job->out);
        return ONV_OK;
    }
    /* Not of the arena, which the report empties between models. */
    packer to;
    onv_writer plain;
    if (!begin_packing(&to, job->out)) return onv_fail_memory(job->err);
    onv_writer_init(&plain, pack, &to);
    put_report(job, &plain);
    onv_status status = onv_writer_finish(&plain, job->err);
    return end_packing(&to) || status != ONV_OK ? status : onv_fail_memory(job->err);
}

/* --- The template ------------------------------------------------------------------------------ */

static onv_status put_part(const page *p, const char *name, size_t length)
{
    const struct {
        const char *name, *text;
        onv_status (*put)(const page *p); /* in place of a text */
    } marks[] = {
        {"policy", .text = onv_page_policy}, {"title", .put = put_title},
        {"style", .text = p->style},         {"scripts", .put = put_scripts},
        {"still", .put = put_still},         {"data", .put = put_data},
    };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (strlen(marks[i].name) != length || memcmp(marks[i].name, name, length) != 0) continue;
        if (marks[i].put != NULL) return marks[i].put(p);
        onv_write_text(p->out, marks[i].text);
    }
    return ONV_OK;
}

static onv_status write_template(const page *p, const char *at)
{
    for (;;) {
        const char *mark = strstr(at, "{{"), *end = mark != NULL ? strstr(mark, "}}") : NULL;
        if (end == NULL) break;
        onv_write_bytes(p->out, at, (size_t)(mark - at));
        ONV_TRY(put_part(p, mark + 2, (size_t)(end - mark) - 2));
        at = end + 2;
    }
    onv_write_text(p->out, at);
    return ONV_OK;
}

static onv_status write_page(page *p, onv_error *err)
{
    char *files = onv_embedded_inflate(&onv_page_files);
    if (files == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < onv_page_files.bytes; i++)
        if (files[i] == ONV_PAGE_FILE_END) files[i] = '\0';
    p->style = files + strlen(files) + 1;
    p->scripts = p->style + strlen(p->style) + 1;
    onv_status status = write_template(p, files);
    onv_heap_free(files);
    return status;
}

onv_status onv_format_html_write(onv_report_job *job)
{
    return write_page(&(page){.job = job, .out = job->out}, job->err);
}

onv_status onv_page_around(const char *title, const char *json, const char *still, onv_writer *out,
                           onv_error *err)
{
    return write_page(&(page){.title = title, .json = json, .still = still, .out = out}, err);
}
