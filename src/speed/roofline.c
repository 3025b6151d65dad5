#include <math.h>
#include <string.h>

#include "base/quota.h"
#include "speed/speed.h"

/* --- What a card reaches ----------------------------------------------------------------------- */

/* The high end. Products: the lowest model FLOPs utilization of the large models that were compared when the measure was
 * introduced (21.3 % for GPT-3: Chowdhery et al. 2022, arXiv:2204.02311, table 3). Memory: what Jia et al. 2019
 * (arXiv:1903.07486) measured of a T4, 220 of 320 GB/s. The host: an operation took it up to 11.3 microseconds in PyTorch 2.15 over a
 * substitute for the CUDA driver, which launches nothing (ResNet-50, MobileNetV3, ViT-B/16, BERT); twice that counts. */
static const double products_reached = 0.213, memory_reached = 0.6875, host_seconds = 22.6e-6;

/* What runs, and how long it takes. */
typedef struct work {
    double macs, bytes, kernels, low, high; /* seconds */
} work;

/* A step: all of it, and what of it a plan adds. */
typedef struct step {
    work all, more;
} step;

typedef enum units { UNITS_FP32, UNITS_TF32, UNITS_HALF, UNITS_NONE } units;

static bool is_attention(const onv_eager_op *op)
{
    return op->aten == ONV_ATEN_flash_attention || op->aten == ONV_ATEN_cudnn_attention ||
           op->aten == ONV_ATEN_efficient_attention;
}

static bool is_recurrent(const onv_eager_op *op)
{
    return onv_aten_ops[op->aten].rule == ONV_RULE_RECURRENT;
}

/* Which units multiply. Of float32, cuDNN may have TF32, cuBLAS has not, as PyTorch is without settings; whether a kernel of attention
 * has is not known: `fastest` says yes. */
static units units_of(const onv_speed *speed, const onv_eager *eager, const onv_eager_op *op,
                      bool fastest)
{
    const onv_gpu *gpu = speed->gpu;
    bool by_cudnn = op->aten == ONV_ATEN_conv || is_recurrent(op);
    switch (eager->tensors.at[op->out[0]].dtype) {
    case ONV_FLOAT:
        if (gpu->speed->fastest.tf32 > 0 &&
            ((by_cudnn && speed->tf32) || (is_attention(op) && fastest)))
            return UNITS_TF32;
        return UNITS_FP32;
    case ONV_BFLOAT16: return gpu->cc_major >= 8 ? UNITS_HALF : UNITS_NONE;
    case ONV_FLOAT16: return UNITS_HALF;
    default: return UNITS_NONE;
    }
}

/* FLOP/s; 0: no such units. */
static double peak(const onv_gpu_rates *rates, units of)
{
    const double tera = 1e12;
    switch (of) {
    case UNITS_FP32: return rates->fp32 * tera;
    case UNITS_TF32: return rates->tf32 * tera;
    case UNITS_HALF: return rates->half * tera;
    case UNITS_NONE: break;
    }
    return 0;
}

/* Adds `n` runs of one kernel. Where its products have no peak, the seconds are no number any more. */
static void add(work *to, const onv_speed *speed, double macs, double bytes, double n,
                const double peaks[2])
{
    const onv_gpu_rates *fastest = &speed->gpu->speed->fastest,
                        *slowest = &speed->gpu->speed->slowest;
    const double giga = 1e9, flops = 2 * macs;
    double low = bytes / (fastest->bandwidth * giga);
    double high = fmax(host_seconds, bytes / (slowest->bandwidth * giga * memory_reached));
    if (macs > 0) {
        low = peaks[0] > 0 ? fmax(low, flops / peaks[0]) : (double)INFINITY;
        high = peaks[1] > 0 ? fmax(high, flops / (peaks[1] * products_reached)) : (double)INFINITY;
    }
    to->macs += n * macs;
    to->bytes += n * bytes;
    to->kernels += n;
    to->low += n * low;
    to->high += n * high;
}

static void add_bytes(work *to, const onv_speed *speed, double bytes, double n_kernels)
{
    const double none[2] = {0, 0};
    if (n_kernels > 0) add(to, speed, 0, bytes / n_kernels, n_kernels, none);
}

/* --- Operations -------------------------------------------------------------------------------- */

/* The table around an operation. */
typedef struct taped {
    const onv_speed *speed;
    const onv_eager *eager;
    const onv_eager_op *op;
    double peaks[2]; /* fastest, slowest */
} taped;

static taped taped_at(const onv_speed *speed, const onv_eager *eager, uint32_t index)
{
    taped t = {speed, eager, &eager->ops.at[index], {0, 0}};
    if (t.op->macs == 0 || t.op->n_out == 0) return t;
    t.peaks[0] = peak(&speed->gpu->speed->fastest, units_of(speed, eager, t.op, true));
    t.peaks[1] = peak(&speed->gpu->speed->slowest, units_of(speed, eager, t.op, false));
    return t;
}

