/* Allocator models: what a runtime's allocator would hold while a timeline runs.
 *
 * An onv_allocator is one simulated allocator: an image of its memory (segments and blocks), its
 * statistics, and for every live id the block it owns. A model is the policy: how a request is
 * rounded, which free block it takes, what is split, when the device is asked for more.
 *
 *     onv_placement p;
 *     ONV_TRY(onv_alloc_run(&timeline, onv_alloc_model_find("torch"), NULL, &p, err));
 *     ... p.figures.reserved_peak, p.places.at[buffer] ...
 *     onv_placement_cleanup(&p);
 *
 * Freed memory can be used again at once, by torch on the stream that it was allocated on; the other models
 * assume one stream. All assume a device that gives
 * out increasing addresses: a real driver may not, which can change the pick among free blocks of
 * one size, never a rule. Running out of device memory (a capacity was given) is a result, not an
 * error: the allocator remembers where it happened and ignores what comes after.
 */
#ifndef ONV_ALLOC_ALLOC_H
#define ONV_ALLOC_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "onnxvram/common.h"
#include "timeline/timeline.h"

/* The memory that an allocator model holds: segments, cut into blocks.
 *
 * A segment is one piece of device memory (or of address space, where pages are mapped later). Its
 * blocks tile it: they are linked in address order, the first starts where the segment starts, each
 * starts where the one before ends. Blocks and segments are slots in arrays, named by their index;
 * slots are used again. Segments are linked in address order too: addresses are handed out
 * increasing and never again, because which addresses a driver reuses is not known.
 *
 * Nothing here knows a policy: which block is taken, split or merged is the models' business.
 */

#define ONV_NO_BLOCK UINT32_MAX

/* Where the first segment lies. Any multiple of the largest alignment would do; this one is easy to
 * tell from an offset, and below 2^53, which readers of snapshots want. */
#define ONV_SPACE_BASE (UINT64_C(1) << 44)

typedef enum onv_block_state {
    ONV_BLOCK_FREE,
    ONV_BLOCK_USED,
    ONV_BLOCK_UNMAPPED, /* address space without memory behind it */
} onv_block_state;

typedef struct onv_block {
    uint64_t address, bytes;
    uint64_t requested; /* USED: what was asked for */
    uint64_t age; /* of use to a model (torch: when it became free; bfc: which run of its stream) */
    uint32_t id;  /* USED: the owner, as in the trace */
    uint32_t segment;               /* ONV_NO_BLOCK: outside of any segment */
    uint32_t prev, next;            /* neighbours in the segment */
    uint32_t left, right, priority; /* in an onv_block_set */
    uint8_t state;                  /* onv_block_state */
    uint8_t stream;                 /* of use to one model (bfc: that used it in this run) */
} onv_block;

typedef struct onv_segment {
    uint64_t address, bytes;
    uint32_t first, last; /* blocks */
    uint32_t prev, next;  /* neighbours by address */
    uint32_t recorded;    /* its number in a placement */
    uint8_t pool;         /* onv_alloc_pool */
    uint8_t stream;       /* on which its blocks are made and used again */
    bool expandable;      /* address space whose pages are mapped one by one */
    bool direct;          /* goes back to the device when its block is freed */
} onv_segment;

typedef struct onv_space {
    ONV_VEC(onv_block) blocks;
    ONV_VEC(onv_segment) segments;
    uint32_t spare_block, spare_segment; /* slots to use again, linked by next */
    uint32_t first_segment, last_segment;
    uint64_t next_address;
} onv_space;

/* As it is at first; keeps what it has of the heap. */
void onv_space_empty(onv_space *space);
void onv_space_cleanup(onv_space *space);

static inline onv_block *onv_space_block(const onv_space *space, uint32_t block)
{
    return &space->blocks.at[block];
}

static inline onv_segment *onv_space_segment_of(const onv_space *space, uint32_t block)
{
    return &space->segments.at[space->blocks.at[block].segment];
}

