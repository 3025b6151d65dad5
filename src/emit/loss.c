/* The losses that training starts its backward at: one for each output that is the end of a branch, and their
 * sum. */
#include "emit/loss.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "emit/layers.h"
#include "emit/product.h"

/* --- What is asked for ------------------------------------------------------------------------- */

static const char *const names[] = {[ONV_LOSS_AUTO] = "none",
                                    [ONV_LOSS_CROSS_ENTROPY] = "cross-entropy",
                                    [ONV_LOSS_FUSED] = "fused-cross-entropy",
                                    [ONV_LOSS_CHUNKED] = "chunked-cross-entropy",
                                    [ONV_LOSS_MSE] = "mse",
                                    [ONV_LOSS_NONE] = "none"};

static onv_loss loss_named(const char *text, size_t length)
{
    for (uint32_t i = ONV_LOSS_CROSS_ENTROPY; i <= ONV_LOSS_NONE; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return (onv_loss)i;
    return ONV_LOSS_AUTO;
}

/* The number at the end of "NAME=N", whose length becomes that of NAME; 0: there is none. */
static uint32_t take_count(const char *text, size_t *length)
{
    size_t end = *length;
    uint32_t count = 0, digit = 1;
    while (end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9' && digit <= 10000) {
        count += (uint32_t)(text[--end] - '0') * digit;
        digit *= 10;
    }
    if (end == *length || end == 0 || text[end - 1] != '=' || count == 0) return 0;
    *length = end - 1;
    return count;
}

bool onv_loss_next(const char **list, onv_loss_item *item)
{
    const char *text = *list, *equals = NULL;
    if (text == NULL || *text == '\0') return false;
    size_t length = strcspn(text, ",");
    *list = text + length + (text[length] == ',');
    item->count = take_count(text, &length);
    for (size_t i = 0; i < length; i++)
        if (text[i] == '=') equals = text + i;
    item->output = text;
    item->output_length = equals != NULL ? (size_t)(equals - text) : 0;
    item->text = equals != NULL ? equals + 1 : text;
    item->length = (size_t)(text + length - item->text);
    item->loss = loss_named(item->text, item->length);
    bool counts = item->loss == ONV_LOSS_CHUNKED;
    if (item->count > (counts ? ONV_LOSS_MAX_CHUNKS : 0)) item->loss = ONV_LOSS_AUTO;
    if (counts && item->count == 0) item->count = ONV_LOSS_CHUNKS;
    return true;
}

/* --- One loss ---------------------------------------------------------------------------------- */

static uint32_t new_targets(onv_emitter *e, uint8_t dtype, uint32_t rank, const int64_t *dims)
{
    uint32_t targets = onv_tensor_new(e, dtype, rank, dims, NULL);
    if (targets == ONV_NO_TENSOR) return targets;
    onv_eager_storage *storage = onv_storage_of(e, targets);
    storage->kind = ONV_STORAGE_INPUT;
    storage->label = "targets";
    return targets;
}

static uint32_t new_scalar(onv_emitter *e, uint8_t dtype)
{
    return onv_tensor_new(e, dtype, 0, NULL, NULL);
}

uint32_t onv_emit_log_probs(onv_emitter *e, uint32_t logits)
{
    onv_dtype amp = e->amp;
    e->amp = ONV_UNDEFINED;
    uint8_t dtype = onv_tensor_at(e, logits).dtype;
    uint32_t log_probs = onv_emit_softmax(e, ONV_ATEN_log_softmax, logits, dtype);
    e->amp = amp;
    return log_probs;
}

void onv_emit_nll(onv_emitter *e, uint32_t log_probs, uint32_t targets, uint32_t weights,
                  uint32_t loss)
{
    onv_emit_begin(e, "nll_loss");
    onv_emit_in_saved(e, log_probs, ONV_GRAD_NEW);
    onv_emit_in_saved(e, targets, ONV_GRAD_NONE);
    onv_emit_in_saved(e, weights, ONV_GRAD_NONE);
    onv_emit_extra(e, 1, sizeof(float), "total weight");
    onv_emit_out(e, loss);
    onv_emit_end(e);
}

/* Of [N, classes, ...]; a rank of three is a language model's [N, S, classes]. */
static uint32_t emit_cross_entropy(onv_emitter *e, uint32_t logits)
{
    onv_eager_tensor t = onv_tensor_at(e, logits);
    if (t.rank == 3) {
        int64_t flat[2] = {t.dims[0] * t.dims[1], t.dims[2]};
        logits = onv_emit_reshape(e, logits, 2, flat);
    }
    t = onv_tensor_at(e, logits);
    if (logits == ONV_NO_TENSOR) return logits;
    uint32_t log_probs = onv_amp_fp32(e, onv_emit_log_probs(e, logits));
    int64_t dims[ONV_MAX_RANK];
    for (uint32_t i = 0; i + 1 < t.rank; i++) dims[i] = t.dims[i == 0 ? 0 : i + 1];
    uint32_t targets = new_targets(e, ONV_INT64, t.rank - 1, dims);
    uint32_t loss = new_scalar(e, onv_tensor_at(e, log_probs).dtype);
    onv_emit_nll(e, log_probs, targets, ONV_NO_TENSOR, loss);
    return loss;
}

/* CUDA's kernel puts the unreduced values into the storage of the result, which keeps its size. */
static uint32_t emit_mse(onv_emitter *e, uint32_t output)
{
    output = onv_amp_fp32(e, output);
    onv_eager_tensor t = onv_tensor_at(e, output);
    uint32_t targets = new_targets(e, t.dtype, t.rank, t.dims), loss = new_scalar(e, t.dtype);
    if (loss == ONV_NO_TENSOR) return loss;
    if (!e->options->on_cpu) onv_storage_of(e, loss)->bytes = t.bytes;
    onv_emit_begin(e, "mse_loss");
    onv_emit_in_saved(e, output, ONV_GRAD_NEW);
    onv_emit_in_saved(e, targets, ONV_GRAD_NONE);
    onv_emit_temps(e, t.bytes, 0);
    onv_emit_out(e, loss);
    onv_emit_end(e);
    return loss;
}

/* --- With the linear layer before it ------------------------------------------------------------ */

/* The product that makes the logits, taken off the tape, if it stands at its end. */
typedef struct head {
    uint32_t x, w, bias; /* tensors: rows and a matrix */
    int64_t rows, width, classes;
} head;

static bool take_head(onv_emitter *e, uint32_t logits, head *found)
{
    onv_eager *eager = e->eager;
    uint32_t storage = onv_tensor_at(e, logits).storage;
    size_t end = eager->ops.count;
    while (end > 0 && eager->ops.at[end - 1].n_out == 1 &&
           onv_tensor_at(e, eager->ops.at[end - 1].out[0]).storage == storage) {
        const onv_eager_op *op = &eager->ops.at[--end];
        if (op->aten != ONV_ATEN_mm && op->aten != ONV_ATEN_addmm) continue;
        uint32_t n = op->n_in;
        onv_eager_tensor x = onv_tensor_at(e, op->in[n - 2].tensor);
        onv_eager_tensor out = onv_tensor_at(e, op->out[0]);
        *found = (head){.x = op->in[n - 2].tensor,
                        .w = op->in[n - 1].tensor,
                        .bias = n > 2 ? op->in[0].tensor : ONV_NO_TENSOR,
                        .rows = x.dims[0],
                        .width = x.dims[1],
                        .classes = out.dims[1]};
        eager->ops.count = end;
        eager->first_loss_op = (uint32_t)end;
        eager->storages.at[storage].is_output = false;
        return true;
    }
    return false;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Liger's fused_linear_cross_entropy (0.8, ops/fused_linear_cross_entropy.py): logits of some rows at a time,
 * which become their gradient, from which the gradients of the rows and of the matrix are made at once. The
 * product for that of the matrix is a tensor of its own in float32. */
static uint32_t emit_fused(onv_emitter *e, const head *h)
{
    uint32_t x = onv_amp_low(e, h->x), w = onv_amp_low(e, h->w), bias = onv_amp_low(e, h->bias);
    onv_eager_tensor in = onv_tensor_at(e, x), matrix = onv_tensor_at(e, w);
    uint32_t targets = new_targets(e, ONV_INT64, 1, &h->rows), loss = new_scalar(e, ONV_FLOAT);
    if (e->status != ONV_OK || in.elems == 0 || matrix.elems == 0) return loss;
    int64_t parts = divide_up(h->classes, h->width), chunk = 1;
    while (chunk < divide_up(h->rows, parts)) chunk *= 2;
    if (chunk > h->rows) chunk = h->rows;
    uint64_t elem = in.bytes / in.elems, rows = (uint64_t)h->rows;
    uint64_t temps = (uint64_t)chunk * (uint64_t)h->classes * elem + rows * (sizeof(float) + 1);
    bool trains = onv_tensor_needs_grad(e, w);
    if (trains && elem == sizeof(float)) temps += matrix.bytes;
    onv_emit_begin(e, "fused_linear_cross_entropy");
    onv_emit_in(e, x, ONV_GRAD_KEPT);
    onv_emit_in(e, w, ONV_GRAD_KEPT);
    onv_emit_in(e, bias, ONV_GRAD_KEPT);
    onv_emit_in(e, targets, ONV_GRAD_NONE);
    if (onv_tensor_needs_grad(e, x)) onv_emit_extra(e, 1, in.bytes, "gradient of rows");
    if (trains) onv_emit_extra(e, 1, matrix.bytes, "gradient of the matrix");
    if (onv_tensor_needs_grad(e, bias))
        onv_emit_extra(e, 1, onv_tensor_at(e, bias).bytes, "gradient of the bias");
    onv_emit_temps(e, temps, 0);
    onv_eager_workspace product = onv_emit_cublas_product(e);
    product.stands_within = true;
    onv_emit_workspace(e, product);
    onv_emit_out(e, loss);
    onv_emit_end(e);
    return loss;
}

static uint32_t emit_sum(onv_emitter *e, uint32_t sum, uint32_t loss);

/* A view of the matrix of its own for each call, so that its gradients meet as views: their sum is a third
 * tensor. */
static uint32_t emit_view(onv_emitter *e, uint32_t matrix)
{
    onv_eager_tensor t = onv_tensor_at(e, matrix);
    return onv_emit_view(e, "t", matrix, t.rank, t.dims, t.strides, ONV_GRAD_ALIAS);
}

/* As torchtune's CEWithChunkedOutputLoss: rows are split before the linear layer, and the logits of each part
 * are in float32. */
static uint32_t emit_chunked(onv_emitter *e, const head *h, uint32_t count)
{
    onv_eager_tensor t = onv_tensor_at(e, h->x);
    int64_t each = divide_up(h->rows, count), left = h->rows;
    uint32_t sum = ONV_NO_TENSOR, parts[ONV_LOSS_MAX_CHUNKS], n = 0;
    onv_emit_begin(e, "split");
    e->op.zeroes_grads = true;
    onv_emit_in(e, h->x, ONV_GRAD_NEW);
    for (; left > 0 && n < ONV_LOSS_MAX_CHUNKS; left -= each) {
        int64_t dims[] = {left < each ? left : each, h->width};
        parts[n] = onv_tensor_on(e, t.storage, t.dtype, 2, dims, t.strides);
        onv_emit_out(e, parts[n++]);
    }
    onv_emit_end(e);
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++) {
        uint32_t logits = onv_emit_linear(e, parts[i], emit_view(e, h->w), h->bias);
        if (logits == ONV_NO_TENSOR) break;
        if (onv_tensor_at(e, logits).dtype != ONV_FLOAT)
            logits = onv_emit_cast(e, logits, ONV_FLOAT);
        sum = emit_sum(e, sum, emit_cross_entropy(e, logits));
    }
    return sum;
}

/* --- All of them ------------------------------------------------------------------------------- */

/* An output that backward can start at. */
typedef struct target {
    const char *name; /* of the output */
    uint32_t output;  /* its index */
    uint32_t tensor;
    onv_loss loss;
    uint32_t chunks;
    bool is_end;   /* no operation reads it, which `n_uses` counts beside the caller */
    bool is_named; /* the caller said which loss */
} target;

/* The same for all that are ends, by their kind where none was told. A scalar is a loss that the network
 * computes itself. */
static onv_loss usual(const onv_emitter *e, const target *t, uint32_t n)
{
    uint32_t rank = onv_tensor_at(e, t->tensor).rank;
    if (n > 1 && !t->is_end) return ONV_LOSS_NONE;
    if (e->options->loss != ONV_LOSS_AUTO) return e->options->loss;
    if (rank >= 2) return ONV_LOSS_CROSS_ENTROPY;
    return rank == 1 && n > 1 ? ONV_LOSS_MSE : ONV_LOSS_NONE;
}

static void name_losses(onv_emitter *e, target *targets, uint32_t n)
{
    onv_loss_item item;
    const char *list = e->options->losses;
    while (onv_loss_next(&list, &item) && e->status == ONV_OK) {
        char pattern[512];
        bool any = item.output_length == 0;
        snprintf(pattern, sizeof pattern, "%.*s", (int)item.output_length, item.output);
        for (uint32_t i = 0; i < n && item.output_length > 0; i++) {
            const char *name = targets[i].name;
            if (fnmatch(pattern, name, 0) != 0) continue;
            targets[i].loss = item.loss;
            targets[i].chunks = item.count;
            targets[i].is_named = any = true;
        }
        if (!any)
            e->status = onv_fail(e->err, ONV_ERR_USAGE,
                                 "--loss '%.200s=...' matches no output that training reaches; the "
                                 "first one is '%.200s'",
                                 pattern, n > 0 ? targets[0].name : "none");
    }
}

static uint32_t list_targets(onv_emitter *e, const onv_loss_output *outputs, uint32_t n_outputs,
                             target *targets)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_outputs && e->status == ONV_OK; i++) {
        uint32_t tensor = outputs[i].tensor;
        if (tensor == ONV_NO_TENSOR) continue;
        onv_storage_of(e, tensor)->is_output = true;
        if (!onv_tensor_needs_grad(e, tensor)) continue;
        targets[n++] = (target){.name = outputs[i].name,
                                .output = i,
                                .tensor = tensor,
                                .is_end = outputs[i].n_uses <= 1};
    }
    return n;
}

