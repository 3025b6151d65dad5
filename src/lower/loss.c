/* The losses that training starts its backward at: one for each output that is the end of a branch, and their
 * sum. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "kernels/cublas.h"
#include "lower/lowering.h"

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

static uint32_t new_targets(onv_lowering *l, uint8_t dtype, uint32_t rank, const int64_t *dims)
{
    uint32_t targets = onv_tensor_new(l, dtype, rank, dims, NULL);
    if (targets == ONV_NO_TENSOR) return targets;
    onv_eager_storage *storage = &l->eager->storages.at[onv_tensor_at(l, targets).storage];
    storage->kind = ONV_STORAGE_INPUT;
    storage->label = "targets";
    return targets;
}

static uint32_t new_scalar(onv_lowering *l, uint8_t dtype)
{
    return onv_tensor_new(l, dtype, 0, NULL, NULL);
}

/* Of [N, classes, ...]; a rank of three is a language model's [N, S, classes]. */
static uint32_t emit_cross_entropy(onv_lowering *l, uint32_t logits)
{
    onv_eager_tensor t = onv_tensor_at(l, logits);
    if (t.rank == 3) {
        int64_t flat[2] = {t.dims[0] * t.dims[1], t.dims[2]};
        logits = onv_emit_reshape(l, logits, 2, flat);
    }
    t = onv_tensor_at(l, logits);
    if (logits == ONV_NO_TENSOR) return logits;
    uint32_t log_probs = onv_tensor_new(l, t.dtype, t.rank, t.dims, NULL);
    onv_emit_begin(l, "log_softmax");
    onv_emit_in(l, logits, ONV_GRAD_NEW);
    onv_emit_save(l, log_probs);
    onv_emit_out(l, log_probs);
    onv_emit_end(l);
    log_probs = onv_amp_fp32(l, log_probs); /* autocast sees the second half only */
    int64_t dims[ONV_MAX_RANK];
    for (uint32_t i = 0; i + 1 < t.rank; i++) dims[i] = t.dims[i == 0 ? 0 : i + 1];
    uint32_t targets = new_targets(l, ONV_INT64, t.rank - 1, dims);
    uint32_t loss = new_scalar(l, onv_tensor_at(l, log_probs).dtype);
    onv_emit_begin(l, "nll_loss");
    onv_emit_in(l, log_probs, ONV_GRAD_NEW);
    onv_emit_in(l, targets, ONV_GRAD_NONE);
    onv_emit_save(l, log_probs);
    onv_emit_save(l, targets);
    onv_emit_extra(l, 1, sizeof(float), "total weight");
    onv_emit_out(l, loss);
    onv_emit_end(l);
    return loss;
}

/* CUDA's kernel puts the unreduced values into the storage of the result, which keeps its size. */
static uint32_t emit_mse(onv_lowering *l, uint32_t output)
{
    output = onv_amp_fp32(l, output);
    onv_eager_tensor t = onv_tensor_at(l, output);
    uint32_t targets = new_targets(l, t.dtype, t.rank, t.dims), loss = new_scalar(l, t.dtype);
    if (loss == ONV_NO_TENSOR) return loss;
    if (!l->options->on_cpu) l->eager->storages.at[onv_tensor_at(l, loss).storage].bytes = t.bytes;
    onv_emit_begin(l, "mse_loss");
    onv_emit_in(l, output, ONV_GRAD_NEW);
    onv_emit_in(l, targets, ONV_GRAD_NONE);
    onv_emit_save(l, output);
    onv_emit_save(l, targets);
    onv_emit_temps(l, t.bytes, 0);
    onv_emit_out(l, loss);
    onv_emit_end(l);
    return loss;
}

/* --- With the linear layer before it ------------------------------------------------------------ */

/* The product that makes the logits, taken off the tape, if it stands at its end. */
typedef struct head {
    uint32_t x, w, bias; /* tensors: rows and a matrix */
    int64_t rows, width, classes;
} head;

