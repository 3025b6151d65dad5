/* Which settings of ONNX Runtime need least: the same session, configured in other ways. */
#ifndef ONV_RUNTIME_ORT_ADVICE_H
#define ONV_RUNTIME_ORT_ADVICE_H

#include "runtime/runtime.h"

typedef struct onv_ort_advice_row {
    onv_ort_settings settings;
    uint64_t first_run_bytes, steady_bytes; /* of the order of initializers that needs most */
    uint64_t low_bytes;                     /* of the one that needs least */
    uint64_t peak_bytes;                    /* in use at most, of what the arena holds */
    uint64_t least_limit;                   /* the smallest gpu_mem_limit that is enough */
} onv_ort_advice_row;

typedef struct onv_ort_advice {
    onv_ort_advice_row *rows; /* those that need least come first */
    uint32_t count;
    uint32_t given; /* the row of the settings that were given */
} onv_ort_advice;

/* `finds_limits`: the least gpu_mem_limit of each row, which takes some tens of sessions more. Arena strategy, memory pattern, initializers and convolutions (where there are any) are varied, all
 * else stays as in `options`. In the model's arena. */
onv_status onv_ort_advise(onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, bool finds_limits,
                          onv_ort_advice *advice, onv_error *err);

#endif
