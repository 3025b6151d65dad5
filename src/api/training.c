#include "api/training.h"

#include <string.h>

#include "api/names.h"
#include "base/fail.h"
#include "eager/pytorch.h"

/* From 1, the place of a name in a list that ends with NULL; 0 where none is given. */
static onv_status choose(const char *option, const char *const *names, const char *name,
                         size_t *place, onv_error *err)
{
    *place = 0;
    for (size_t i = 0; name != NULL && names[i] != NULL; i++)
        if (onv_is_name(name, strlen(name), names[i])) *place = i + 1;
    if (name == NULL || *place > 0) return ONV_OK;
    return onv_fail_choice(err, option, name, strlen(name), onv_name_in, names);
}

static onv_status refuse_loss(const char *text, size_t length, onv_error *err)
{
    static const char *const names[] = {"cross-entropy",
                                        "fused-cross-entropy",
                                        "chunked-cross-entropy[=N], N from 1 to 4096",
                                        "mse",
                                        "none",
                                        NULL};
    return onv_fail_choice(err, "--loss", text, length, onv_name_in, names);
}

/* The loss of outputs that no item of the list names: none where there are items with names alone. */
static onv_status read_losses(const char *list, onv_loss *loss, uint32_t *chunks, onv_error *err)
{
    onv_loss_item item;
    *loss = ONV_LOSS_AUTO;
    if (list != NULL && list[0] == '\0') return refuse_loss(list, 0, err);
    while (onv_loss_next(&list, &item)) {
        if (item.loss == ONV_LOSS_AUTO) return refuse_loss(item.text, item.length, err);
        if (item.output_length == 0) *chunks = item.count;
        if (item.output_length == 0)
            *loss = item.loss;
        else if (*loss == ONV_LOSS_AUTO)
            *loss = ONV_LOSS_NONE;
    }
    return ONV_OK;
}

static onv_cuda_library_settings read_device(const onv_options *options)
{
    onv_cuda_library_settings cuda = onv_cuda_library_defaults();
    if (options->compute_capability > 0) cuda.compute_capability = options->compute_capability;
    if (options->budget > 0) cuda.device_bytes = options->budget;
    cuda.tf32 = !options->no_tf32;
    cuda.channels_last = options->channels_last;
    cuda.benchmark = options->cudnn_benchmark;
    return cuda;
}

/* How devices share the work, and what leaves them. */
static onv_status read_sharing(const onv_options *options, onv_training_options *how,
                               onv_error *err)
{
    /* In the order of onv_parallel and onv_offload, which begin with none. */
    static const char *const modes[] = {"copy", "view", NULL};
    static const char *const offloads[] = {"optimizer", "gradients", NULL};
    size_t mode, offload;
    ONV_TRY(choose("--ddp", modes, options->ddp, &mode, err));
    ONV_TRY(choose("--offload", offloads, options->offload, &offload, err));
    if ((options->ddp != NULL) + (options->fsdp != NULL) + (options->zero_stage > 0) > 1)
        return onv_fail(err, ONV_ERR_USAGE, "DDP, FSDP and ZeRO's stages exclude each other");
    how->train.parallel = (uint8_t)(options->ddp != NULL    ? mode
                                    : options->fsdp != NULL ? ONV_PARALLEL_FSDP
                                                            : ONV_PARALLEL_NONE);
    how->units = options->fsdp;
    how->train.offload = (uint8_t)offload;
    how->train.zero_stage = options->zero_stage;
    how->train.world = options->world;
    how->train.master_weights = options->master_weights;
    how->train.ema = options->ema;
    how->train.weights = options->weights != NULL ? onv_weight_format_find(options->weights) : NULL;
    if (options->weights != NULL && how->train.weights == NULL)
        return onv_fail(err, ONV_ERR_USAGE, "weights are quantized to int8, int4 or nf4, not '%s'",
                        options->weights);
    if (options->fsdp != NULL && offload == ONV_OFFLOAD_OPTIMIZER)
        return onv_fail(err, ONV_ERR_USAGE,
                        "FSDP offloads parameters, gradients and the optimizer together "
                        "(CPUOffloadPolicy): --offload gradients");
    if (options->ddp != NULL && offload == ONV_OFFLOAD_GRADIENTS)
        return onv_fail(err, ONV_ERR_USAGE,
                        "DDP's buckets need the gradients on the device: --offload optimizer");
    if (options->fsdp != NULL && options->weights != NULL)
        return onv_fail(err, ONV_ERR_USAGE, "how FSDP shards quantized weights is not known");
    return ONV_OK;
}

/* How the network is run: what exports hide, whose rules and libraries. */
static onv_status read_lowering(const onv_options *options, onv_loss loss, uint32_t chunks,
                                onv_attention_kernel kernel, onv_lower_options *lower,
                                onv_error *err)
{
    *lower = (onv_lower_options){.as_exported = options->as_exported,
                                 .folded_norms = options->folded_norms,
                                 .graph_module = options->graph_module,
                                 .no_fast_path = options->no_fast_path,
                                 .locals = options->locals,
                                 .freeze = options->freeze,
                                 .n_freeze = options->n_freeze,
                                 .train_only = options->train_only,
                                 .n_train_only = options->n_train_only,
                                 .inplace = options->inplace,
                                 .n_inplace = options->n_inplace,
                                 .attention_dropout = options->attention_dropout,
                                 .parameters = options->parameters,
                                 .buffers = options->buffers,
                                 .reports = options->train != NULL,
                                 .loss = loss,
                                 .loss_chunks = chunks,
                                 .losses = options->loss,
                                 .attention = kernel,
                                 .cuda = read_device(options)};
    ONV_TRY(onv_pytorch_find(options->pytorch, &lower->pytorch_version, err));
    lower->cuda.pytorch = lower->pytorch_version;
    for (size_t i = 0; i < options->n_inplace; i++)
        lower->relu_makes_new |= strcmp(options->inplace[i], "none") == 0;
    if (options->amp == ONV_PRECISION_FP16) lower->amp = ONV_FLOAT16;
    if (options->amp == ONV_PRECISION_BF16) lower->amp = ONV_BFLOAT16;
    return ONV_OK;
}

