/* The orders in which a session may allocate its initializers.
 *
 * ONNX Runtime walks a hash table of the numbers that the session gave to values (absl::flat_hash_map, whose seed differs
 * from process to process), and takes each initializer from the arena. How far the arena grows depends on that order, so its
 * size is a range. It is found by such tables with random seeds, from a fixed one on; in what order they were filled, which
 * decides between numbers that meet, is a random one, too. The range is what they reach, not a proof. Measured, ONNX Runtime 1.31:
 * of a graph with 40 initializers the eight orders of 24 processes, but for such neighbours. What an order leaves of the arena is
 * found once, for all sessions with these initializers. */
#ifndef ONV_ORT_ORDERS_H
#define ONV_ORT_ORDERS_H

#include "alloc/alloc.h"
#include "ir/model.h"

enum { ONV_ORT_RUNS = 3 /* that a session has at most */, ONV_ORT_MOST_ORDERS = 100 /* tried */ };

typedef struct onv_ort_spread {
    uint64_t low, high; /* bytes of the arena at the end */
    uint32_t n_orders;  /* tried */
    uint32_t highest;   /* the first order that needs most */
} onv_ort_spread;

typedef struct onv_ort_loaded onv_ort_loaded;

/* The initializers of one graph. */
typedef struct onv_ort_table {
    uint32_t first, count; /* in `order` */
    uint32_t mask;         /* slots, but for the last one */
} onv_ort_table;

typedef struct onv_ort_orders {
    onv_allocator arena;
    onv_arena memory; /* of the lists */
    uint64_t *bytes;  /* by initializer: close together, as orders at random read them */
    uint32_t *order;  /* the last one drawn */
    uint32_t *number, *listed, *slots; /* of initializers; by graph; of the table that is filled */
    uint32_t n_weights, n_drawn, n_slots;
    ONV_VEC(onv_ort_table) tables;
    uint64_t random;
    uint32_t open[ONV_ORT_MOST_ORDERS]; /* whose run is still to be served */
    bool are_equal;                 /* all initializers are as large: one order is as good as all */
    ONV_VEC(onv_ort_loaded) loaded; /* by order */
} onv_ort_orders;

/* Of the first `n_weights` buffers of the timeline, initializers of the model that live through all of it. Cleaned up by the
 * caller, also after a failure. */
onv_status onv_ort_orders_init(onv_ort_orders *o, const onv_model *model, const onv_timeline *t,
                               uint32_t n_weights, const onv_alloc_options *options,
                               onv_error *err);
void onv_ort_orders_cleanup(onv_ort_orders *o);

/* The order of a process whose tables have that seed, in `order`. */
void onv_ort_orders_draw(onv_ort_orders *o, uint16_t seed);

/* What a session with these initializers reaches. The timeline has no alternatives. */
onv_status onv_ort_orders_try(onv_ort_orders *o, const onv_timeline *t, onv_ort_spread *spread,
                              onv_error *err);

/* Puts the initializers of the timeline into that order; the last call but cleanup. */
onv_status onv_ort_orders_apply(onv_ort_orders *o, uint32_t order, onv_timeline *t, onv_error *err);

#endif
