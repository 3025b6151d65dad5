/* Prices: what a plan's training program would take, without making the program.
 *
 * All plans of a tape have much in common: what calls and names hold, the order of parameters, what is there
 * before the first iteration, and that iteration, after which the same stands whatever the plan is. It is done
 * once. A price is then one iteration, in sums. Forward, gradients and the optimizer ask for the same whatever the plan is: an
 * iteration that keeps nothing for backward is noted once as requests, and played for each plan with activations freed when the
 * plan lets them go; only second runs are simulated (simulation.h). Plans that move tensors or are reentrant are simulated
 * wholly. Where what an iteration leaves differs from what it found (a handle that only a second run asks for), one more follows.
 * Under DDP and FSDP, whose first iterations differ, both run for each plan.
 *
 * Equal to the peaks and sums of onv_train_program_build() with two iterations. Cost: linear in the tape and in
 * what segments cover.
 */
#ifndef ONV_EAGER_PRICING_H
#define ONV_EAGER_PRICING_H

#include "alloc/requests.h"
#include "eager/program.h"

typedef struct onv_price {
    uint64_t peak_bytes;      /* tensors alone, sizes as asked for */
    uint64_t requested_bytes; /* with the workspaces of libraries */
    uint64_t recomputed_macs;
    uint64_t moved_bytes; /* between device and host, both ways */
} onv_price;

typedef struct onv_pricing onv_pricing;

/* `options` without segments, kept results and what goes to the host; they, tape and model must outlive it. To be
 * closed, if this succeeds. */
onv_status onv_pricing_open(onv_model *model, const onv_eager *eager,
                            const onv_train_options *options, onv_pricing **pricing,
                            onv_error *err);
void onv_pricing_close(onv_pricing *pricing);

/* What a price is to beat: the least peak that is known of plans that run at most so many operations again and move nothing. */
typedef struct onv_price_rival {
    uint64_t (*peak)(const void *context, uint64_t recomputed_macs);
    const void *context;
} onv_price_rival;

/* Of a plan: those options with its segments, kept results, and what goes to the host. A plan whose peak passes the rival's
 * (NULL: there is none) is not looked at any further: its price is then less than it takes, and still worse. After a
 * failure the pricing is of no use but to be closed. */
onv_status onv_pricing_find(onv_pricing *pricing, const onv_train_options *plan,
                            const onv_price_rival *rival, onv_price *price, onv_error *err);

/* A training program as requests to an allocator, in sums otherwise: served, they give what onv_train_program_build() and
 * onv_alloc_run() do, with each onv_workspace_choice as `which`. Not for FSDP, which has streams. */
typedef struct onv_train_record {
    onv_train_program program;            /* without a timeline: nothing to clean up */
    uint64_t peak_bytes, requested_bytes; /* as of onv_price */
    onv_requests requests;                /* to be cleaned up */
} onv_train_record;

/* Of a plan, as onv_pricing_find. */
onv_status onv_pricing_record(onv_pricing *pricing, const onv_train_options *plan,
                              onv_train_record *made, onv_error *err);

/* Of one alone: each iteration is simulated. */
onv_status onv_train_record_make(onv_model *model, const onv_eager *eager,
                                 const onv_train_options *options, onv_train_record *made,
                                 onv_error *err);

#endif
