/* The timeline: what an execution allocates, in which of its steps, and for how long.
 *
 * One type for everything that runs. Execution models make timelines (graph, eager, ort); the sweep
 * for a peak, the offset planner, the allocator models, checkpointing, the device check and the
 * reports read them and know no runtime. A prediction is a timeline, and so is a recording.
 *
 *   steps     0 ─────────────────────────────────────────────▶ n_steps - 1, in execution order
 *   regions   ranges of steps: the branches of an If, the body of a loop; they nest
 *   buffers   bytes from step `first` through step `last`, both included
 *
 * Within a step the order is fixed: buffers whose `first` it is are allocated in the order of the
 * list, the step runs, and buffers whose `last` it is are freed in the order of the list. A
 * transient buffer (first == last) is freed before the next buffer of its step is allocated.
 *
 * Branches. The steps of all branches of an If stand one behind the other, before the step of the If
 * itself, and only one branch runs. A buffer made in a branch ends with it at the latest. What a
 * branch hands out is the same memory as the output of the If: it ends with its branch, the If's
 * output begins at the If's step, and `becomes` ties them, so no step counts it twice. The bytes of a
 * step are therefore a plain sum over what lives there, and the peak over all steps is the maximum
 * over the alternatives.
 *
 * Loops. The steps of a body stand for every iteration. `bytes` are those of one iteration; what all
 * iterations leave behind (a stacked result) is a buffer of its own.
 *
 * Containers. A buffer may lie within another one, at an offset that its producer chose (values in
 * ONNX Runtime's memory pattern). The container counts, what is
 * within it does not; it lives within the container's life.
 *
 * A timeline owns its arrays; names and labels belong to the model.
 */
#ifndef ONV_TIMELINE_TIMELINE_H
#define ONV_TIMELINE_TIMELINE_H

#include "base/status.h"
#include "base/vec.h"
#include "ir/ids.h"

/* --- Steps ------------------------------------------------------------------------------------- */

typedef enum onv_phase {
    ONV_PHASE_FORWARD,
    ONV_PHASE_LOSS,
    ONV_PHASE_BACKWARD,
    ONV_PHASE_OPTIMIZER,
    ONV_N_PHASES
} onv_phase;

const char *onv_phase_name(onv_phase phase);

typedef struct onv_step {
    onv_node_id node;      /* ONV_NO_NODE: not a node of the graph (the loss, the optimizer) */
    uint16_t iteration;    /* of training, or the run of a session: a few of each */
    uint8_t phase : 7;     /* onv_phase */
    bool is_recompute : 1; /* forward once more, for a checkpointed segment */
    uint8_t ends;          /* streams from this one on end behind the step; 0: none */
    const char *label;     /* what runs: the operator, or the runtime's name for it; may be NULL */
    uint64_t macs;         /* multiply-accumulates, of all iterations that the step stands for;
                              unknown ones count as 0 */
} onv_step;

/* --- Regions ----------------------------------------------------------------------------------- */

typedef enum onv_region_kind {
    ONV_REGION_SEQUENCE,     /* one branch; also a region that only groups */
    ONV_REGION_ALTERNATIVES, /* all branches of one If: its children are SEQUENCEs, one of them runs */
    ONV_REGION_LOOP,         /* a body: its steps run `trips` times */
} onv_region_kind;

#define ONV_NO_REGION UINT32_MAX

/* Steps from `first` up to but not including `end`; empty where first == end. */
typedef struct onv_region {
    uint32_t first, end;
    uint32_t parent;   /* an earlier region, ONV_NO_REGION: none */
    uint8_t kind;      /* onv_region_kind */
    uint64_t trips;    /* LOOP, at most each time it is entered; 0: not known; 1 elsewhere */
    onv_node_id node;  /* the If, Loop or Scan; ONV_NO_NODE: none */
    const char *label; /* "then_branch", "body" ...; may be NULL */
} onv_region;

/* --- Buffers ----------------------------------------------------------------------------------- */

typedef enum onv_buffer_kind {
    ONV_BUFFER_INPUT,
    ONV_BUFFER_OUTPUT,
    ONV_BUFFER_ACTIVATION,
    ONV_BUFFER_WEIGHT,    /* parameters and other constants of the model */
    ONV_BUFFER_STATISTIC, /* what PyTorch calls a buffer: running statistics, tables, masks */
    ONV_BUFFER_GRADIENT,
    ONV_BUFFER_STATE,     /* of an optimizer */
    ONV_BUFFER_TEMPORARY, /* a tensor that an operation makes on its way */
    ONV_BUFFER_WORKSPACE, /* scratch of one step, of a library */
    ONV_BUFFER_POOL,      /* a container: one allocation with other buffers within it */
    ONV_N_BUFFER_KINDS
} onv_buffer_kind;

