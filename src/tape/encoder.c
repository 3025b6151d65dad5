/* The fast path of nn.TransformerEncoderLayer and nn.MultiheadAttention: an archive has the calls of the other path, for it was made
 * with gradients; a recording has the call itself. */
#include "emit/encoder.h"

#include <string.h>

#include "base/quota.h"
#include "tape/state.h"

#define LAYER_CLASS     "torch.nn.modules.transformer.TransformerEncoderLayer"
#define ATTENTION_CLASS "torch.nn.modules.activation.MultiheadAttention"

static uint32_t argument(onv_tape *t, const onv_program_call *c, const char *name)
{
    return onv_call_tensor(t, c, name);
}

void onv_tape_encoder(onv_tape *t, const onv_program_call *c, const onv_aten_op *op, bool in_place)
{
    bool is_layer = onv_aten_id_of(op) == ONV_ATEN__transformer_encoder_layer_fwd;
    onv_encoder_call call = {
        .products = {{argument(t, c, "qkv_weight"), argument(t, c, "qkv_bias"), true},
                     {argument(t, c, "proj_weight"), argument(t, c, "proj_bias"), true}},
        .norm_first = onv_call_flag(c, "norm_first", false),
        .is_attention = !is_layer,
        .mask = argument(t, c, "mask"),
        .gives_weights = !is_layer && onv_call_flag(c, "need_weights", true),
        .gives_each = !onv_call_flag(c, "average_attn_weights", true),
        .heads = onv_call_int(t, c, is_layer ? "num_heads" : "num_head", 1)};
    (void)in_place;
    if (is_layer) {
        static const char *const names[2][4] = {
            {"ffn_weight_1", "ffn_bias_1", "norm_weight_1", "norm_bias_1"},
            {"ffn_weight_2", "ffn_bias_2", "norm_weight_2", "norm_bias_2"}};
        for (uint32_t i = 0; i < 2; i++) {
            call.products[2 + i] = (onv_encoder_matrix){argument(t, c, names[i][0]),
                                                        argument(t, c, names[i][1]), true};
            call.norm_weight[i] = argument(t, c, names[i][2]);
            call.norm_bias[i] = argument(t, c, names[i][3]);
        }
    }
    uint32_t x = onv_call_tensor(t, c, is_layer ? "src" : "query"), weights = ONV_NO_TENSOR;
    onv_tape_give(t, c, 0, onv_emit_encoder(&t->emit, x, &call, &weights));
    if (call.gives_weights) onv_tape_give(t, c, 1, weights);
}

/* --- By the module of the calls ------------------------------------------------------------------ */

/* The innermost module of the class around the call, or UINT32_MAX. */
static uint32_t module_of(const onv_tape *t, uint32_t call, const char *class_name)
{
    uint32_t m = t->program->calls.at[call].module;
    while (m < t->program->modules.count &&
           strcmp(t->program->modules.at[m].class_name, class_name) != 0)
        m = t->program->modules.at[m].parent;
    return m < t->program->modules.count ? m : UINT32_MAX;
}

static bool is_inside(const onv_tape *t, uint32_t call, uint32_t module)
{
    uint32_t m = t->program->calls.at[call].module;
    while (m < t->program->modules.count && m != module) m = t->program->modules.at[m].parent;
    return m == module;
}

/* The parameter `name` of the module at `path`: an argument of one of its calls. */
static uint32_t parameter(onv_tape *t, uint32_t first, uint32_t end, const char *path,
                          const char *name)
{
    size_t length = strlen(path);
    for (uint32_t i = first; i < end && onv_work(1); i++) {
        const onv_program_call *c = &t->program->calls.at[i];
        for (uint32_t k = 0; k < c->n_arguments; k++) {
            if (c->arguments[k].kind != ONV_ARGUMENT_TENSOR) continue;
            const onv_program_value *v = &t->program->values.at[c->arguments[k].value];
            if (v->fqn == NULL || strncmp(v->fqn, path, length) != 0) continue;
            const char *rest = v->fqn + length + (length > 0 && v->fqn[length] == '.');
            if (strcmp(rest, name) == 0) return onv_tape_tensor(t, c->arguments[k].value);
        }
    }
    return ONV_NO_TENSOR;
}

static uint32_t find_call(const onv_tape *t, uint32_t at, uint32_t end, onv_aten_id op)
{
    while (at < end && !onv_tape_is(t, &t->program->calls.at[at], op)) at++;
    return at;
}

/* The heads, and a mask that is no argument: the other path leaves it to the kernel that is told to be causal; who says so gives one
 * all the same. */
static bool describe_kernel(onv_tape *t, const onv_program_call *sdpa, onv_encoder_call *call)
{
    onv_shape shape;
    if (onv_call_value(sdpa, "attn_mask") != ONV_NO_PROGRAM_VALUE ||
        !onv_tape_shape(t, onv_call_value(sdpa, "query"), &shape) || shape.rank != 4)
        return false;
    call->has_hidden_mask = onv_call_flag(sdpa, "is_causal", false);
    call->heads = shape.dims[1];
    return true;
}

