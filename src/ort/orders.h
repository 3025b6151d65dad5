/* The orders in which a session may allocate its initializers.
 *
 * ONNX Runtime walks a hash table whose order differs from process to process, and takes each
 * initializer from the arena. How far the arena grows depends on that order, so its size is a range.
 * It is found by trying orders: those of the file and by size, both ways, which tend to the ends, and
 * random ones from a fixed seed. The range is what they reach, not a proof. */
#ifndef ONV_ORT_ORDERS_H
#define ONV_ORT_ORDERS_H

#include "alloc/alloc.h"

typedef struct onv_ort_spread {
    uint64_t low, high; /* bytes of the arena at the end */
    uint32_t n_orders;  /* tried */
} onv_ort_spread;

/* The first `n_weights` buffers of the timeline live through all of it. They are put into the order
 * that needs most. The timeline has no alternatives. */
onv_status onv_ort_spread_weights(onv_timeline *t, uint32_t n_weights,
                                  const onv_alloc_options *options, onv_ort_spread *spread,
                                  onv_error *err);

#endif
