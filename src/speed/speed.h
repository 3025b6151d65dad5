/* Seconds, as a range: what a step of training or a forward pass takes on a GPU. An estimate, always.
 *
 *   tape ──of each operation: products, bytes, kernels──▶ max(products / peak, bytes / bandwidth), summed
 *
 * The low end are the published peaks of the fastest card of that name, and kernels that read each operand from memory and
 * write each result once. The high end are a stated part of the peaks of the slowest card, and the host, which
 * launches one kernel after the other (roofline.c has the parts and where they are from). Between the ends nothing is
 * said. What is not estimated is refused with its reason, rather than guessed. docs/training.md has all of it in words.
 *
 * An operation forward reads its operands, writes its results and what it keeps for its backward alone. Views run nothing.
 * Its backward reads the incoming gradient and what was saved, and writes the gradients; that of a product is a product for
 * each operand. Counts are exact under these rules: `macs`, `bytes` and `kernels` are shown, too.
 */
#ifndef ONV_SPEED_SPEED_H
#define ONV_SPEED_SPEED_H

#include "eager/program.h"
#include "speed/gpu.h"

/* Nanoseconds. */
typedef struct onv_time_range {
    uint64_t low, high;
} onv_time_range;

/* All 0: nobody asked. */
typedef struct onv_time {
    const char *refused; /* static: why there are no seconds; NULL: there are */
    onv_time_range all;  /* a step of training, or a forward pass */
    onv_time_range
        more; /* of it, what a plan adds: second runs, and copies between device and host */
    uint64_t macs, bytes, kernels; /* that count */
} onv_time;

static inline bool onv_time_is_known(const onv_time *time)
{
    return time->all.high > 0 && time->refused == NULL;
}

typedef struct onv_speed {
    const onv_gpu *gpu; /* NULL: none was named, and nothing is estimated */
    bool tf32;          /* cuDNN may compute float32 as TF32 */
} onv_speed;

/* A forward pass of a tape that was lowered for inference. */
onv_time onv_speed_of_pass(const onv_speed *speed, const onv_eager *eager,
                           const onv_lower_options *options);

/* A step of training, with all passes before it, of what the program ran (`runs`, by operation). */
onv_time onv_speed_of_step(const onv_speed *speed, const onv_eager *eager,
                           const onv_train_options *options, const onv_train_program *program,
                           const onv_op_runs *runs);

#endif