static bool take_head(onv_lowering *l, uint32_t logits, head *found)
{
    onv_eager *eager = l->eager;
    uint32_t storage = onv_tensor_at(l, logits).storage;
    size_t end = eager->ops.count;
    while (end > 0 && eager->ops.at[end - 1].n_out == 1 &&
           onv_tensor_at(l, eager->ops.at[end - 1].out[0]).storage == storage) {
        const onv_eager_op *op = &eager->ops.at[--end];
        if (strcmp(op->name, "mm") != 0 && strcmp(op->name, "addmm") != 0) continue;
        uint32_t n = op->n_in;
        onv_eager_tensor x = onv_tensor_at(l, op->in[n - 2].tensor);
        onv_eager_tensor out = onv_tensor_at(l, op->out[0]);
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
static uint32_t emit_fused(onv_lowering *l, const head *h)
{
    uint32_t x = onv_amp_low(l, h->x), w = onv_amp_low(l, h->w), bias = onv_amp_low(l, h->bias);
    onv_eager_tensor in = onv_tensor_at(l, x), matrix = onv_tensor_at(l, w);
    uint32_t targets = new_targets(l, ONV_INT64, 1, &h->rows), loss = new_scalar(l, ONV_FLOAT);
    if (l->status != ONV_OK || in.elems == 0 || matrix.elems == 0) return loss;
    int64_t parts = divide_up(h->classes, h->width), chunk = 1;
    while (chunk < divide_up(h->rows, parts)) chunk *= 2;
    if (chunk > h->rows) chunk = h->rows;
    uint64_t elem = in.bytes / in.elems, rows = (uint64_t)h->rows;
    uint64_t temps = (uint64_t)chunk * (uint64_t)h->classes * elem + rows * (sizeof(float) + 1);
    bool trains = onv_tensor_needs_grad(l, w);
    if (trains && elem == sizeof(float)) temps += matrix.bytes;
    onv_emit_begin(l, "fused_linear_cross_entropy");
    onv_emit_in(l, x, ONV_GRAD_KEPT);
    onv_emit_in(l, w, ONV_GRAD_KEPT);
    onv_emit_in(l, bias, ONV_GRAD_KEPT);
    onv_emit_in(l, targets, ONV_GRAD_NONE);
    if (onv_tensor_needs_grad(l, x)) onv_emit_extra(l, 1, in.bytes, "gradient of rows");
    if (trains) onv_emit_extra(l, 1, matrix.bytes, "gradient of the matrix");
    if (onv_tensor_needs_grad(l, bias))
        onv_emit_extra(l, 1, onv_tensor_at(l, bias).bytes, "gradient of the bias");
    onv_emit_temps(l, temps, 0);
    onv_cublas_workspace product = onv_cublas_product(&l->options->cuda);
    l->eager->uses_cublas |= l->options->cuda.compute_capability > 0;
    onv_emit_workspace(l, (onv_eager_workspace){.library = "cuBLAS",
                                                .bytes = product.bytes,
                                                .kept_bytes = product.kept_bytes,
                                                .stands_within = true});
    onv_emit_out(l, loss);
    onv_emit_end(l);
    return loss;
}

static uint32_t emit_sum(onv_lowering *l, uint32_t sum, uint32_t loss);

/* A view of the matrix of its own for each call, so that its gradients meet as views: their sum is a third
 * tensor. */
static uint32_t emit_view(onv_lowering *l, uint32_t matrix)
{
    onv_eager_tensor t = onv_tensor_at(l, matrix);
    uint32_t out = onv_tensor_on(l, t.storage, t.dtype, t.rank, t.dims, t.strides);
    onv_emit_begin(l, "t");
    onv_emit_in(l, matrix, ONV_GRAD_ALIAS);
    onv_emit_out(l, out);
    onv_emit_end(l);
    return out;
}

/* As torchtune's CEWithChunkedOutputLoss: rows are split before the linear layer, and the logits of each part
 * are in float32. */
static uint32_t emit_chunked(onv_lowering *l, const head *h, uint32_t count)
{
    onv_eager_tensor t = onv_tensor_at(l, h->x);
    int64_t each = divide_up(h->rows, count), left = h->rows;
    uint32_t sum = ONV_NO_TENSOR, parts[ONV_LOSS_MAX_CHUNKS], n = 0;
    onv_emit_begin(l, "split");
    l->emit.op.zeroes_grads = true;
    onv_emit_in(l, h->x, ONV_GRAD_NEW);
    for (; left > 0 && n < ONV_LOSS_MAX_CHUNKS; left -= each) {
        int64_t dims[] = {left < each ? left : each, h->width};
        parts[n] = onv_tensor_on(l, t.storage, t.dtype, 2, dims, t.strides);
        onv_emit_out(l, parts[n++]);
    }
    onv_emit_end(l);
    for (uint32_t i = 0; i < n && l->status == ONV_OK; i++) {
        uint32_t logits = onv_emit_linear(l, parts[i], emit_view(l, h->w), h->bias);
        if (logits == ONV_NO_TENSOR) break;
        if (onv_tensor_at(l, logits).dtype != ONV_FLOAT)
            logits = onv_emit_cast(l, logits, ONV_FLOAT);
        sum = emit_sum(l, sum, emit_cross_entropy(l, logits));
    }
    return sum;
}

/* --- All of them ------------------------------------------------------------------------------- */

/* An output that backward can start at. */
typedef struct target {
    onv_value_id value;
    uint32_t tensor;
    onv_loss loss;
    uint32_t chunks;
    bool is_end;   /* no operation reads it, which `n_uses` counts beside the caller */
    bool is_named; /* the caller said which loss */
} target;

/* The same for all that are ends, by their kind where none was told. A scalar is a loss that the network
 * computes itself. */
static onv_loss usual(const onv_lowering *l, const target *t, uint32_t n)
{
    uint32_t rank = onv_tensor_at(l, t->tensor).rank;
    if (n > 1 && !t->is_end) return ONV_LOSS_NONE;
    if (l->options->loss != ONV_LOSS_AUTO) return l->options->loss;
    if (rank >= 2) return ONV_LOSS_CROSS_ENTROPY;
    return rank == 1 && n > 1 ? ONV_LOSS_MSE : ONV_LOSS_NONE;
}

static void name_losses(onv_lowering *l, target *targets, uint32_t n)
{
    onv_loss_item item;
    const char *list = l->options->losses;
    while (onv_loss_next(&list, &item) && l->status == ONV_OK) {
        char pattern[512];
        bool any = item.output_length == 0;
        snprintf(pattern, sizeof pattern, "%.*s", (int)item.output_length, item.output);
        for (uint32_t i = 0; i < n && item.output_length > 0; i++) {
            const char *name = onv_model_value(l->model, targets[i].value)->name;
            if (fnmatch(pattern, name, 0) != 0) continue;
            targets[i].loss = item.loss;
            targets[i].chunks = item.count;
            targets[i].is_named = any = true;
        }
        if (!any)
            l->status = onv_fail(
                l->err, ONV_ERR_USAGE,
                "--loss '%.200s=...' matches no output that training reaches; the "
                "first one is '%.200s'",
                pattern, n > 0 ? onv_model_value(l->model, targets[0].value)->name : "none");
    }
}

static uint32_t list_targets(onv_lowering *l, const onv_value_id *outputs, uint32_t n_outputs,
                             target *targets)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_outputs && l->status == ONV_OK; i++) {
        uint32_t tensor = onv_value_tensor(l, outputs[i]);
        if (tensor == ONV_NO_TENSOR) continue;
        l->eager->storages.at[onv_tensor_at(l, tensor).storage].is_output = true;
        if (!onv_tensor_needs_grad(l, tensor)) continue;
        targets[n++] = (target){.value = outputs[i],
                                .tensor = tensor,
                                .is_end = l->fusions.n_uses[outputs[i].index] <= 1};
    }
    return n;
}

