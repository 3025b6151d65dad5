/* Traces from files and to files, and simulation straight from a file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc/trace_csv.h"
#include "base/heap.h"
#include "base/strings.h"

/* --- The text of a file ------------------------------------------------------------------------ */

typedef struct file_text {
    const char *at;
    size_t bytes;
    void *mapping;      /* of the whole text, or NULL */
    ONV_VEC(char) read; /* the text where it is not mapped */
} file_text;

static void close_text(file_text *t)
{
    if (t->mapping != NULL) munmap(t->mapping, t->bytes);
    onv_vec_cleanup(&t->read);
}

static onv_status read_all(int file, const char *path, file_text *t, onv_error *err)
{
    enum { PIECE = 1 << 20 };
    for (;;) {
        if (t->read.count > ONV_TRACE_MAX_TEXT_BYTES)
            return onv_fail(err, ONV_ERR_LIMIT, "%s: more than %" PRIu64 " bytes from a pipe", path,
                            ONV_TRACE_MAX_TEXT_BYTES);
        if (!onv_vec_reserve(&t->read, PIECE)) return onv_fail_memory(err);
        ssize_t n = read(file, t->read.at + t->read.count, PIECE);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return onv_fail(err, ONV_ERR_IO, "%s: %s", path, strerror(errno));
        if (n == 0) break;
        t->read.count += (size_t)n;
    }
    t->at = t->read.at;
    t->bytes = t->read.count;
    return ONV_OK;
}

static onv_status open_text(const char *path, file_text *t, onv_error *err)
{
    *t = (file_text){0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0) {
        onv_status status = onv_fail(err, ONV_ERR_IO, "%s: %s", path, strerror(errno));
        if (file >= 0) close(file);
        return status;
    }
    if (S_ISREG(info.st_mode) && info.st_size > 0) {
        void *mapping = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapping != MAP_FAILED) {
            madvise(mapping, (size_t)info.st_size, MADV_SEQUENTIAL);
            close(file);
            t->mapping = mapping;
            t->at = mapping;
            t->bytes = (size_t)info.st_size;
            return ONV_OK;
        }
    }
    onv_status status = read_all(file, path, t, err);
    close(file);
    if (status != ONV_OK) close_text(t);
    return status;
}

onv_status onv_trace_csv_scan_file(const char *path, onv_trace_take take, void *context,
                                   uint32_t *n_ids, onv_error *err)
{
    file_text t;
    ONV_TRY(open_text(path, &t, err));
    onv_status status = onv_trace_csv_scan(t.at, t.bytes, take, context, n_ids, err);
    close_text(&t);
    return status;
}

/* --- A trace in memory ------------------------------------------------------------------------- */

typedef struct builder {
    ONV_VEC(onv_event) events;
    onv_strings labels;
} builder;

static onv_status keep_event(void *context, const onv_event *event, onv_error *err)
{
    builder *b = context;
    if (b->events.count >= ONV_TRACE_MAX_EVENTS)
        return onv_fail(err, ONV_ERR_LIMIT, "the trace has more than %" PRIu64 " events",
                        ONV_TRACE_MAX_EVENTS);
    onv_event kept = *event;
    if (event->label != NULL) {
        kept.label = onv_intern(&b->labels, event->label);
        if (kept.label == NULL) return onv_fail_memory(err);
    }
    return onv_vec_push(&b->events, kept) ? ONV_OK : onv_fail_memory(err);
}

/* Text, or the file at `path` where that is not NULL. */
static onv_status read_trace(const char *path, const char *text, size_t bytes, onv_trace_csv *csv,
                             onv_error *err)
{
    builder b = {0};
    onv_arena_init(&csv->arena, ONV_TRACE_MAX_LABEL_BYTES);
    onv_strings_init(&b.labels, &csv->arena);
    uint32_t n_ids = 0;
    onv_status status;
    if (path != NULL)
        status = onv_trace_csv_scan_file(path, keep_event, &b, &n_ids, err);
    else
        status = onv_trace_csv_scan(text, bytes, keep_event, &b, &n_ids, err);
    onv_strings_cleanup(&b.labels);
    if (status != ONV_OK) {
        onv_vec_cleanup(&b.events);
        onv_arena_cleanup(&csv->arena);
        return status;
    }
    csv->trace = (onv_trace){.events = b.events.at, .count = b.events.count, .n_ids = n_ids};
    return ONV_OK;
}

onv_status onv_trace_csv_read(const char *text, size_t bytes, onv_trace_csv *csv, onv_error *err)
{
    return read_trace(NULL, text, bytes, csv, err);
}