/* Whether a segment consists of this block alone. */
static inline bool onv_space_is_whole(const onv_space *space, uint32_t block)
{
    const onv_block *b = onv_space_block(space, block);
    return b->prev == ONV_NO_BLOCK && b->next == ONV_NO_BLOCK;
}

/* A block of a segment of its own, in that state. Addresses that would not fit 63 bits are
 * ONV_ERR_OVERFLOW. */
onv_status onv_space_add_segment(onv_space *space, uint64_t bytes, onv_block_state state,
                                 uint32_t *block, onv_error *err);

/* Makes the newest segment longer by a block of `bytes` at its end. */
onv_status onv_space_extend(onv_space *space, uint32_t segment, uint64_t bytes,
                            onv_block_state state, uint32_t *block, onv_error *err);

/* Removes the segment of a block that is whole. */
void onv_space_remove_segment(onv_space *space, uint32_t block);

/* A block outside of any segment and address; given back by onv_space_drop_block. */
onv_status onv_space_add_loose(onv_space *space, uint64_t bytes, uint32_t *block, onv_error *err);
void onv_space_drop_block(onv_space *space, uint32_t block);

/* Cuts `block` after `bytes` (less than it has). The block keeps the low part; the block behind it is the high part, in the same
 * state. */
onv_status onv_space_split(onv_space *space, uint32_t block, uint64_t bytes, onv_error *err);

/* Joins a block with the one that follows it; `low` stays. */
void onv_space_merge(onv_space *space, uint32_t low);

/* A single request beyond this is no size but a mistake: ONV_ERR_LIMIT. */
#define ONV_ALLOC_MAX_BYTES (UINT64_C(1) << 56)

/* --- Statistics -------------------------------------------------------------------------------- */

typedef struct onv_stat {
    uint64_t current, peak;
    uint64_t added; /* over the whole run; what is not there any more was removed */
} onv_stat;

/* "Allocated" is meant as the runtime means it: for torch and bfc the sizes of blocks, for raw and
 * ideal the sizes asked for. INACTIVE is what torch calls inactive split: free blocks of segments
 * that are in use in part, which cannot go back to the device. */
typedef enum onv_alloc_metric {
    ONV_STAT_ALLOCATED_BYTES,
    ONV_STAT_REQUESTED_BYTES,
    ONV_STAT_RESERVED_BYTES,
    ONV_STAT_INACTIVE_BYTES, /* torch only */
    ONV_STAT_ALLOCATIONS,
    ONV_STAT_SEGMENTS,
    ONV_STAT_INACTIVE_BLOCKS, /* torch only */
    ONV_N_STATS
} onv_alloc_metric;

typedef enum onv_alloc_pool {
    ONV_POOL_ALL,
    ONV_POOL_LARGE, /* torch only */
    ONV_POOL_SMALL, /* torch only */
    ONV_N_POOLS
} onv_alloc_pool;

typedef struct onv_alloc_stats {
    onv_stat of[ONV_N_STATS][ONV_N_POOLS];
    uint64_t device_allocs, device_frees; /* calls that reach the device */
    uint64_t retries; /* torch: device allocations tried again after a release */
    bool overflow;    /* a sum passed 64 bits */
} onv_alloc_stats;

/* --- Options ----------------------------------------------------------------------------------- */

/* Zero in any field means the default, named beside it. */

/* PyTorch's settings of the same names (PYTORCH_ALLOC_CONF), in bytes where they count MB. */
typedef struct onv_torch_options {
    bool expandable_segments;
    uint64_t large_segment_bytes;          /* 20 MiB */
    uint64_t max_split_bytes;              /* no limit */
    uint64_t max_non_split_rounding_bytes; /* large_segment_bytes */
    uint32_t roundup_power2_divisions[16]; /* off; [k]: sizes from 2^(20 + k) on, [0] also below */
    double garbage_collection_threshold;   /* off; has an effect only with memory_fraction */
    double memory_fraction;                /* not set; of capacity_bytes, which it needs */
    uint64_t pool_bytes; /* 0; no setting: a free segment of this size that earlier work left */
} onv_torch_options;