#define ONV_NO_BUFFER UINT32_MAX

/* Streams of a device, at most. */
#define ONV_N_STREAMS 4

typedef struct onv_buffer {
    uint64_t bytes;       /* as requested, of one iteration; 0 where `sized` is false */
    uint64_t offset;      /* in the buffer `within` */
    uint32_t first, last; /* steps, both included */
    uint32_t becomes;     /* a later buffer, which takes this one's memory over; ONV_NO_BUFFER */
    uint32_t within;      /* its container, an earlier buffer; ONV_NO_BUFFER: allocated by itself */
    onv_value_id value;   /* ONV_NO_VALUE: not a value of the graph */
    uint8_t kind;         /* onv_buffer_kind */
    uint8_t stream;       /* of the device, that asks for it; 0: the main one */
    bool sized : 1;       /* false: the size is not known */
    bool bound : 1;       /* `bytes` is an upper bound */
    bool is_transient : 1; /* first == last, and freed before the step's next buffer is allocated */
    bool bypasses_pool : 1; /* taken from the device beside the allocator's pools */
    const char *label;      /* the value's name, or what the buffer is for */
} onv_buffer;

/* A buffer with nothing set: no value, no container. */
static inline onv_buffer onv_buffer_new(onv_buffer_kind kind, uint64_t bytes, uint32_t first,
                                        uint32_t last, const char *label)
{
    return (onv_buffer){.bytes = bytes,
                        .first = first,
                        .last = last,
                        .becomes = ONV_NO_BUFFER,
                        .within = ONV_NO_BUFFER,
                        .value = ONV_NO_VALUE,
                        .kind = (uint8_t)kind,
                        .sized = true,
                        .label = label};
}

const char *onv_buffer_kind_name(onv_buffer_kind kind);

/* --- The timeline ------------------------------------------------------------------------------ */

typedef struct onv_timeline {
    ONV_VEC(onv_step) steps;
    ONV_VEC(onv_region) regions; /* a parent before its children, by first step */
    ONV_VEC(onv_buffer) buffers; /* any order of `first`; the order within a step counts */
    uint32_t measured_from;      /* peaks count from this step on: training's second iteration */
    bool takes_least; /* the path of one run takes the branches with the smallest peaks */
} onv_timeline;

void onv_timeline_cleanup(onv_timeline *t);

/* Every rule that stands above: steps and regions nest, buffers lie within the steps, in a branch
 * they end with it, containers contain, what becomes another buffer ends before that begins. Linear
 * (times the depth of regions). Cheap enough for every debug build. */
onv_status onv_timeline_check(const onv_timeline *t, onv_error *err);

/* --- The sweep --------------------------------------------------------------------------------- */

typedef struct onv_peak {
    uint64_t bytes;
    uint32_t step; /* the first one with that many */
    uint64_t of_phase[ONV_N_PHASES];
} onv_peak;

/* The most bytes at once in each step, of which the largest counts, from measured_from on: buffers of a
 * step add up, but transient ones stand beside those alone that were allocated before them.
 * `live_bytes`, where not NULL, has room for every step. Fails with ONV_ERR_OVERFLOW where all buffers
 * together do not fit 64 bits. Linear. */
onv_status onv_timeline_peak(const onv_timeline *t, onv_peak *peak, uint64_t *live_bytes,
                             onv_error *err);

/* The same without some kinds of buffers, a bit each: ONV_BUFFERS_BESIDE_TENSORS leaves tensors alone. */
onv_status onv_timeline_peak_without(const onv_timeline *t, uint32_t without, onv_peak *peak,
                                     uint64_t *live_bytes, onv_error *err);

#define ONV_BUFFERS_BESIDE_TENSORS (UINT32_C(1) << ONV_BUFFER_WORKSPACE)

/* Whether a buffer takes memory of its own at a step. */
static inline bool onv_buffer_is_live(const onv_buffer *b, uint32_t step)
{
    return b->within == ONV_NO_BUFFER && b->first <= step && step <= b->last;
}

/* --- Events ------------------------------------------------------------------------------------ */

/* The allocations and frees of a timeline in their order (see above). Containers are allocated
 * before and freed after what lies within them. */
typedef struct onv_timeline_event {
    uint32_t buffer;
    uint32_t step;
    bool is_free;
} onv_timeline_event;

typedef ONV_VEC(onv_timeline_event) onv_timeline_events;

/* All events; the caller cleans up, also after a failure. Linear. */
onv_status onv_timeline_list_events(const onv_timeline *t, onv_timeline_events *events,
                                    onv_error *err);

/* Weights and their like are there all the time: they live from the first to the last step, and lie
 * in no container. */
