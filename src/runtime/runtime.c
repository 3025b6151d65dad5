#include "runtime/runtime.h"

#include <string.h>

#include "base/checked.h"

extern const onv_runtime onv_runtime_ideal, onv_runtime_arena, onv_runtime_torch, onv_runtime_ort,
    onv_runtime_async;

const onv_runtime *const onv_runtimes[] = {&onv_runtime_ideal, &onv_runtime_arena,
                                           &onv_runtime_torch, &onv_runtime_ort,
                                           &onv_runtime_async};
const size_t onv_n_runtimes = sizeof onv_runtimes / sizeof onv_runtimes[0];

const onv_runtime *onv_runtime_find(const char *name)
{
    for (size_t i = 0; i < onv_n_runtimes; i++)
        if (strcmp(onv_runtimes[i]->name, name) == 0) return onv_runtimes[i];
    return NULL;
}

/* --- What no graph tells ----------------------------------------------------------------------- */

/* Documented, cuBLAS through PyTorch (aten/src/ATen/cuda/CublasHandlePool.cpp, read in source): the
 * default workspace, and the one for compute capability 9.0. */
#define CUBLAS_WORKSPACE_LOW  UINT64_C(8519680)
#define CUBLAS_WORKSPACE_HIGH UINT64_C(33554432)

/* An assumption: a convolution's algorithm gets up to this much, the cap that ONNX Runtime sets
 * without cudnn_conv_use_max_workspace (onnxruntime/core/providers/cuda/nn/conv.cc). */
#define CONV_WORKSPACE_HIGH UINT64_C(33554432)

/* Reported figures for one process with lazy loading (256 MiB on an RTX 3090 with CUDA 12.8, some
 * 300 MiB generally); the upper end is an assumption for data-center devices. */
#define CONTEXT_LOW  (UINT64_C(256) << 20)
#define CONTEXT_HIGH (UINT64_C(600) << 20)

static bool is_op(const onv_node *node, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(node->op_type, names[i]) == 0) return true;
    return false;
}

static onv_range estimate_workspace(const onv_model *model, const onv_live *live)
{
    static const char *const products[] = {"MatMul", "Gemm", "Einsum", "Attention",
                                           "LSTM",   "GRU",  "RNN",    "FusedMatMul"};
    static const char *const convs[] = {"Conv", "ConvTranspose", "FusedConv", "DeformConv"};
    onv_range range = {0, 0};
    bool product = false, conv = false;
    for (uint32_t s = 0; s < live->n_steps; s++) {
        const onv_node *node = onv_model_node(model, live->steps[s]);
        product |= is_op(node, products, sizeof products / sizeof products[0]);
        conv |= is_op(node, convs, sizeof convs / sizeof convs[0]);
    }
    if (product) range = (onv_range){CUBLAS_WORKSPACE_LOW, CUBLAS_WORKSPACE_HIGH};
    if (conv) range.high += CONV_WORKSPACE_HIGH;
    return range;
}

/* --- Weights ----------------------------------------------------------------------------------- */

/* Shapes, axes and indices: kernels want them on the host. That a few integers are never anything
 * else is an assumption; its price is at most 512 bytes for each that is. */
static bool is_host_constant(const onv_value *value)
{
    bool integer = onv_dtype_is_integer((onv_dtype)value->tensor->type.dtype) ||
                   value->tensor->type.dtype == ONV_BOOL;
    return (integer && value->tensor->elems <= 64) || value->tensor->elems == 0 ||
           onv_dtype_bits((onv_dtype)value->tensor->type.dtype) == 0;
}

onv_status onv_each_device_weight(const onv_model *model, onv_weight_fn add, void *context,
                                  onv_error *err)
{
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (!onv_value_is_held(value) || is_host_constant(value)) continue;
        ONV_TRY(add(context, value, err));
    }
    return ONV_OK;
}

/* --- Scripts ----------------------------------------------------------------------------------- */

onv_buffer onv_weight_row(const onv_value *value, uint32_t n_steps)
{
    return (onv_buffer){.bytes = value->tensor->bytes,
                        .last = n_steps - 1,
                        .becomes = ONV_NO_BUFFER,
                        .within = ONV_NO_BUFFER,
                        .kind = ONV_BUFFER_WEIGHT,
                        .sized = true,
                        .value = ONV_NO_VALUE,
                        .label = value->name};
}

onv_status onv_runtime_script(const onv_runtime_result *result, onv_model *model,
                              const onv_live *live, const onv_runtime_options *options,
                              onv_script *script, onv_error *err)
{
    onv_runtime_options defaults = {0};
    const onv_runtime *runtime = result->runtime;
    ONV_TRY(runtime->script(runtime->mode, model, live, options != NULL ? options : &defaults,
                            script, err));
    script->runtime = runtime->name;
    /* A pool is asked what it has in use; everything else is what was taken from the device. */
    script->figure = script->pool_reserved > 0 ? result->allocated_peak_bytes : result->held_bytes;
    return ONV_OK;
}

/* --- All together ------------------------------------------------------------------------------ */

static onv_status add_up(onv_runtime_result *r, onv_error *err)
{
    uint64_t low = r->held_bytes, high = low;
    bool fits = onv_u64_add(low, r->workspace_bytes.low, &low) &&
                onv_u64_add(low, r->context_bytes.low, &low) &&
                onv_u64_add(high, r->workspace_bytes.high, &high) &&
                onv_u64_add(high, r->context_bytes.high, &high);
    if (!fits) return onv_fail(err, ONV_ERR_OVERFLOW, "the total does not fit 64 bits");
    r->total_bytes = (onv_range){low, high};
    return ONV_OK;
}

onv_status onv_runtime_compute(const onv_runtime *runtime, onv_model *model, const onv_live *live,
                               const onv_runtime_options *options, onv_runtime_result *result,
                               onv_error *err)
{
    onv_runtime_options defaults = {0};
    *result = (onv_runtime_result){.runtime = runtime};
    ONV_TRY(runtime->compute(model, live, options != NULL ? options : &defaults, result, err));
    if (runtime->has_context) {
        result->workspace_bytes = estimate_workspace(model, live);
        result->context_bytes = (onv_range){CONTEXT_LOW, CONTEXT_HIGH};
    }
    return add_up(result, err);
}