typedef enum onv_bfc_extend {
    ONV_BFC_NEXT_POWER_OF_TWO,
    ONV_BFC_SAME_AS_REQUESTED,
} onv_bfc_extend;

/* ONNX Runtime's arena settings. */
typedef struct onv_bfc_options {
    onv_bfc_extend extend;
    uint64_t limit_bytes;                   /* no limit */
    uint64_t initial_chunk_bytes;           /* 1 MiB */
    uint64_t max_dead_bytes;                /* 128 MiB */
    uint64_t max_power_of_two_extend_bytes; /* 1 GiB */
} onv_bfc_options;

typedef struct onv_async_options {
    uint64_t step_bytes;  /* 32 MiB: the pool grows by multiples of this */
    uint64_t align_bytes; /* 512 */
} onv_async_options;

typedef struct onv_alloc_options {
    uint64_t capacity_bytes; /* of device memory for this allocator; 0: no limit */
    onv_torch_options torch;
    onv_bfc_options bfc;
    onv_async_options async;
    uint64_t raw_granularity_bytes; /* 2 MiB */
    uint64_t pattern_align_bytes;   /* 256 */
    /* Of training, or passes of inference, like the timeline's last one, in figures alone; 0. */
    uint32_t later_iterations;
} onv_alloc_options;

/* --- Models ------------------------------------------------------------------------------------ */

typedef struct onv_allocator onv_allocator;

/* Finds memory for `bytes` (1 to ONV_ALLOC_MAX_BYTES); *block stays ONV_NO_BLOCK when the device has none. The caller fills in the
 * owner and counts the allocation. */
typedef onv_status (*onv_alloc_fn)(onv_allocator *a, uint64_t bytes, uint32_t *block,
                                   onv_error *err);

typedef struct onv_alloc_model {
    const char *name;
    const char *alias;     /* another name for it, or NULL */
    const char *summary;   /* one line, for help */
    size_t state_bytes;    /* of the model's own state, which init sets */
    bool counts_requested; /* "allocated" sums what was asked for, not the sizes of blocks */
    bool counts_inactive;  /* keeps ONV_STAT_INACTIVE_* */
    bool is_pooled; /* stands for a pool of the device's own, which is asked for each buffer */

    /* Sets the options by which a variant differs from the model it shares its functions with. */
    void (*preset)(onv_alloc_options *options);
    /* Replaces zeros in the options by the defaults, checks them, prepares the state. */
    onv_status (*init)(onv_allocator *a, onv_error *err);
    onv_alloc_fn alloc;
    /* The bytes of the block that would serve a request, if memory is as before once that is freed at once; else 0. NULL: always. */
    uint64_t (*pass)(onv_allocator *a, uint64_t bytes);
    /* The same for memory that bypasses the model's pools; NULL: there is no such way. */
    onv_alloc_fn reserve;
    /* Takes back a block, which is in state FREE already. */
    void (*free)(onv_allocator *a, uint32_t block);
    /* Streams from this one on end, with what they were doing; NULL: that changes nothing. */
    onv_status (*end_streams)(onv_allocator *a, uint8_t from);
    /* Gives cached memory back to the device; NULL: never. */
    onv_status (*release_cached)(onv_allocator *a, onv_error *err);
} onv_alloc_model;

/* All models, for help and tests. */
extern const onv_alloc_model *const onv_alloc_models[];
extern const size_t onv_n_alloc_models;

/* By name or alias; NULL if there is none. */
const onv_alloc_model *onv_alloc_model_find(const char *name);

/* --- One simulated allocator ------------------------------------------------------------------- */

/* A device that several allocators take from, in pages of the driver. Requests below 1 MiB share one until it has no room for the
 * next of them, and come back with none of it. */
#define ONV_DEVICE_PAGE (UINT64_C(2) << 20)
typedef struct onv_shared_device {
    uint64_t bytes, taken_bytes;
    uint64_t left_bytes; /* of the shared page */
} onv_shared_device;

