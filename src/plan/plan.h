/* Offset planning: where each buffer goes in one block of memory, so that the block is small.
 *
 * Input is one row per buffer: `size` bytes from step `lower` up to but not including `upper`.
 * Buffers that share a step may not share a byte. Output is an offset per row and the height, the
 * end of the highest buffer. No plan can be lower than the largest sum of sizes live at one step
 * (`max_load`); real graphs mostly reach it, and the planner says when it has proved that nothing
 * lower exists.
 *
 * How: buffers that live through the whole of their time span go to the bottom, which cuts the rest
 * into parts that share no step (split.c). Each part is planned alone: greedy placements in several
 * orders (greedy.c), then an exact search for a given capacity (search.c) under capacities between
 * what is proved and what is reached (tighten.c), beside beams (beam.c) and
 * rows that are planned as one (boxes.c) for parts that leave nothing free;
 * plans of large parts are lowered before that, a ceiling at a time (repair.c). It stops as soon as every
 * part fits under the bound, and by default when nothing improves any more.
 *
 * Results depend on the input and the options alone, never on time: effort is counted in units of
 * work. What is done, and in which order, does not depend on how much there is: a longer run goes on
 * where a shorter one ends, so more effort is never worse. Cost: a few milliseconds for graphs whose
 * bound a greedy placement meets; at most about a second for 2,000 buffers at the default effort, four where they
 * leave nothing free.
 */
#ifndef ONV_PLAN_PLAN_H
#define ONV_PLAN_PLAN_H

#include "base/status.h"
#include "onnxvram/common.h"
#include "timeline/timeline.h"

enum { ONV_PLAN_MAX_BUFFERS = 1 << 22 };

/* Live in the half-open [lower, upper). */
typedef struct onv_plan_buffer {
    uint64_t lower, upper;
    uint64_t size;
} onv_plan_buffer;

typedef struct onv_plan_options {
    uint64_t capacity;    /* stop at the first plan of at most this height; 0: as low as possible */
    uint64_t effort;      /* units of work to spend; 0: default, see plan.c */
    uint64_t alignment;   /* offsets and sizes are rounded up to multiples; 0: 1 */
    bool are_boxes;       /* rows that are made of others */
    const char *strategy; /* only this row of onv_planners; NULL: all in turn */
    /* Asked rarely; true stops the search, and the best plan so far is the result. */
    bool (*cancelled)(void *context);
    void *cancel_context;
} onv_plan_options;

typedef struct onv_plan {
    uint64_t *offsets; /* by row; 0 for rows of 0 bytes */
    size_t count;
    uint64_t height;
    uint64_t max_load;    /* most bytes live at one step, sizes rounded up */
    uint64_t lower_bound; /* no plan is lower: max_load or more, where a search proved more */
    bool optimal;         /* height == lower_bound */
    bool fits;            /* no capacity was given, or height is within it */
    bool stopped;         /* options.cancelled said so */
    const char *strategy; /* the one that made the highest part of the plan; "" for no buffers */
    uint64_t nodes;       /* of the exact search */
    uint64_t work;        /* units spent */
    uint64_t below;       /* of a timeline: bytes of the weights, which lie below the plan */
} onv_plan;

/* On failure *plan is empty. */
onv_status onv_plan_compute(const onv_plan_buffer *buffers, size_t count,
                            const onv_plan_options *options, onv_plan *plan, onv_error *err);
void onv_plan_cleanup(onv_plan *plan);

/* The same for a timeline that was checked: one segment, and in it a place for every buffer. Weights
 * that are there all the time lie at the bottom in their order; the plan and its figures are of what
 * lies above. A buffer and the one that it becomes have one place, from the first to the last step of
 * both; what is within a container lies where its producer put it. On failure both are empty. */
onv_status onv_plan_timeline(const onv_timeline *t, const onv_plan_options *options, onv_plan *plan,
                             onv_placement *placement, onv_error *err);

/* Verifies that no two buffers overlap, that offsets are aligned and that the figures are right.
 * Independent of the planner; a sweep, O(n log n). */
onv_status onv_plan_check(const onv_plan_buffer *buffers, size_t count,
                          const onv_plan_options *options, const onv_plan *plan, onv_error *err);

/* Intervals as CSV: `id,lower,upper,size`, half-open; the answer adds `offset`.
 *
 * The first line is the header; its columns may stand in any order, and there may be an `offset`
 * column, which is read over. Ids are kept as they stand (they may be quoted, as in RFC 4180) and
 * written in the order in which they were read. Numbers are decimal digits that fit 63 bits.
 */

typedef struct onv_plan_table {
    onv_plan_buffer *buffers;
    const char **ids; /* as in the file, quotes included */
    size_t count;
    char *text; /* of the file, which the ids point into */
} onv_plan_table;

/* Limits on the file, each met with an error. */
enum { ONV_PLAN_CSV_MAX_BYTES = 1 << 30 };

/* On failure *table is empty; the error names the line and the column. Takes over `text`, of the heap, with a NUL behind its end. */
onv_status onv_plan_csv_parse(char *text, size_t bytes, onv_plan_table *table, onv_error *err);
onv_status onv_plan_csv_read(const char *path, onv_plan_table *table, onv_error *err);
void onv_plan_table_cleanup(onv_plan_table *table);

onv_status onv_plan_csv_write(const onv_plan_table *table, const onv_plan *plan, onv_write_fn write,
                              void *context, onv_error *err);

/* `onnxvram plan`: reads the file at `path`, plans it, checks the plan and writes the answer.
 * `plan` receives the figures, NULL allowed; its offsets are gone. */
onv_status onv_plan_csv_run(const char *path, const onv_plan_options *options, onv_write_fn write,
                            void *context, onv_plan *plan, onv_error *err);

#endif