/* An output that others read is an end, too, where no gradient comes back from them: a sample is drawn of the logits. */
static void find_ends(onv_emitter *e, target *targets, uint32_t n)
{
    const onv_eager *eager = e->eager;
    bool *reached = ONV_EMIT_ARRAY(e, bool, eager->tensors.count);
    uint32_t *target_of = ONV_EMIT_ARRAY(e, uint32_t, eager->tensors.count);
    if (reached == NULL || target_of == NULL) return;
    for (uint32_t i = 0; i < n; i++) {
        target_of[targets[i].tensor] = i + 1;
        reached[targets[i].tensor] |= targets[i].is_end;
    }
    for (size_t i = eager->ops.count; i-- > 0;) {
        const onv_eager_op *op = &eager->ops.at[i];
        bool runs = false;
        for (uint32_t k = 0; k < op->n_out; k++) {
            uint32_t out = op->out[k];
            if (target_of[out] > 0) targets[target_of[out] - 1].is_end |= !reached[out];
            runs |= target_of[out] > 0 || (reached[out] && onv_tensor_needs_grad(e, out));
        }
        for (uint32_t k = 0; k < op->n_in && runs; k++)
            if (op->in[k].grad != ONV_GRAD_NONE) reached[op->in[k].tensor] = true;
    }
}