static const onv_eager_storage *storage_of(const taped *t, uint32_t tensor)
{
    return &t->eager->storages.at[t->eager->tensors.at[tensor].storage];
}

/* An expanded tensor has more elements than its storage. */
static double bytes_of(const taped *t, uint32_t tensor)
{
    const onv_eager_storage *storage = storage_of(t, tensor);
    uint64_t bytes = t->eager->tensors.at[tensor].bytes;
    if (storage->on_host) return 0;
    return (double)(bytes < storage->bytes ? bytes : storage->bytes);
}

static double output_bytes(const taped *t)
{
    double bytes = 0;
    for (uint32_t k = 0; k < t->op->n_out; k++) bytes += bytes_of(t, t->op->out[k]);
    return bytes;
}

/* Takes rows or elements: of the first operand no more is read than is given. */
static bool picks(const onv_eager_op *op)
{
    switch (op->aten) {
    case ONV_ATEN_embedding:
    case ONV_ATEN_gather:
    case ONV_ATEN_index:
    case ONV_ATEN_index_select:
    case ONV_ATEN_take: return true;
    default: return false;
    }
}

static double input_bytes(const taped *t)
{
    double bytes = 0;
    for (uint32_t k = 0; k < t->op->n_in; k++) {
        double one = bytes_of(t, t->op->in[k].tensor);
        bytes += k == 0 && picks(t->op) ? fmin(one, output_bytes(t)) : one;
    }
    return bytes;
}

/* What it keeps for its backward: made by it alone, or all. */
static double saved_bytes(const taped *t, bool all)
{
    double bytes = 0;
    for (uint32_t k = 0; k < t->op->n_saved; k++) {
        const onv_eager_storage *s = &t->eager->storages.at[t->op->saved[k]];
        if (!s->on_host && (all || s->kind == ONV_STORAGE_EXTRA)) bytes += (double)s->bytes;
    }
    return bytes;
}

/* Views, and what is done on the host. */
static bool runs_nothing(const taped *t)
{
    const onv_eager_op *op = t->op;
    bool is_on_device = false, is_view = op->n_in > 0 && !op->in_place && op->macs == 0;
    for (uint32_t k = 0; k < op->n_out; k++) {
        is_on_device |= !storage_of(t, op->out[k])->on_host;
        is_view = is_view && storage_of(t, op->out[k]) == storage_of(t, op->in[0].tensor);
    }
    return !is_on_device || is_view;
}

/* What is made on the way is written, and read. */
static void run_forward(const taped *t, double n, work *to)
{
    const onv_eager_op *op = t->op;
    if (n == 0 || runs_nothing(t)) return;
    double bytes = input_bytes(t) + output_bytes(t) + saved_bytes(t, false) +
                   2 * (double)op->forward_temp_bytes;
    add(to, t->speed, (double)op->macs, bytes, n, t->peaks);
}

/* A kernel for the gradient of each operand, which reads the others; that of a bias is a sum. */
static void run_product_backward(const taped *t, double n, work *to)
{
    const onv_eager_op *op = t->op;
    double reads = output_bytes(t) + input_bytes(t);
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (op->in[k].grad != ONV_GRAD_NEW) continue;
        if (t->eager->tensors.at[op->in[k].tensor].rank >= 2)
            add(to, t->speed, (double)op->macs, reads, n, t->peaks);
        else
            add_bytes(to, t->speed, n * (output_bytes(t) + bytes_of(t, op->in[k].tensor)), n);
    }
}

/* Backward of attention computes the scores once more: five products for the two of its forward. Recurrent layers have
 * two for each. */
static double products_backward(const onv_eager_op *op)
{
    return is_attention(op) ? 2.5 : 2;
}

static void run_backward(const taped *t, double n, work *to)
{
    const onv_eager_op *op = t->op;
    double made = 0;
    if (op->n_out == 0) return;
    for (uint32_t k = 0; k < op->n_in; k++) {
        const onv_eager_arg *in = &op->in[k];
        double bytes = fmax(bytes_of(t, in->tensor), (double)in->grad_bytes);
        if (in->grad == ONV_GRAD_NEW) made += bytes;
        if (in->grad == ONV_GRAD_KEPT) made += 2 * bytes;
    }
    if (made == 0) return;
    if (op->macs > 0 && !is_attention(op) && !is_recurrent(op)) {
        run_product_backward(t, n, to);
        return;
    }
    double bytes =
        output_bytes(t) + saved_bytes(t, true) + made +
        2 * ((double)onv_eager_backward_temps(t->eager, op) + (double)op->grad_copy_bytes);
    double macs = op->macs > 0 ? products_backward(op) * (double)op->macs : 0;
    add(to, t->speed, macs, bytes, n, t->peaks);
}

/* --- Steps ------------------------------------------------------------------------------------- */

static const char *why_not_on(const onv_speed *speed, const onv_eager *eager)
{
    onv_work(eager->ops.count);
    if (speed->gpu->speed->source == NULL) return "the table of GPUs has no published speed of it";
    if (eager->opaque > 0) return "the model has unknown operators";
    for (size_t i = 0; i < eager->ops.count; i++)
        if (strcmp(eager->ops.at[i].name, "fused_linear_cross_entropy") == 0)
            return "how long a fused loss takes is not known";
    return NULL;
}