static inline bool onv_buffer_is_fixed(const onv_timeline *t, const onv_buffer *b)
{
    return (b->kind == ONV_BUFFER_WEIGHT || b->kind == ONV_BUFFER_STATISTIC) && b->first == 0 &&
           b->last + (size_t)1 == t->steps.count && b->within == ONV_NO_BUFFER;
}

/* --- One path ---------------------------------------------------------------------------------- */

/* The timeline of one run: of the branches of every If the one with the largest peak of its own
 * stays, the buffers of the others go; what a branch hands out and the output that it becomes are
 * one buffer. Steps keep their numbers. Without alternatives it is a copy. `of_buffer`, where not
 * NULL, has room for every buffer of `t`, and says which buffer of the result each became,
 * ONV_NO_BUFFER: none. `path` is empty and cleaned up by the caller. */
onv_status onv_timeline_path(const onv_timeline *t, onv_timeline *path, uint32_t *of_buffer,
                             onv_error *err);

/* The placement: where in memory the buffers of a timeline lie, and what that takes of a device.
 *
 * A plan and an allocator model both answer with one; a replay lives through it on a device.
 *
 *   events     the allocations and frees of the timeline, in the order in which they were served
 *   segments   memory that is asked of the device, one allocation each, and between which events
 *   places     by buffer: an offset in a segment
 *   by step    the most that was reserved and allocated while the step runs
 *
 * At an event, in this order: what is freed there is free; segments go back; segments are taken; what
 * is allocated there is there. What goes back at the end, behind the last event, goes back at
 * `events.count`.
 *
 * A placement may be wrong (tests make such ones): who replays it looks at every index and bound.
 */

#define ONV_NO_SEGMENT UINT32_MAX

typedef struct onv_place {
    uint64_t offset;
    uint64_t counted; /* the bytes that "allocated" has for it: of a block, or as asked for */
    uint32_t segment; /* ONV_NO_SEGMENT: 0 bytes, or the model knows no places */
} onv_place;

typedef struct onv_taken_segment {
    uint64_t bytes;         /* asked of the device */
    uint64_t counted;       /* what the model counts it as: rounded for pools */
    size_t taken, returned; /* events */
    bool grows;             /* later, in steps of the model's; `bytes` are what it may reach */
} onv_taken_segment;

/* A part of a segment that grows: memory comes, or goes back. */
typedef struct onv_mapping {
    uint64_t offset, bytes;
    size_t event;
    uint32_t segment;
    bool goes_back;
} onv_mapping;

/* "Allocated" is meant as a runtime means it: for torch and bfc the sizes of blocks, for raw, ideal
 * and plans the sizes asked for. "Segments" as the runtime counts them. */
typedef struct onv_held_figures {
    uint64_t allocated_peak, reserved_peak, requested_peak;
    uint64_t allocated_end, reserved_end;
    uint64_t segments, segments_peak;
    uint64_t returned_bytes; /* to the device, over the whole run */
    bool out_of_memory;      /* the run ended there; the sizes are those it left */
    size_t oom_event;
    uint64_t oom_bytes;
} onv_held_figures;

typedef struct onv_placement {
    onv_timeline_events events;
    ONV_VEC(onv_taken_segment) segments; /* in the order in which they are taken */
    ONV_VEC(onv_mapping) mappings;       /* of segments that grow, by event */
    ONV_VEC(onv_place) places;
    uint64_t *reserved_at, *allocated_at; /* by step */
    uint32_t n_steps;
    bool
        is_pooled; /* each buffer is a request to the device's own pool, which reserves by itself */
    onv_held_figures figures;
} onv_placement;

/* Events of the timeline, nothing placed yet. Cleanup also after a failure. */
onv_status onv_placement_init(onv_placement *p, const onv_timeline *t, onv_error *err);
void onv_placement_cleanup(onv_placement *p);

/* What is taken of the device by request: a pool reserves more than is asked of it. */
static inline const uint64_t *onv_placement_held_at(const onv_placement *p)
{
    return p->is_pooled ? p->allocated_at : p->reserved_at;
}

static inline uint64_t onv_placement_held_peak(const onv_placement *p)
{
    return p->is_pooled ? p->figures.allocated_peak : p->figures.reserved_peak;
}

/* The step of an event; behind the last one: the step behind the last. */
static inline uint32_t onv_placement_step_of(const onv_placement *p, size_t event)
{
    return event < p->events.count ? p->events.at[event].step : p->n_steps;
}

/* A buffer that holds something by itself: containers hold other buffers, and what lies within a
 * buffer that is no mere container is a part of it. */
static inline bool onv_buffer_has_content(const onv_timeline *t, const onv_buffer *b)
{
    return b->kind != ONV_BUFFER_POOL && b->bytes > 0 &&
           (b->within == ONV_NO_BUFFER || t->buffers.at[b->within].kind == ONV_BUFFER_POOL);
}

#endif