static bool is_own_loss(const onv_emitter *e, const target *t)
{
    return t->is_end && onv_tensor_at(e, t->tensor).rank == 0;
}

/* Why an output has no loss; NULL: it was asked to have none. */
static const char *why_none(const onv_emitter *e, const target *t)
{
    if (t == NULL) return "no gradient reaches it";
    if (t->is_named || e->options->loss == ONV_LOSS_NONE) return NULL;
    if (is_own_loss(e, t)) return "it is a loss";
    return t->is_end ? "there is a loss already" : "other operations read it";
}

enum { MAX_LISTED = 400 };

/* Adds "'logits' cross-entropy" to the list; false where it is full. */
static bool list_loss(const onv_emitter *e, char *text, const char *output, const target *t)
{
    char item[200];
    bool has_loss = t != NULL && t->loss != ONV_LOSS_NONE;
    const char *why = has_loss ? NULL : why_none(e, t);
    int n = snprintf(item, sizeof item, "%s'%.80s' %s%s%s%s", text[0] != '\0' ? ", " : "", output,
                     has_loss ? names[t->loss] : names[ONV_LOSS_NONE], why != NULL ? " (" : "",
                     why != NULL ? why : "", why != NULL ? ")" : "");
    if (n < 0 || strlen(text) + (size_t)n >= MAX_LISTED) return false;
    strcat(text, item);
    return true;
}