onv_status onv_trace_csv_read_file(const char *path, onv_trace_csv *csv, onv_error *err)
{
    return read_trace(path, NULL, 0, csv, err);
}

void onv_trace_csv_cleanup(onv_trace_csv *csv)
{
    onv_vec_free(csv->trace.events);
    onv_arena_cleanup(&csv->arena);
    csv->trace = (onv_trace){0};
}

/* --- Writing ----------------------------------------------------------------------------------- */

enum { OUT_BYTES = 1 << 16 };

typedef struct out {
    char buffer[OUT_BYTES];
    size_t used;
    onv_write_fn write;
    void *context;
    bool ok;
} out;

static void flush(out *o)
{
    if (o->ok && o->used > 0) o->ok = o->write(o->context, o->buffer, o->used);
    o->used = 0;
}

static void put(out *o, const char *characters, size_t bytes)
{
    if (bytes > sizeof o->buffer - o->used) flush(o);
    if (bytes > sizeof o->buffer) {
        if (o->ok) o->ok = o->write(o->context, characters, bytes);
        return;
    }
    memcpy(o->buffer + o->used, characters, bytes);
    o->used += bytes;
}

static void put_label(out *o, const char *label)
{
    size_t length = strlen(label);
    put(o, ",", 1);
    if (strpbrk(label, ",\"\r\n") == NULL) {
        put(o, label, length);
        return;
    }
    put(o, "\"", 1);
    for (const char *quote; (quote = strchr(label, '"')) != NULL; label = quote + 1) {
        put(o, label, (size_t)(quote + 1 - label));
        put(o, "\"", 1);
    }
    put(o, label, strlen(label));
    put(o, "\"", 1);
}

static void put_event(out *o, const onv_event *event)
{
    char line[64];
    int n;
    if (event->is_free)
        n = snprintf(line, sizeof line, "free,%" PRIu32, event->id);
    else
        n = snprintf(line, sizeof line, "alloc,%" PRIu32 ",%" PRIu64 ",%" PRIu32, event->id,
                     event->bytes, event->step);
    put(o, line, (size_t)n);
    if (!event->is_free && event->label != NULL) put_label(o, event->label);
    put(o, "\n", 1);
}

onv_status onv_trace_csv_write(const onv_trace *trace, onv_write_fn write, void *context,
                               onv_error *err)
{
    out *o = onv_heap_alloc(sizeof *o);
    if (o == NULL) return onv_fail_memory(err);
    o->used = 0;
    o->write = write;
    o->context = context;
    o->ok = true;
    for (size_t i = 0; i < trace->count && o->ok; i++) put_event(o, &trace->events[i]);
    flush(o);
    bool ok = o->ok;
    onv_heap_free(o);
    return ok ? ONV_OK : onv_fail(err, ONV_ERR_IO, "the trace could not be written");
}

/* --- Simulation -------------------------------------------------------------------------------- */

typedef struct fleet {
    onv_allocator *allocators;
    size_t count;
} fleet;

static onv_status feed_all(void *context, const onv_event *event, onv_error *err)
{
    fleet *f = context;
    for (size_t i = 0; i < f->count; i++)
        ONV_TRY(onv_allocator_feed(&f->allocators[i], event, err));
    return ONV_OK;
}

onv_status onv_alloc_simulate_file(const char *path, const onv_alloc_model *const *models,
                                   size_t count, const onv_alloc_options *options,
                                   onv_alloc_result *results, onv_write_fn write, void *context,
                                   onv_error *err)
{
    fleet f = {.allocators = onv_heap_calloc(count, sizeof *f.allocators)};
    if (f.allocators == NULL) return onv_fail_memory(err);
    onv_status status = ONV_OK;
    for (; f.count < count; f.count++) {
        status = onv_allocator_init(&f.allocators[f.count], models[f.count], options, err);
        if (status != ONV_OK) break;
    }
    if (status == ONV_OK) status = onv_trace_csv_scan_file(path, feed_all, &f, NULL, err);
    for (size_t i = 0; i < f.count; i++) {
        if (status == ONV_OK) {
            onv_allocator_result(&f.allocators[i], &results[i]);
            if (write != NULL && !onv_allocator_summary(&f.allocators[i], write, context))
                status = onv_fail(err, ONV_ERR_IO, "the summary could not be written");
        }
        onv_allocator_cleanup(&f.allocators[i]);
    }
    onv_heap_free(f.allocators);
    return status;
}