/* An output that others read is an end, too, where no gradient comes back from them: a sample is drawn of the logits. */
static void find_ends(onv_lowering *l, target *targets, uint32_t n)
{
    const onv_eager *eager = l->eager;
    bool *reached = ONV_ARENA_ARRAY(&l->model->arena, bool, eager->tensors.count);
    uint32_t *target_of = ONV_ARENA_ARRAY(&l->model->arena, uint32_t, eager->tensors.count);
    if (reached == NULL || target_of == NULL) {
        l->status = onv_fail_memory(l->err);
        return;
    }
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
            runs |= target_of[out] > 0 || (reached[out] && onv_tensor_needs_grad(l, out));
        }
        for (uint32_t k = 0; k < op->n_in && runs; k++)
            if (op->in[k].grad != ONV_GRAD_NONE) reached[op->in[k].tensor] = true;
    }
}

static bool is_own_loss(const onv_lowering *l, const target *t)
{
    return t->is_end && onv_tensor_at(l, t->tensor).rank == 0;
}

/* Why an output has no loss; NULL: it was asked to have none. */
static const char *why_none(const onv_lowering *l, const target *t)
{
    if (t == NULL) return "no gradient reaches it";
    if (t->is_named || l->options->loss == ONV_LOSS_NONE) return NULL;
    if (is_own_loss(l, t)) return "it is a loss";
    return t->is_end ? "there is a loss already" : "other operations read it";
}