/* Where there are several outputs, says which has which loss: first those that have one. */
static void report(onv_emitter *e, const onv_loss_output *outputs, uint32_t n_outputs,
                   const target *targets, uint32_t n)
{
    char text[MAX_LISTED] = "", more[32] = "";
    uint32_t left = 0, listed = 0;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0, k = 0; i < n_outputs; i++) {
            const target *t = k < n && targets[k].output == i ? &targets[k++] : NULL;
            bool has_loss = t != NULL && t->loss != ONV_LOSS_NONE;
            if (has_loss != (pass == 0)) continue;
            left += t != NULL && !has_loss && !is_own_loss(e, t) && why_none(e, t) != NULL;
            listed += list_loss(e, text, outputs[i].name, t);
        }
    if (listed < n_outputs) snprintf(more, sizeof more, " and %u more", n_outputs - listed);
    onv_model_diag(e->model, left > 0 ? ONV_WARNING : ONV_NOTE, "losses", NULL,
                   "%u outputs and their losses: %s%s; --loss OUTPUT=NAME,... chooses", n_outputs,
                   text, more);
}

static uint32_t emit_loss(onv_emitter *e, const target *t)
{
    if (t->loss == ONV_LOSS_MSE) return emit_mse(e, t->tensor);
    bool with_head = t->loss == ONV_LOSS_FUSED || t->loss == ONV_LOSS_CHUNKED;
    head found;
    if (with_head && take_head(e, t->tensor, &found))
        return t->loss == ONV_LOSS_FUSED ? emit_fused(e, &found)
                                         : emit_chunked(e, &found, t->chunks);
    if (!with_head && onv_tensor_at(e, t->tensor).rank >= 2)
        return emit_cross_entropy(e, t->tensor);
    const char *name = t->name;
    if (with_head) {
        e->status =
            onv_fail(e->err, ONV_ERR_USAGE,
                     "the output '%.200s' is not the result of a linear layer at the end of "
                     "the network: it has no %s; try --loss cross-entropy",
                     name, names[t->loss]);
        return ONV_NO_TENSOR;
    }
    e->status =
        onv_fail(e->err, ONV_ERR_USAGE,
                 "the output '%.200s' is not [N, classes ...]: it has no cross-entropy; try "
                 "--loss mse, or for this one --loss '%.200s=mse'",
                 name, name);
    return ONV_NO_TENSOR;
}

