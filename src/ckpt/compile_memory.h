/* Memory of a compiled step beside what its partition keeps. */
#ifndef ONV_CKPT_COMPILE_MEMORY_H
#define ONV_CKPT_COMPILE_MEMORY_H

#include "ckpt/min_cut.h"
#include "eager/program.h"

/* Copies that Inductor makes of what convolutions of images read and nothing makes, their weights and the
 * batch: it lays the tensors of convolutions out with channels last, where its rules find that this pays
 * (GraphLowering.decide_layout_opt, release 2.15). Backward reads the copies, so they stay until then. */
typedef struct onv_layout_copies {
    uint64_t *bytes; /* by operation; in the arena */
    uint32_t count;  /* of operations with any */
    uint64_t total_bytes;
} onv_layout_copies;

onv_status onv_layout_copies_find(const onv_eager *eager, const onv_joint *joint,
                                  const onv_partition *partition, onv_arena *arena,
                                  onv_layout_copies *copies, onv_error *err);

/* Adds to the program of training what backward computes again and a kernel reads from memory. */
onv_status onv_compile_add_again(const onv_eager *eager, const onv_joint *joint,
                                 const onv_partition *partition, onv_timeline *timeline,
                                 onv_error *err);

/* Moves the gradients that products make to where Inductor's order of kernels makes them: compile_order.c. */
onv_status onv_compile_order_products(onv_timeline *timeline, onv_error *err);

#endif