struct onv_allocator {
    const onv_alloc_model *model;
    onv_alloc_options options; /* zeros replaced */
    onv_shared_device *device; /* has the last word; NULL: there is none */
    onv_alloc_stats stats;
    onv_space space;
    ONV_VEC(uint32_t) owned; /* by id: its block, ONV_OWNS_NOTHING, or ONV_OWNS_ZERO_BYTES */
    onv_placement *record;   /* what happens is written there; ids are buffers. NULL: nowhere */
    size_t n_events;         /* fed so far */
    uint8_t
        stream; /* of the device, that the next allocation is for, below ONV_N_STREAMS; torch, bfc */
    /* Totals of bytes alone are kept: nothing by pool, of inactive blocks, or of how many allocations there are. */
    bool has_totals_alone;
    bool out_of_memory;
    size_t oom_event; /* the event that found no memory, its id and bytes */
    uint64_t oom_bytes;
    void *state; /* of the model */
};

#define ONV_OWNS_NOTHING    ONV_NO_BLOCK
#define ONV_OWNS_ZERO_BYTES (UINT32_MAX - 1)

/* `options` may be NULL: defaults. On failure there is nothing to clean up. */
onv_status onv_allocator_init(onv_allocator *a, const onv_alloc_model *model,
                              const onv_alloc_options *options, onv_error *err);
void onv_allocator_cleanup(onv_allocator *a);

/* As it was behind init: nothing is allocated. */
onv_status onv_allocator_restart(onv_allocator *a, onv_error *err);

/* One event: an id must not be allocated twice, nor freed while it is not (ONV_ERR_USAGE). A table
 * by id is kept, so ids should be dense. After a failure only cleanup is of use. */
onv_status onv_allocator_alloc(onv_allocator *a, uint32_t id, uint64_t bytes, onv_error *err);
onv_status onv_allocator_free(onv_allocator *a, uint32_t id, onv_error *err);

/* Allocated, and freed before anything else happens, under an id that owns nothing. */
onv_status onv_allocator_pass(onv_allocator *a, uint32_t id, uint64_t bytes, onv_error *err);

/* Memory beside the model's pools, as ONNX Runtime takes it for initializers; like alloc for models
 * that have no such way. */
onv_status onv_allocator_reserve(onv_allocator *a, uint32_t id, uint64_t bytes, onv_error *err);

/* Behind a run of a session (from 1 on), or of a subgraph in it. */
onv_status onv_allocator_end_streams(onv_allocator *a, uint8_t from);

/* What torch.cuda.empty_cache() does; nothing for models that never give memory back. */
onv_status onv_allocator_release_cached(onv_allocator *a, onv_error *err);

/* What earlier work left, before all else: a free segment, as options.torch.pool_bytes says. It goes by the id 0, which comes
 * later. */
onv_status onv_allocator_leave_pool(onv_allocator *a, onv_error *err);

/* A table of current, peak, added and removed for every statistic, in the manner of
 * torch.cuda.memory_summary(). */
bool onv_allocator_summary(const onv_allocator *a, onv_write_fn write, void *context);

void onv_allocator_figures(const onv_allocator *a, onv_held_figures *figures);

/* --- Whole timelines --------------------------------------------------------------------------- */

/* Serves a timeline that was checked and has no alternatives (onv_timeline_path). A container is one
 * allocation, and what lies within it has its place there; what bypasses the pools is reserved. On
 * failure there is nothing to clean up. `options` may be NULL. */
onv_status onv_alloc_run(const onv_timeline *t, const onv_alloc_model *model,
                         const onv_alloc_options *options, onv_placement *placement,
                         onv_error *err);

/* "runtime,allocated_peak,reserved_peak,allocated_end,reserved_end,segments" */
extern const char onv_alloc_csv_header[];
bool onv_alloc_write_csv(const char *runtime, const onv_held_figures *figures, onv_write_fn write,
                         void *context);

#endif