static uint32_t emit_sum(onv_emitter *e, uint32_t sum, uint32_t loss)
{
    if (sum == ONV_NO_TENSOR || loss == ONV_NO_TENSOR) return loss;
    return onv_emit_step(e, ONV_ATEN_add, sum, loss, 0, &(const onv_shape){0});
}

/* Without a loss backward starts at the outputs, at a scalar alone where there is one. */
static void start_at_outputs(onv_emitter *e, const target *targets, uint32_t n, bool has_own)
{
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++) {
        if (has_own && !is_own_loss(e, &targets[i])) continue;
        if (!onv_vec_push(&e->eager->outputs, targets[i].tensor))
            e->status = onv_fail_memory(e->err);
    }
}

static void emit_all(onv_emitter *e, const target *targets, uint32_t n)
{
    uint32_t sum = ONV_NO_TENSOR;
    const char *name = NULL;
    for (uint32_t i = 0; i < n && e->status == ONV_OK; i++) {
        if (targets[i].loss == ONV_LOSS_NONE) continue;
        bool same = name == NULL || name == names[targets[i].loss];
        name = same ? names[targets[i].loss] : "cross-entropy, mse";
        sum = emit_sum(e, sum, emit_loss(e, &targets[i]));
    }
    if (sum == ONV_NO_TENSOR || e->status != ONV_OK) return;
    e->eager->loss_name = name;
    e->eager->loss = sum;
    onv_storage_of(e, sum)->is_output = true;
}

static void emit_losses(onv_emitter *e, const onv_loss_output *outputs, uint32_t n_outputs)
{
    bool has_own = false;
    target *targets = ONV_EMIT_ARRAY(e, target, n_outputs);
    if (targets == NULL) return;
    uint32_t n = list_targets(e, outputs, n_outputs, targets);
    e->eager->first_loss_op = (uint32_t)e->eager->ops.count;
    e->eager->loss_name = "none";
    if (n == 0 || e->status != ONV_OK || e->options->inference) return;
    find_ends(e, targets, n);
    if (e->status != ONV_OK) return;
    for (uint32_t i = 0; i < n; i++) has_own |= is_own_loss(e, &targets[i]);
    has_own &= e->options->loss == ONV_LOSS_AUTO;
    for (uint32_t i = 0; i < n; i++) {
        targets[i].loss = has_own ? ONV_LOSS_NONE : usual(e, &targets[i], n);
        targets[i].chunks = e->options->loss_chunks;
    }
    name_losses(e, targets, n);
    if (e->status == ONV_OK) emit_all(e, targets, n);
    if (e->status == ONV_OK) start_at_outputs(e, targets, n, has_own);
    bool asked = e->options->loss == ONV_LOSS_NONE && e->eager->loss == ONV_NO_TENSOR;
    if (e->status == ONV_OK && n_outputs > 1 && e->options->reports && !asked)
        report(e, outputs, n_outputs, targets, n);
}

void onv_emit_loss(onv_emitter *e, const onv_loss_output *outputs, uint32_t n_outputs)
{
    emit_losses(e, outputs, n_outputs);
    if (e->status == ONV_OK && !e->options->inference) onv_copies_add(e);
    if (e->status == ONV_OK && !e->options->inference) onv_reach_find(e);
}
