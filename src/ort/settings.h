/* How a session of ONNX Runtime's CUDA provider is configured, under ONNX Runtime's own names.
 *
 * Session options, provider options and session configuration entries stand in one table, as
 * KEY=VALUE; defaults are those of version 1.31. What has no influence on memory is not in it. */
#ifndef ONV_ORT_SETTINGS_H
#define ONV_ORT_SETTINGS_H

#include "alloc/alloc.h"
#include "kernels/ort_conv.h"
#include "rewrite/rewrite.h"

/* The fields carry ONNX Runtime's names; bools are stored as uint32_t so that one table fills them
 * all. */
typedef struct onv_ort_settings {
    uint32_t graph_optimization_level; /* onv_rewrite_level */
    uint32_t arena_extend_strategy;    /* onv_bfc_extend */
    uint32_t cudnn_conv_algo_search;   /* onv_ort_conv_search */
    uint32_t cudnn_conv_use_max_workspace;
    uint32_t cudnn_conv1d_pad_to_nc1d;
    uint32_t fuse_conv_bias;
    uint32_t prefer_nhwc;
    uint32_t use_tf32;
    uint32_t enable_mem_pattern;
    uint32_t enable_mem_reuse;
    uint32_t use_device_allocator_for_initializers; /* beside the arena, not from it */
    uint32_t disable_prepacking;
    uint32_t use_deterministic_compute;
    uint32_t
        io_binding; /* inputs and outputs of the main graph are the application's, beside the arena */
    uint32_t enable_gelu_approximation;
    uint32_t unused;        /* 0: settings are compared as bytes, so that there is no padding */
    uint64_t gpu_mem_limit; /* of the arena; 0: none */
} onv_ort_settings;

extern const onv_ort_settings onv_ort_settings_default;

/* What they say of the arena. */
void onv_ort_settings_arena(const onv_ort_settings *of, onv_bfc_options *arena);

/* One "KEY=VALUE". ONV_ERR_USAGE names what is valid: the keys, or the values of the key. */
onv_status onv_ort_settings_set(onv_ort_settings *to, const char *assignment, onv_error *err);

/* The keys with the values they take; NULL beyond the last one. */
const char *onv_ort_setting_name(size_t index, const char **values);

/* The value of the setting at `index`, as it is typed; in `text` where it is a number. */
const char *onv_ort_setting_value(const onv_ort_settings *of, size_t index, char *text,
                                  size_t size);

#endif