enum { MAX_LISTED = 400 };

/* Adds "'logits' cross-entropy" to the list; false where it is full. */
static bool list_loss(const onv_lowering *l, char *text, onv_value_id output, const target *t)
{
    char item[200];
    bool has_loss = t != NULL && t->loss != ONV_LOSS_NONE;
    const char *why = has_loss ? NULL : why_none(l, t);
    int n = snprintf(item, sizeof item, "%s'%.80s' %s%s%s%s", text[0] != '\0' ? ", " : "",
                     onv_model_value(l->model, output)->name,
                     has_loss ? names[t->loss] : names[ONV_LOSS_NONE], why != NULL ? " (" : "",
                     why != NULL ? why : "", why != NULL ? ")" : "");
    if (n < 0 || strlen(text) + (size_t)n >= MAX_LISTED) return false;
    strcat(text, item);
    return true;
}

/* Where there are several outputs, says which has which loss: first those that have one. */
static void report(onv_lowering *l, const onv_value_id *outputs, uint32_t n_outputs,
                   const target *targets, uint32_t n)
{
    char text[MAX_LISTED] = "", more[32] = "";
    uint32_t left = 0, listed = 0;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0, k = 0; i < n_outputs; i++) {
            const target *t =
                k < n && targets[k].value.index == outputs[i].index ? &targets[k++] : NULL;
            bool has_loss = t != NULL && t->loss != ONV_LOSS_NONE;
            if (has_loss != (pass == 0)) continue;
            left += t != NULL && !has_loss && !is_own_loss(l, t) && why_none(l, t) != NULL;
            listed += list_loss(l, text, outputs[i], t);
        }
    if (listed < n_outputs) snprintf(more, sizeof more, " and %u more", n_outputs - listed);
    onv_model_diag(l->model, left > 0 ? ONV_WARNING : ONV_NOTE, "losses", NULL,
                   "%u outputs and their losses: %s%s; --loss OUTPUT=NAME,... chooses", n_outputs,
                   text, more);
}

static uint32_t emit_loss(onv_lowering *l, const target *t)
{
    if (t->loss == ONV_LOSS_MSE) return emit_mse(l, t->tensor);
    bool with_head = t->loss == ONV_LOSS_FUSED || t->loss == ONV_LOSS_CHUNKED;
    head found;
    if (with_head && take_head(l, t->tensor, &found))
        return t->loss == ONV_LOSS_FUSED ? emit_fused(l, &found)
                                         : emit_chunked(l, &found, t->chunks);
    if (!with_head && onv_tensor_at(l, t->tensor).rank >= 2)
        return emit_cross_entropy(l, t->tensor);
    const char *name = onv_model_value(l->model, t->value)->name;
    if (with_head) {
        l->status =
            onv_fail(l->err, ONV_ERR_USAGE,
                     "the output '%.200s' is not the result of a linear layer at the end of "
                     "the network: it has no %s; try --loss cross-entropy",
                     name, names[t->loss]);
        return ONV_NO_TENSOR;
    }
    l->status =
        onv_fail(l->err, ONV_ERR_USAGE,
                 "the output '%.200s' is not [N, classes ...]: it has no cross-entropy; try "
                 "--loss mse, or for this one --loss '%.200s=mse'",
                 name, name);
    return ONV_NO_TENSOR;
}