static uint64_t whole(double number)
{
    const double most = 1e18; /* below 2^63 */
    return number < most ? (uint64_t)llround(number) : (uint64_t)most;
}

static onv_time_range nanoseconds(const work *of)
{
    const double giga = 1e9;
    return (onv_time_range){whole(of->low * giga), whole(of->high * giga)};
}

static onv_time give(const step *s)
{
    if (!isfinite(s->all.high))
        return (onv_time){.refused =
                              "no peak is published of its products in the type of an operation"};
    return (onv_time){.all = nanoseconds(&s->all),
                      .more = nanoseconds(&s->more),
                      .macs = whole(s->all.macs),
                      .bytes = whole(s->all.bytes),
                      .kernels = whole(s->all.kernels)};
}

onv_time onv_speed_of_pass(const onv_speed *speed, const onv_eager *eager,
                           const onv_lower_options *options)
{
    step s = {.all = {0}};
    onv_time none = {.refused = why_not_on(speed, eager)};
    if (none.refused == NULL && options->weights != NULL)
        none.refused = "kernels of quantized weights are not estimated";
    if (none.refused == NULL && eager->regions.count > 0)
        none.refused = "the model has branches or loops";
    if (none.refused != NULL) return none;
    for (uint32_t i = 0; i < eager->ops.count; i++) {
        taped t = taped_at(speed, eager, i);
        run_forward(&t, 1, &s.all);
    }
    return give(&s);
}

static const char *why_no_step(const onv_train_options *options)
{
    if (options->parallel != ONV_PARALLEL_NONE || options->zero_stage > 0)
        return "communication between devices is not estimated";
    if (options->offload != ONV_OFFLOAD_NOTHING) return "what the host computes is not estimated";
    if (options->weights != NULL) return "kernels of quantized weights are not estimated";
    return NULL;
}

static void multiply(work *time, double n)
{
    time->macs *= n;
    time->bytes *= n;
    time->kernels *= n;
    time->low *= n;
    time->high *= n;
}

static void add_all(work *to, const work *from)
{
    to->macs += from->macs;
    to->bytes += from->bytes;
    to->kernels += from->kernels;
    to->low += from->low;
    to->high += from->high;
}

static double n_trained(const onv_eager *eager)
{
    uint32_t n = 0;
    for (size_t i = 0; i < eager->storages.count; i++) n += eager->storages.at[i].trained;
    return n;
}

/* Low: parameters, gradients and state are read once, and parameters and state written, as by a fused kernel. High: three times as
 * much, as AdamW's lists do (21 passes over memory instead of 7), with an operation of the host for each parameter. */
static void add_optimizer(work *to, const onv_speed *speed, const onv_eager *eager,
                          const onv_train_program *program)
{
    const double lists = 3;
    double bytes = 3 * (double)program->gradient_bytes + 2 * (double)program->optimizer_bytes +
                   2 * (double)program->parts.master_bytes + 3 * (double)program->parts.ema_bytes;
    work once = {0};
    add_bytes(&once, speed, bytes, n_trained(eager));
    once.high *= lists;
    add_all(to, &once);
}

/* Between the host and the device. Low: while kernels run, so that only what is longer than these counts. High: in between. */
static void add_moved(const onv_speed *speed, double bytes, step *s)
{
    const double giga = 1e9;
    double least = bytes / (speed->gpu->speed->pcie * giga);
    s->more.low += fmax(0, least - s->all.low);
    s->more.high += least / memory_reached;
}

onv_time onv_speed_of_step(const onv_speed *speed, const onv_eager *eager,
                           const onv_train_options *options, const onv_train_program *program,
                           const onv_op_runs *runs)
{
    step s = {.all = {0}};
    double passes = options->accumulate > 1 ? options->accumulate : 1;
    onv_time none = {.refused = why_not_on(speed, eager)};
    if (none.refused == NULL) none.refused = why_no_step(options);
    if (none.refused != NULL) return none;
    for (uint32_t i = 0; i < eager->ops.count; i++) {
        taped t = taped_at(speed, eager, i);
        run_forward(&t, 1, &s.all);
        run_forward(&t, runs[i].again, &s.more);
        if (runs[i].goes_back) run_backward(&t, 1, &s.all);
    }
    add_bytes(&s.all, speed, 3 * (double)program->summed_bytes, program->n_sums);
    add_moved(speed, (double)program->offloaded_bytes + (double)program->returned_bytes, &s);
    add_all(&s.all, &s.more);
    multiply(&s.all, passes);
    multiply(&s.more, passes);
    add_bytes(&s.all, speed, (passes - 1) * 3 * (double)program->gradient_bytes,
              (passes - 1) * n_trained(eager));
    add_optimizer(&s.all, speed, eager, program);
    return give(&s);
}
