/* Devices: where a script is replayed.
 *
 * A kind of device is a strategy: a name and functions. `host` is the memory of this machine, `cuda`
 * a GPU through its driver. Running out of memory is an answer, not an error: an allocation then
 * gives the address 0. Errors are what leaves a device useless; closing it releases whatever it
 * still holds.
 *
 * fill and check may run behind the caller's back until sync; check waits for its result.
 */
#ifndef ONV_DEVICE_DEVICE_H
#define ONV_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef uint64_t onv_device_address;

typedef struct onv_device_info {
    /* What ran, for people: "NVIDIA H100", "host memory (no GPU)", "fake driver (no GPU)". */
    char name[160];
    bool is_gpu;
    uint64_t total_bytes, free_bytes; /* when it was opened */
    uint64_t granularity_bytes;       /* a plain allocation takes at most so much less one more */
    uint64_t pool_granularity_bytes;  /* one of the pool likewise; 0: there is no pool */
    bool has_context;                 /* context_bytes was measured */
    uint64_t context_bytes;           /* that creating the context took */
    int driver_version;               /* 12040: 12.4; 0: there is none */
    const char *filled_by;            /* "kernels", "copies", "the processor" */
} onv_device_info;

typedef struct onv_device_pool {
    uint64_t used, reserved;
    uint64_t used_peak, reserved_peak; /* since the last reset */
} onv_device_pool;

typedef struct onv_device_kind onv_device_kind;

typedef struct onv_device {
    const onv_device_kind *kind;
    onv_device_info info;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    void *state;          /* of the kind, zeroed before open */
} onv_device;

struct onv_device_kind {
    const char *name;
    const char *summary;
    size_t state_bytes;
    /* `close` is called after a failure as well; NULL: nothing is held elsewhere. */
    onv_status (*open)(onv_device *d, onv_error *err);
    void (*close)(onv_device *d);
    onv_status (*memory)(onv_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
                         onv_error *err);
    onv_status (*alloc)(onv_device *d, uint64_t bytes, bool pooled, onv_device_address *address,
                        onv_error *err);
    onv_status (*free)(onv_device *d, onv_device_address address, uint64_t bytes, bool pooled,
                       onv_error *err);
    /* The pool gives all free memory back and counts its peaks anew. */
    onv_status (*pool_reset)(onv_device *d, onv_error *err);
    onv_status (*pool)(onv_device *d, onv_device_pool *pool, onv_error *err);
    /* Bytes [first, first + bytes) of the pattern (pattern.h) with that seed. `*wrong` counts from
     * `first` and is `bytes` where all is well. */
    onv_status (*fill)(onv_device *d, onv_device_address to, uint64_t seed, uint64_t first,
                       uint64_t bytes, onv_error *err);
    onv_status (*check)(onv_device *d, onv_device_address at, uint64_t seed, uint64_t first,
                        uint64_t bytes, uint64_t *wrong, onv_error *err);
    onv_status (*sync)(onv_device *d,
                       onv_error *err); /* NULL: nothing runs behind the caller's back */
};

extern const onv_device_kind *const onv_device_kinds[];
extern const size_t onv_n_device_kinds;

/* By name; NULL if there is none. */
const onv_device_kind *onv_device_kind_find(const char *name);

/* It pretends that there is no more than `limit_bytes`; 0: as it is. On failure there is nothing to close. */
onv_status onv_device_open(onv_device *d, const onv_device_kind *kind, uint64_t limit_bytes,
                           onv_error *err);
void onv_device_close(onv_device *d);

static inline onv_status onv_device_sync(onv_device *d, onv_error *err)
{
    return d->kind->sync != NULL ? d->kind->sync(d, err) : ONV_OK;
}

#endif
