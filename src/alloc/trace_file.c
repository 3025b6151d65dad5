/* Traces from files: as timelines, or served while they are read. */
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc/trace_csv.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"

/* --- The text of a file ------------------------------------------------------------------------ */

typedef struct file_text {
    const char *at;
    size_t bytes;
    void *mapping;       /* of the whole text, or NULL */
    onv_file_bytes read; /* the text where it is not mapped */
} file_text;

static void close_text(file_text *t)
{
    if (t->mapping != NULL) munmap(t->mapping, t->bytes);
    onv_vec_cleanup(&t->read);
}

static onv_status open_text(const char *path, file_text *t, onv_error *err)
{
    *t = (file_text){0};
    const char *why;
    int file = onv_file_open(path, &why);
    struct stat info;
    if (file < 0) return onv_fail(err, ONV_ERR_IO, "%s: %s", path, why);
    if (fstat(file, &info) != 0) info.st_mode = 0;
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
    onv_error local = {0};
    onv_status status = onv_file_read_all(file, ONV_TRACE_MAX_TEXT_BYTES, &t->read, &local);
    close(file);
    t->at = t->read.at;
    t->bytes = t->read.count;
    if (status == ONV_OK) return ONV_OK;
    close_text(t);
    return onv_fail(err, status, "%s: %s%s", path, local.message,
                    status == ONV_ERR_LIMIT ? " from a pipe" : "");
}

/* `context` is the path. */
static onv_status scan_file(void *context, onv_trace_take take, void *taker, onv_error *err)
{
    file_text t;
    ONV_TRY(open_text(*(const char **)context, &t, err));
    onv_status status = onv_trace_csv_scan(t.at, t.bytes, take, taker, NULL, err);
    close_text(&t);
    return status;
}

/* --- A trace as a timeline --------------------------------------------------------------------- */

typedef struct recording {
    onv_timeline *t;
    ONV_VEC(uint32_t) open; /* by id: its buffer */
    uint64_t n_events;
    uint32_t last_freed; /* in this step; ONV_NO_BUFFER: nothing was freed yet */
} recording;

/* Within a step allocations come first, then frees in the order of the allocations. */
static bool begin_step(recording *r)
{
    onv_step step = {.node = ONV_NO_NODE};
    r->last_freed = ONV_NO_BUFFER;
    return onv_vec_push(&r->t->steps, step);
}

static onv_status record_alloc(recording *r, const onv_trace_event *e, onv_error *err)
{
    onv_timeline *t = r->t;
    if (r->last_freed != ONV_NO_BUFFER && !begin_step(r)) return onv_fail_memory(err);
    uint32_t buffer = (uint32_t)t->buffers.count, step = (uint32_t)t->steps.count - 1;
    while (r->open.count <= e->id)
        if (!onv_vec_push(&r->open, ONV_NO_BUFFER)) return onv_fail_memory(err);
    r->open.at[e->id] = buffer;
    onv_buffer b = onv_buffer_new(ONV_BUFFER_ACTIVATION, e->bytes, step, UINT32_MAX, NULL);
    b.stream = e->stream;
    return onv_vec_push(&t->buffers, b) ? ONV_OK : onv_fail_memory(err);
}

static onv_status record(void *context, const onv_trace_event *e, onv_error *err)
{
    recording *r = context;
    if (r->n_events++ >= ONV_TRACE_MAX_EVENTS)
        return onv_fail(err, ONV_ERR_LIMIT, "the trace has more than %" PRIu64 " events",
                        ONV_TRACE_MAX_EVENTS);
    if (!e->is_free) return record_alloc(r, e, err);
    uint32_t buffer = r->open.at[e->id];
    bool in_order = r->last_freed == ONV_NO_BUFFER || r->last_freed < buffer;
    if (!in_order && !begin_step(r)) return onv_fail_memory(err);
    r->last_freed = buffer;
    r->t->buffers.at[buffer].last = (uint32_t)r->t->steps.count - 1;
    return ONV_OK;
}

onv_status onv_trace_read(onv_trace_source source, void *context, onv_timeline *t, onv_error *err)
{
    recording r = {.t = t};
    *t = (onv_timeline){0};
    onv_status status = begin_step(&r) ? source(context, record, &r, err) : onv_fail_memory(err);
    /* What was never freed is there behind the last event. */
    if (status == ONV_OK && r.last_freed != ONV_NO_BUFFER && !begin_step(&r))
        status = onv_fail_memory(err);
    for (size_t i = 0; i < t->buffers.count; i++)
        if (t->buffers.at[i].last == UINT32_MAX)
            t->buffers.at[i].last = (uint32_t)t->steps.count - 1;
    onv_vec_cleanup(&r.open);
    if (status != ONV_OK) onv_timeline_cleanup(t);
    return status;
}

onv_status onv_trace_csv_read_file(const char *path, onv_timeline *t, onv_error *err)
{
    return onv_trace_read(scan_file, &path, t, err);
}

/* --- Simulation -------------------------------------------------------------------------------- */

static onv_status serve(void *context, const onv_trace_event *event, onv_error *err)
{
    onv_allocator *a = context;
    if (event->is_free) return onv_allocator_free(a, event->id, err);
    a->stream = event->stream;
    return onv_allocator_alloc(a, event->id, event->bytes, err);
}

onv_status onv_alloc_simulate(onv_trace_source source, void *context, const onv_alloc_model *model,
                              const onv_alloc_options *options, onv_held_figures *figures,
                              onv_write_fn write, void *write_context, onv_error *err)
{
    onv_allocator a;
    ONV_TRY(onv_allocator_init(&a, model, options, err));
    onv_status status = source(context, serve, &a, err);
    onv_allocator_figures(&a, figures);
    if (status == ONV_OK && write != NULL && !onv_allocator_summary(&a, write, write_context))
        status = onv_fail(err, ONV_ERR_IO, "the summary could not be written");
    onv_allocator_cleanup(&a);
    return status;
}

onv_status onv_alloc_simulate_file(const char *path, const onv_alloc_model *model,
                                   const onv_alloc_options *options, onv_held_figures *figures,
                                   onv_write_fn write, void *context, onv_error *err)
{
    return onv_alloc_simulate(scan_file, &path, model, options, figures, write, context, err);
}