/* Where weights are asked for, scores [batch x heads, rows, rows] are a product; with a mask, which is not looked for, another one. */
static bool describe_product(onv_tape *t, uint32_t first, uint32_t soft, uint32_t end,
                             onv_encoder_call *call)
{
    const onv_program_call *calls = t->program->calls.at;
    onv_shape scores, in;
    if (soft == end || !onv_tape_is(t, &calls[soft - 1], ONV_ATEN_bmm) ||
        find_call(t, soft, end, ONV_ATEN_mean) == end ||
        !onv_tape_shape(t, onv_call_value(&calls[soft], "self"), &scores) || scores.rank != 3 ||
        !onv_tape_shape(t, calls[first].arguments[0].value, &in) || in.dims[0] <= 0)
        return false;
    call->gives_weights = true;
    call->heads = scores.dims[0] / in.dims[0];
    return true;
}

/* Modules take it for the same queries, keys and values, [batch, rows, values], and an even number of heads. If not, no call
 * before *next begins it either. */
static bool describe(onv_tape *t, uint32_t first, uint32_t end, uint32_t module, bool is_layer,
                     onv_encoder_call *call, uint32_t *next)
{
    const char *path = t->program->modules.at[module].path;
    const char *own = is_layer ? "self_attn." : "";
    static const char *const of_attention[] = {"in_proj_weight", "in_proj_bias", "out_proj.weight",
                                               "out_proj.bias"};
    static const char *const of_layer[] = {"linear1.weight", "linear1.bias", "linear2.weight",
                                           "linear2.bias",   "norm1.weight", "norm1.bias",
                                           "norm2.weight",   "norm2.bias"};
    enum { MAX_NAME = 40 };
    char name[MAX_NAME];
    uint32_t p[4], q[8];
    *next = first + 1;
    *call =
        (onv_encoder_call){.is_attention = !is_layer,
                           .mask = ONV_NO_TENSOR,
                           .norm_first = is_layer && onv_tape_is(t, &t->program->calls.at[first],
                                                                 ONV_ATEN_layer_norm)};
    uint32_t turn = call->norm_first && first + 1 < end ? first + 1 : first;
    if (!onv_tape_is(t, &t->program->calls.at[turn], ONV_ATEN_transpose)) return false;
    uint32_t at = find_call(t, first, end, ONV_ATEN_scaled_dot_product_attention);
    bool has_kernel = at < end || is_layer;
    if (!has_kernel) at = find_call(t, first, end, ONV_ATEN_softmax);
    *next = at < end ? at + 1 : end;
    if (at == end || !(has_kernel ? describe_kernel(t, &t->program->calls.at[at], call)
                                  : describe_product(t, first, at, end, call)))
        return false;
    if (call->heads % 2 != 0) return false;
    *next = end;
    for (uint32_t i = 0; i < 4; i++) {
        strcpy(name, own); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): it fits */
        strcat(name, of_attention[i]);
        p[i] = parameter(t, first, end, path, name);
        if (p[i] == ONV_NO_TENSOR) return false;
    }
    for (size_t i = 0; i < 2; i++)
        call->products[i] = (onv_encoder_matrix){p[2 * i], p[2 * i + 1], true};
    for (uint32_t i = 0; i < 8 && is_layer; i++) {
        q[i] = parameter(t, first, end, path, of_layer[i]);
        if (q[i] == ONV_NO_TENSOR) return false;
    }
    for (size_t i = 0; i < 2 && is_layer; i++) {
        call->products[2 + i] = (onv_encoder_matrix){q[2 * i], q[2 * i + 1], true};
        call->norm_weight[i] = q[4 + 2 * i];
        call->norm_bias[i] = q[5 + 2 * i];
    }
    return true;
}

/* One linear layer of all three says that they are of the same input. */
static bool projects_once(const onv_tape *t, uint32_t first, uint32_t end, uint32_t weight)
{
    for (uint32_t i = first; i < end; i++) {
        uint32_t value = onv_call_value(&t->program->calls.at[i], "weight");
        if (onv_tape_is(t, &t->program->calls.at[i], ONV_ATEN_linear) &&
            value != ONV_NO_PROGRAM_VALUE && t->values[t->values[value].object].tensor == weight)
            return true;
    }
    return false;
}

uint32_t onv_tape_fast_path(onv_tape *t, uint32_t first, uint32_t end)
{
    if (!onv_emit_takes_fast_path(&t->emit) || onv_program_is_recorded(t->program)) return first;
    uint32_t module = module_of(t, first, LAYER_CLASS);
    bool is_layer = module != UINT32_MAX;
    if (!is_layer) module = module_of(t, first, ATTENTION_CLASS);
    if (module == UINT32_MAX) return first;
    onv_tape_run *run = &t->runs[module];
    if (first < run->first || first >= run->end) {
        *run = (onv_tape_run){first, first, first};
        while (run->end < end && is_inside(t, run->end, module)) run->end++;
    }
    onv_encoder_call call;
    uint32_t last = run->end;
    const onv_program_call *c = &t->program->calls.at[first];
    if (first < run->next || c->n_arguments == 0 || c->arguments[0].kind != ONV_ARGUMENT_TENSOR ||
        !describe(t, first, last, module, is_layer, &call, &run->next) ||
        !projects_once(t, first, last, call.products[0].weight))
        return first;
    t->emit.node = (onv_node_id){last - 1};
    uint32_t x = onv_tape_tensor(t, c->arguments[0].value), weights = ONV_NO_TENSOR;
    onv_tape_give(t, &t->program->calls.at[last - 1], 0,
                  onv_emit_encoder(&t->emit, x, &call, &weights));
    uint32_t mean = call.gives_weights ? find_call(t, first, last, ONV_ATEN_mean) : last;
    if (mean < last) onv_tape_give(t, &t->program->calls.at[mean], 0, weights);
    return last;
}