onv_status onv_training_read_options(const onv_options *options, onv_training_options *how,
                                     onv_error *err)
{
    enum { BEFORE_BACKWARD = 2, KEEP = 3 };
    static const char *const positions[] = {"before-forward", "before-backward", "keep", NULL};
    /* In the order of onv_optimizer_impl, which begins with the default. */
    static const char *const impls[] = {"foreach", "fused", "for-loop", NULL};
    static const char *const names[] = {"auto", "math", "flash", "efficient", NULL};
    static const onv_attention_kernel kernels[] = {ONV_ATTENTION_AUTO, ONV_ATTENTION_AUTO,
                                                   ONV_ATTENTION_MATH, ONV_ATTENTION_FLASH,
                                                   ONV_ATTENTION_EFFICIENT};
    size_t position, impl, kernel;
    ONV_TRY(choose("--zero-grad", positions, options->zero_grad, &position, err));
    ONV_TRY(choose("--optimizer-impl", impls, options->optimizer_impl, &impl, err));
    ONV_TRY(choose("--attention", names, options->attention, &kernel, err));
    onv_loss loss;
    uint32_t chunks = 0;
    ONV_TRY(read_losses(options->loss, &loss, &chunks, err));
    how->train.optimizer = options->train != NULL ? onv_optimizer_find(options->train) : NULL;
    if (options->train != NULL && how->train.optimizer == NULL)
        return onv_fail_choice(err, "--train", options->train, strlen(options->train), onv_choice,
                               ONV_CHOICE(OPTIMIZERS));
    how->train.accumulate = options->accumulate;
    ONV_TRY(read_sharing(options, how, err));
    ONV_TRY(read_lowering(options, loss, chunks, kernels[kernel], &how->train.lower, err));
    /* PyTorch 2.0 frees gradients where 1.13 zeroed them, and steps by lists of parameters where it took
     * one after the other, unless told otherwise. */
    bool is_1 = onv_before_pytorch(&how->train.lower, ONV_PYTORCH_RELEASE(2, 0));
    how->train.zero_grad_late = position == BEFORE_BACKWARD;
    how->train.keep_grads = position == KEEP || (options->zero_grad == NULL && is_1);
    how->train.impl =
        impl == ONV_IMPL_DEFAULT && is_1 ? ONV_IMPL_FOR_LOOP : (onv_optimizer_impl)impl;
    how->alloc.torch.expandable_segments = options->expandable_segments;
    how->alloc.torch.pool_bytes = options->pool;
    how->checkpoint = options->checkpoint;
    how->speed = (onv_speed){.gpu = options->gpu != NULL ? onv_gpu_find(options->gpu) : NULL,
                             .tf32 = !options->no_tf32};
    how->compiles = options->compile;
    how->compile_budget = options->compile_budget;
    return ONV_OK;
}

onv_status onv_training_check_options(const onv_options *options, onv_error *err)
{
    onv_training_options how = {0};
    ONV_TRY(onv_training_read_options(options, &how, err));
    if (options->compile && !(options->compile_budget >= 0 && options->compile_budget <= 1))
        return onv_fail(err, ONV_ERR_USAGE, "torch.compile's memory budget is from 0 to 1, not %g",
                        options->compile_budget);
    onv_plan_pick pick;
    if (options->checkpoint == NULL || options->checkpoint[0] == '\0') return ONV_OK;
    ONV_TRY(onv_plan_pick_read(options->checkpoint, &pick, err));
    return onv_ckpt_check_list(pick.list, err);
}

enum { FITS_NOT, FITS_BY_RELEASE, FITS };

onv_status onv_training_prefer(void *context, onv_training *training, uint32_t index,
                               bool *is_preferred, onv_error *err)
{
    onv_plan_choice *choice = context;
    onv_training_plan *plan = &training->plans[index];
    onv_runtime_result result;
    ONV_TRY(onv_runtime_of_training(&plan->figures, &result, err));
    plan->total_bytes = result.total_bytes.high;
    int rank = plan->total_bytes <= choice->usable_bytes ? FITS
               : result.release.suffices                 ? FITS_BY_RELEASE
                                                         : FITS_NOT;
    const onv_training_plan *other = choice->has_best ? &training->plans[choice->best] : NULL;
    bool smaller = other == NULL || plan->total_bytes < other->total_bytes;
    /* With equal products to compute again, less segments run less else again. */
    uint64_t price = onv_training_plan_price(plan);
    bool cheaper =
        other == NULL || price < onv_training_plan_price(other) ||
        (price == onv_training_plan_price(other) && plan->does.n_segments < other->does.n_segments);
    bool is_best = other == NULL || rank > choice->rank ||
                   (rank == choice->rank && (rank == FITS_NOT ? smaller : cheaper));
    *is_preferred = is_best && (training->n_plans == 1 || choice->usable_bytes > 0);
    if (!is_best) return ONV_OK;
    *choice = (onv_plan_choice){choice->usable_bytes, true, index, rank};
    training->plan_fits = rank == FITS && choice->usable_bytes > 0;
    return ONV_OK;
}
