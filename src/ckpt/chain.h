/* Chains: the cheapest ways to train a line of units within every amount of memory.
 *
 *   unit     0 ──x──▶ 1 ──x──▶ 2 ──▶ ... ──▶ n-1      backward:  n-1 ──▶ ... ──▶ 1 ──▶ 0
 *            └────────x────────┘  tensors may skip
 *
 * Units run one after the other, then their backwards in reverse. A range [s, t) of the line is
 * trained in one of two ways, with what came before s being held by somebody else:
 *
 *   keep s          unit s runs and keeps what its backward needs; then [s + 1, t) is trained; then
 *                   comes the backward of s
 *   checkpoint q    [s, q) runs and keeps nothing but what [q, t) reads; then [q, t) is trained;
 *                   then [s, q), which runs again for it
 *
 * and a range of one unit keeps it. So a plan is a list of ranges that are checkpointed, which may
 * contain one another. What memory holds, and when:
 *   - while a unit runs: its bytes of that run, and turn_bytes[t] (gradients, parameters: what stands
 *     there while [s, t) runs, because all from t on went backward already);
 *   - a kept unit holds its own_bytes, tensors that it saves itself, and those that a later unit of
 *     its range saves, until all of [s + 1, t) went backward;
 *   - a checkpoint of [s, q) holds the tensors made there that a unit of [q, t) reads, for as long, if
 *     any reader saves them; and all the time its own inputs that no reader saves;
 *   - while it runs, tensors stay until the last unit of [s, t) that reads them;
 *   - while the backward of a unit runs: its backward_bytes, beside what is held before s.
 *
 * This is simpler than a tape: an input that nobody saves counts for every checkpoint that reads it,
 * even inside one another or behind a maker that keeps it, and what units that are kept hand to each
 * other counts only while its maker runs.
 *
 * f(s, t), the Pareto front of (peak, cost) over all plans of [s, t), follows from smaller ranges:
 * peaks are the maximum of sums of such bytes, costs add up. No memory size is rounded. The first
 * run of [s, t) is part of its cost. Dynamic programming of this shape for chains: Beaumont et al.,
 * "Optimal checkpointing for heterogeneous chains" (2019), there over discrete memory sizes.
 *
 * Cost: for n units, n³ / 6 merges (n m² / 2 with a max_range of m) of fronts. A front beyond ONV_CHAIN_MAX_FRONT points, that of a
 * range that ends before the chain does beyond ONV_CHAIN_INNER_FRONT, is thinned: both ends stay, and
 * of the others those that stand about evenly along it.
 */
#ifndef ONV_CKPT_CHAIN_H
#define ONV_CKPT_CHAIN_H

#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

enum { ONV_CHAIN_MAX_UNITS = 256, ONV_CHAIN_MAX_FRONT = 96, ONV_CHAIN_INNER_FRONT = 32 };

typedef struct onv_chain_unit {
    uint64_t cost;           /* of running it */
    uint64_t last_cost;      /* the same where only its backward needs it: no reader follows */
    uint64_t forward_bytes;  /* its outputs, temporaries and what it keeps, while it runs */
    uint64_t last_bytes;     /* the same where only its backward needs it */
    uint64_t passing_bytes;  /* while it runs in a checkpoint, and keeps nothing */
    uint64_t own_bytes;      /* what it alone keeps for its backward */
    uint64_t backward_bytes; /* all that stands there in its backward but what is held before it */
    uint32_t
        reader_after; /* units: second runs of ranges that end up to there run it as if nobody read it */
    bool no_start; /* no checkpoint may begin here */
} onv_chain_unit;

typedef struct onv_chain_reader {
    uint32_t unit;
    bool saves; /* its backward needs the tensor */
} onv_chain_reader;

/* A tensor that units after its maker read. */
typedef struct onv_chain_tensor {
    uint64_t bytes;
    uint32_t maker;
    bool saved_by_maker;
    uint32_t n_readers;
    const onv_chain_reader *readers; /* ascending */
} onv_chain_tensor;

typedef struct onv_chain {
    const onv_chain_unit *units;
    uint32_t n_units;
    const onv_chain_tensor *tensors; /* by maker, ascending */
    uint32_t n_tensors;
    const uint64_t *turn_bytes; /* n_units + 1 */
    uint32_t max_range;         /* checkpoints have no more units; 0: any number */
    uint32_t inner_front;       /* points of a range's front; 0: ONV_CHAIN_INNER_FRONT */
    uint64_t max_extra_cost;    /* beyond one run of every unit; dearer plans are dropped */
} onv_chain;

typedef struct onv_chain_point {
    uint64_t peak_bytes;
    uint64_t cost; /* of all runs, the first one too */
    uint32_t choice;
} onv_chain_point;

typedef struct onv_chain_front {
    onv_chain_point *at; /* peaks ascending, costs descending */
    uint32_t count;
} onv_chain_front;

typedef struct onv_chain_solution {
    const onv_chain *chain;
    onv_chain_front *fronts; /* of all ranges; in the arena */
    uint32_t *first_tensor;  /* by unit */
    uint64_t *entering;      /* by pair of units: bytes that a checkpoint holds for itself */
    onv_chain_front front;   /* of the whole chain */
    bool thinned;            /* some front was: otherwise no plan betters this one's */
} onv_chain_solution;

/* Units [first, end) are checkpointed. */
typedef struct onv_chain_range {
    uint32_t first, end;
} onv_chain_range;

typedef ONV_VEC(onv_chain_range) onv_chain_ranges;

/* Fails with ONV_ERR_LIMIT for more units than ONV_CHAIN_MAX_UNITS, and where sums would not fit. The
 * front is empty only where no plan is within max_extra_cost. */
onv_status onv_chain_solve(const onv_chain *chain, onv_arena *arena, onv_chain_solution *solution,
                           onv_error *err);

/* The plan of point `index` of the whole chain's front: outer ranges before inner ones, in order. Where
 * fronts were thinned it may take less than the point says, never more. */
onv_status onv_chain_plan(const onv_chain_solution *solution, uint32_t index,
                          onv_chain_ranges *ranges, onv_error *err);

#endif