static uint32_t emit_sum(onv_lowering *l, uint32_t sum, uint32_t loss)
{
    if (sum == ONV_NO_TENSOR || loss == ONV_NO_TENSOR) return loss;
    uint32_t out = new_scalar(l, onv_tensor_at(l, sum).dtype);
    onv_emit_begin(l, "add");
    onv_emit_in(l, sum, ONV_GRAD_ALIAS);
    onv_emit_in(l, loss, ONV_GRAD_ALIAS);
    onv_emit_out(l, out);
    onv_emit_end(l);
    return out;
}

/* Without a loss backward starts at the outputs, at a scalar alone where there is one. */
static void start_at_outputs(onv_lowering *l, const target *targets, uint32_t n, bool has_own)
{
    for (uint32_t i = 0; i < n && l->status == ONV_OK; i++) {
        if (has_own && !is_own_loss(l, &targets[i])) continue;
        if (!onv_vec_push(&l->eager->outputs, targets[i].tensor))
            l->status = onv_fail_memory(l->err);
    }
}

static void emit_all(onv_lowering *l, const target *targets, uint32_t n)
{
    uint32_t sum = ONV_NO_TENSOR;
    const char *name = NULL;
    for (uint32_t i = 0; i < n && l->status == ONV_OK; i++) {
        if (targets[i].loss == ONV_LOSS_NONE) continue;
        bool same = name == NULL || name == names[targets[i].loss];
        name = same ? names[targets[i].loss] : "cross-entropy, mse";
        sum = emit_sum(l, sum, emit_loss(l, &targets[i]));
    }
    if (sum == ONV_NO_TENSOR || l->status != ONV_OK) return;
    l->eager->loss_name = name;
    l->eager->loss = sum;
    l->eager->storages.at[onv_tensor_at(l, sum).storage].is_output = true;
}

void onv_lower_loss(onv_lowering *l, const onv_value_id *outputs, uint32_t n_outputs)
{
    bool has_own = false;
    target *targets = ONV_ARENA_ARRAY(&l->model->arena, target, n_outputs);
    if (targets == NULL) {
        l->status = onv_fail_memory(l->err);
        return;
    }
    uint32_t n = list_targets(l, outputs, n_outputs, targets);
    l->eager->first_loss_op = (uint32_t)l->eager->ops.count;
    l->eager->loss_name = "none";
    if (n == 0 || l->status != ONV_OK || l->options->inference) return;
    find_ends(l, targets, n);
    if (l->status != ONV_OK) return;
    for (uint32_t i = 0; i < n; i++) has_own |= is_own_loss(l, &targets[i]);
    has_own &= l->options->loss == ONV_LOSS_AUTO;
    for (uint32_t i = 0; i < n; i++) {
        targets[i].loss = has_own ? ONV_LOSS_NONE : usual(l, &targets[i], n);
        targets[i].chunks = l->options->loss_chunks;
    }
    name_losses(l, targets, n);
    if (l->status == ONV_OK) emit_all(l, targets, n);
    if (l->status == ONV_OK) start_at_outputs(l, targets, n, has_own);
    bool asked = l->options->loss == ONV_LOSS_NONE && l->eager->loss == ONV_NO_TENSOR;
    if (l->status == ONV_OK && n_outputs > 1 && l->options->reports && !asked)
        report(l, outputs, n_outputs, targets, n);
}
