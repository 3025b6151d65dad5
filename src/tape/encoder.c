/* The fast path of nn.TransformerEncoderLayer and nn.MultiheadAttention: an archive has the calls of the other path, for it was made
 * with gradients; a recording has the call itself. */
#include "emit/encoder.h"

#include <string.h>

#include "base/quota.h"
#include "tape/state.h"

#define LAYER_CLASS     "torch.nn.modules.transformer.TransformerEncoderLayer"
#define ATTENTION_CLASS "torch.nn.modules.activation.MultiheadAttention"

void onv_tape_encoder(onv_tape *t, const onv_program_call *c)
{
    bool is_layer = onv_aten_id_of(t->row) == ONV_ATEN__transformer_encoder_layer_fwd;
    onv_encoder_call call = {
        .products = {{onv_call_tensor(t, c, "qkv_weight"), onv_call_tensor(t, c, "qkv_bias"), true},
                     {onv_call_tensor(t, c, "proj_weight"), onv_call_tensor(t, c, "proj_bias"),
                      true}},
        .norm_first = onv_call_flag(c, "norm_first", false),
        .is_attention = !is_layer,
        .mask = onv_call_tensor(t, c, "mask"),
        .gives_weights = !is_layer && onv_call_flag(c, "need_weights", true),
        .gives_each = !onv_call_flag(c, "average_attn_weights", true),
        .heads = onv_call_int(t, c, is_layer ? "num_heads" : "num_head", 1)};
    if (is_layer) {
        static const char *const names[2][4] = {
            {"ffn_weight_1", "ffn_bias_1", "norm_weight_1", "norm_bias_1"},
            {"ffn_weight_2", "ffn_bias_2", "norm_weight_2", "norm_bias_2"}};
        for (uint32_t i = 0; i < 2; i++) {
            call.products[2 + i] = (onv_encoder_matrix){onv_call_tensor(t, c, names[i][0]),
                                                        onv_call_tensor(t, c, names[i][1]), true};
            call.norm_weight[i] = onv_call_tensor(t, c, names[i][2]);
            call.norm_bias[i] = onv_call_tensor(t, c, names[i][3]);
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

/* --- Masks --------------------------------------------------------------------------------------- */

/* Values of the program, or ONV_NO_PROGRAM_VALUE: [rows, rows] or [batch x heads, rows, rows], and [batch, rows]. */
typedef struct masks {
    uint32_t own, padding;
} masks;

/* What a mask shows behind views of the calls from `first` on; `pads`: it was expanded over heads. */
static uint32_t origin(const onv_tape *t, uint32_t value, uint32_t first, bool *pads)
{
    while (value != ONV_NO_PROGRAM_VALUE) {
        uint32_t made = t->program->values.at[value].call;
        if (made == ONV_NO_CALL_INDEX || made < first) break;
        const onv_program_call *c = &t->program->calls.at[made];
        bool expands = onv_tape_is(t, c, ONV_ATEN_expand);
        if (!expands && !onv_tape_is(t, c, ONV_ATEN_view) && !onv_tape_is(t, c, ONV_ATEN_reshape))
            break;
        *pads |= expands;
        value = onv_call_value(c, "self");
    }
    return value;
}

/* The module makes floats of booleans. */
static bool was_boolean(const onv_tape *t, uint32_t mask, uint32_t module)
{
    if (mask == ONV_NO_PROGRAM_VALUE) return true;
    uint32_t made = t->program->values.at[mask].call;
    return made != ONV_NO_CALL_INDEX && is_inside(t, made, module) &&
           onv_tape_is(t, &t->program->calls.at[made], ONV_ATEN_masked_fill);
}

/* nn.MultiheadAttention takes the fast path with masks of booleans alone; a layer makes floats of them itself. */
static bool find_masks(const onv_tape *t, uint32_t value, uint32_t first, uint32_t module,
                       bool is_layer, masks *m)
{
    bool pads = false, is_own = false, is_padding = false;
    *m = (masks){ONV_NO_PROGRAM_VALUE, ONV_NO_PROGRAM_VALUE};
    value = origin(t, value, first, &pads);
    if (value == ONV_NO_PROGRAM_VALUE) return true;
    uint32_t made = t->program->values.at[value].call;
    const onv_program_call *c = made != ONV_NO_CALL_INDEX ? &t->program->calls.at[made] : NULL;
    if (c != NULL && made >= first && onv_tape_is(t, c, ONV_ATEN_add)) {
        m->own = origin(t, onv_call_value(c, "self"), first, &is_own);
        m->padding = origin(t, onv_call_value(c, "other"), first, &is_padding);
        if (is_own || !is_padding) return false;
    } else {
        *(pads ? &m->padding : &m->own) = value;
    }
    return is_layer || (was_boolean(t, m->own, module) && was_boolean(t, m->padding, module));
}

/* As MultiheadAttention.merge_masks() makes one of them; ONV_NO_TENSOR: there is none. */
static uint32_t merge_masks(onv_tape *t, const masks *m, const onv_shape *in, int64_t heads)
{
    uint32_t own = onv_tape_tensor(t, m->own), padding = onv_tape_tensor(t, m->padding);
    if (own == ONV_NO_TENSOR) return padding;
    onv_eager_tensor mask = onv_tensor_at(&t->emit, own);
    const int64_t dims[] = {in->dims[0], heads, in->dims[1], in->dims[1]};
    bool of_each = mask.rank == 3 && mask.dims[0] > 0 && mask.dims[0] % heads == 0;
    if (mask.rank != 2 && !of_each) return ONV_NO_TENSOR;
    const int64_t *s = mask.strides, of_all[] = {0, 0, s[0], s[1]};
    int64_t strides[] = {of_each ? heads * s[0] : 0, s[0], s[1], of_each ? s[2] : 0};
    own =
        onv_emit_view(&t->emit, "expand", own, 4, dims, of_each ? strides : of_all, ONV_GRAD_NONE);
    if (padding == ONV_NO_TENSOR) return own;
    onv_shape shape = onv_tape_broadcast(t, own, own);
    return onv_emit_step(&t->emit, ONV_ATEN_add, own, padding, 0, &shape);
}

/* --- What the calls say -------------------------------------------------------------------------- */

/* The heads, and the value of the mask. One that is no argument is left to the kernel that is told to be causal; who says so
 * gives one all the same. Where weights are asked for, scores [batch x heads, rows, rows] are a product. */
static bool describe_scores(onv_tape *t, uint32_t first, uint32_t end, bool is_layer,
                            onv_encoder_call *call, uint32_t *mask, uint32_t *next)
{
    const onv_program_call *calls = t->program->calls.at;
    onv_shape query, in;
    uint32_t at = find_call(t, first, end, ONV_ATEN_scaled_dot_product_attention);
    bool has_kernel = at < end || is_layer;
    if (!has_kernel) at = find_call(t, first, end, ONV_ATEN_softmax);
    *next = at < end ? at + 1 : end;
    if (at == end || !onv_tape_shape(t, calls[first].arguments[0].value, &in) || in.rank != 3)
        return false;
    if (has_kernel) {
        *mask = onv_call_value(&calls[at], "attn_mask");
        call->has_hidden_mask = onv_call_flag(&calls[at], "is_causal", false);
        if (!onv_tape_shape(t, onv_call_value(&calls[at], "query"), &query)) return false;
        call->heads = query.rank == 4 ? query.dims[1] : 1;
    } else {
        const onv_program_call *product = &calls[at - 1];
        bool is_masked = onv_tape_is(t, product, ONV_ATEN_baddbmm);
        if (!is_masked && !onv_tape_is(t, product, ONV_ATEN_bmm)) return false;
        *mask = is_masked ? onv_call_value(product, "self") : ONV_NO_PROGRAM_VALUE;
        call->gives_weights = true;
        call->gives_each = !onv_tape_is(t, &calls[end - 2], ONV_ATEN_mean);
        if (!onv_tape_shape(t, onv_call_value(&calls[at], "self"), &query)) return false;
        call->heads = in.dims[0] > 0 ? query.dims[0] / in.dims[0] : 1;
    }
    return call->heads > 0 && call->heads % 2 == 0;
}

/* Modules take it for the same queries, keys and values, [batch, rows, values], and an even number of heads. If not, no call
 * before *next begins it either. */
static bool describe(onv_tape *t, uint32_t first, uint32_t end, uint32_t module, bool is_layer,
                     onv_encoder_call *call, masks *m, uint32_t *next)
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
    uint32_t mask = ONV_NO_PROGRAM_VALUE;
    if (!describe_scores(t, first, end, is_layer, call, &mask, next) ||
        !find_masks(t, mask, first, module, is_layer, m))
        return false;
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
    masks m;
    onv_shape in;
    uint32_t last = run->end, weights = ONV_NO_TENSOR;
    const onv_program_call *c = &t->program->calls.at[first];
    if (first < run->next || c->n_arguments == 0 || c->arguments[0].kind != ONV_ARGUMENT_TENSOR ||
        !describe(t, first, last, module, is_layer, &call, &m, &run->next) ||
        !projects_once(t, first, last, call.products[0].weight) ||
        !onv_tape_shape(t, c->arguments[0].value, &in))
        return first;
    t->emit.node = (onv_node_id){last - 1};
    uint32_t x = onv_tape_tensor(t, c->arguments[0].value);
    call.mask = merge_masks(t, &m, &in, call.heads);
    onv_tape_give(t, &t->program->calls.at[last - 1], 0,
                  onv_emit_encoder(&t->emit, x, &call, &weights));
    if (call.gives_weights) onv_tape_give(t, &t->program->calls.at[last - 2], 0, weights);
    return last;
}
