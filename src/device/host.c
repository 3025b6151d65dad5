/* Host memory as a device: every check of a replay runs, no GPU takes part.
 *
 * Memory comes from mmap, so that it leaves the process when it is freed. The device is as large as
 * what the machine has available (/proc/meminfo), less an eighth of it so that nothing else
 * suffers, within the limit of a control group, of the address space and the one that was asked for. It counts what it
 * handed out to the byte; its pool rounds to 512 bytes, as the model of CUDA's pool does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/fail.h"
#include "device/device.h"
#include "device/pattern.h"

#define POOL_BYTES  UINT64_C(512)
#define KEPT_SHARE  8
#define LEAST_BYTES (UINT64_C(64) << 20) /* with less the machine is in trouble already */

typedef struct host_state {
    uint64_t capacity, held;
    onv_device_pool pool;
} host_state;

static void *memory_at(onv_device_address address)
{
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): devices have numbers */
}

/* UINT64_MAX where it does not begin with one. */
static uint64_t number_in(const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    return end == text || errno != 0 ? UINT64_MAX : value;
}

/* The number behind `key` in a file of lines, or the file's only number; UINT64_MAX where there is
 * none. */
static uint64_t read_number(const char *path, const char *key)
{
    char line[256];
    uint64_t value = UINT64_MAX;
    size_t length = strlen(key);
    FILE *file = fopen(path, "re");
    if (file == NULL) return value;
    while (value == UINT64_MAX && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, length) == 0) value = number_in(line + length);
    fclose(file);
    return value;
}

static uint64_t available_bytes(void)
{
    uint64_t kib = read_number("/proc/meminfo", "MemAvailable:"), bytes;
    if (kib == UINT64_MAX || !onv_u64_mul(kib, 1024, &bytes)) bytes = 0;
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", "");
    if (limit != UINT64_MAX && used != UINT64_MAX) {
        uint64_t rest = limit > used ? limit - used : 0;
        if (rest < bytes) bytes = rest;
    }
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
        uint64_t pages = read_number("/proc/self/statm", ""), taken;
        if (pages == UINT64_MAX || !onv_u64_mul(pages, (uint64_t)sysconf(_SC_PAGESIZE), &taken))
            taken = space.rlim_cur;
        uint64_t rest = space.rlim_cur > taken ? space.rlim_cur - taken : 0;
        if (rest < bytes) bytes = rest;
    }
    return bytes;
}

static onv_status host_open(onv_device *d, onv_error *err)
{
    host_state *h = d->state;
    uint64_t available = available_bytes();
    if (available < LEAST_BYTES)
        return onv_fail(err, ONV_ERR_DEVICE,
                        "host memory: only %" PRIu64 " MiB are available, or that is not known",
                        available >> 20);
    h->capacity = available - available / KEPT_SHARE;
    if (d->limit_bytes < h->capacity) h->capacity = d->limit_bytes;
    d->info.granularity_bytes = 1;
    d->info.pool_granularity_bytes = POOL_BYTES;
    d->info.filled_by = "the processor";
    snprintf(d->info.name, sizeof d->info.name, "host memory (no GPU)");
    return ONV_OK;
}

static onv_status host_memory(onv_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
                              onv_error *err)
{
    const host_state *h = d->state;
    (void)err;
    *free_bytes = h->capacity - h->held;
    *total_bytes = h->capacity;
    return ONV_OK;
}

static uint64_t pool_size(uint64_t bytes, bool pooled)
{
    return pooled ? (bytes + POOL_BYTES - 1) / POOL_BYTES * POOL_BYTES : bytes;
}

static onv_status host_alloc(onv_device *d, uint64_t bytes, bool pooled,
                             onv_device_address *address, onv_error *err)
{
    host_state *h = d->state;
    (void)err;
    *address = 0;
    uint64_t left = h->capacity - h->held;
    if (bytes > left || bytes > SIZE_MAX || pool_size(bytes, pooled) > left) return ONV_OK;
    void *memory =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return ONV_OK;
    /* Fewer faults; where there are no huge pages, nothing is lost. */
    (void)madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
    *address = (onv_device_address)(uintptr_t)memory;
    h->held += pool_size(bytes, pooled);
    if (!pooled) return ONV_OK;
    onv_device_pool *p = &h->pool;
    p->used += pool_size(bytes, true);
    p->reserved = p->used;
    if (p->used > p->used_peak) p->used_peak = p->reserved_peak = p->used;
    return ONV_OK;
}

static onv_status host_free(onv_device *d, onv_device_address address, uint64_t bytes, bool pooled,
                            onv_error *err)
{
    host_state *h = d->state;
    if (munmap(memory_at(address), (size_t)bytes) != 0)
        return onv_fail(err, ONV_ERR_DEVICE, "host memory cannot be given back");
    h->held -= pool_size(bytes, pooled);
    if (!pooled) return ONV_OK;
    h->pool.used -= pool_size(bytes, true);
    h->pool.reserved = h->pool.used;
    return ONV_OK;
}

static onv_status host_pool_reset(onv_device *d, onv_error *err)
{
    host_state *h = d->state;
    (void)err;
    h->pool.used_peak = h->pool.reserved_peak = h->pool.used;
    return ONV_OK;
}

static onv_status host_pool(onv_device *d, onv_device_pool *pool, onv_error *err)
{
    (void)err;
    *pool = ((const host_state *)d->state)->pool;
    return ONV_OK;
}

static onv_status host_fill(onv_device *d, onv_device_address to, uint64_t seed, uint64_t first,
                            uint64_t bytes, onv_error *err)
{
    (void)d;
    (void)err;
    onv_pattern_fill(memory_at(to), seed, first, bytes);
    return ONV_OK;
}

static onv_status host_check(onv_device *d, onv_device_address at, uint64_t seed, uint64_t first,
                             uint64_t bytes, uint64_t *wrong, onv_error *err)
{
    (void)d;
    (void)err;
    *wrong = onv_pattern_check(memory_at(at), seed, first, bytes);
    return ONV_OK;
}

const onv_device_kind onv_device_host = {
    .name = "host",
    .summary = "memory of this machine; no GPU takes part",
    .state_bytes = sizeof(host_state),
    .open = host_open,
    .memory = host_memory,
    .alloc = host_alloc,
    .free = host_free,
    .pool_reset = host_pool_reset,
    .pool = host_pool,
    .fill = host_fill,
    .check = host_check,
};
