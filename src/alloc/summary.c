/* Allocators as text: the summary table, the dump, the row of CSV. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "alloc/alloc.h"

typedef struct out {
    onv_write_fn write;
    void *context;
    bool ok;
} out;

__attribute__((format(printf, 2, 3))) static void put(out *o, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line) o->ok = false;
    if (o->ok) o->ok = o->write(o->context, line, (size_t)n);
}

/* --- Summary ----------------------------------------------------------------------------------- */

static const struct row {
    const char *name;
    onv_alloc_metric metric;
    bool is_count;
} rows[] = {
    {"allocated", ONV_STAT_ALLOCATED_BYTES, false},
    {"requested", ONV_STAT_REQUESTED_BYTES, false},
    {"reserved", ONV_STAT_RESERVED_BYTES, false},
    {"inactive split", ONV_STAT_INACTIVE_BYTES, false},
    {"allocations", ONV_STAT_ALLOCATIONS, true},
    {"segments", ONV_STAT_SEGMENTS, true},
    {"inactive split blocks", ONV_STAT_INACTIVE_BLOCKS, true},
};

static void put_number(out *o, uint64_t n, bool is_count)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (is_count) {
        put(o, "  %13" PRIu64, n);
        return;
    }
    unsigned unit = 0;
    double scaled = (double)n;
    while (scaled >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        scaled /= 1024;
        unit++;
    }
    put(o, "  %9.*f %3s", unit == 0 ? 0 : 2, scaled, units[unit]);
}

static void put_stat(out *o, const char *name, const onv_stat *s, bool is_count)
{
    put(o, "%-22s", name);
    put_number(o, s->current, is_count);
    put_number(o, s->peak, is_count);
    put_number(o, s->added, is_count);
    put_number(o, s->added - s->current, is_count);
    put(o, "\n");
}

static void put_metric(out *o, const onv_allocator *a, const struct row *row)
{
    const onv_stat *s = a->stats.of[row->metric];
    put_stat(o, row->name, &s[ONV_POOL_ALL], row->is_count);
    if (s[ONV_POOL_LARGE].added == 0 && s[ONV_POOL_SMALL].added == 0) return;
    put_stat(o, "  large pool", &s[ONV_POOL_LARGE], row->is_count);
    put_stat(o, "  small pool", &s[ONV_POOL_SMALL], row->is_count);
    /* What is freed waits for no other stream, so active memory is allocated memory. */
    if (row->metric == ONV_STAT_ALLOCATED_BYTES)
        put_stat(o, "active", &s[ONV_POOL_ALL], row->is_count);
}

bool onv_allocator_summary(const onv_allocator *a, onv_write_fn write, void *context)
{
    out o = {write, context, true};
    put(&o, "%s: %s\n", a->model->name, a->model->summary);
    put(&o, "%-22s  %13s  %13s  %13s  %13s\n", "", "current", "peak", "total added",
        "total removed");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool inactive =
            rows[i].metric == ONV_STAT_INACTIVE_BYTES || rows[i].metric == ONV_STAT_INACTIVE_BLOCKS;
        if (!inactive || a->model->counts_inactive) put_metric(&o, a, &rows[i]);
    }
    put(&o,
        "calls to the device: %" PRIu64 " allocations, %" PRIu64 " frees, %" PRIu64 " retries\n",
        a->stats.device_allocs, a->stats.device_frees, a->stats.retries);
    if (a->out_of_memory)
        put(&o, "out of memory at event %zu, which asks for %" PRIu64 " bytes\n", a->oom_event,
            a->oom_bytes);
    return o.ok;
}

/* --- CSV --------------------------------------------------------------------------------------- */

const char onv_alloc_csv_header[] =
    "runtime,allocated_peak,reserved_peak,allocated_end,reserved_end,segments";

bool onv_alloc_write_csv(const char *runtime, const onv_held_figures *r, onv_write_fn write,
                         void *context)
{
    out o = {write, context, true};
    put(&o, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", runtime,
        r->allocated_peak, r->reserved_peak, r->allocated_end, r->reserved_end, r->segments);
    return o.ok;
}
