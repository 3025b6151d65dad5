/* Operations that torch.export takes apart before the exporter sees them (torch/_decomp, torch/_refs): their nodes are notes of
 * as many calls, and only the form in which PyTorch writes each tells that they are one. */
#include <string.h>

#include "fuse/find.h"

/* A form is written from its last node back: operators with their operands, `x` and `y` for tensors, `w` for one of integers, `#` for a number,
 * `?` for anything; `z=` names what follows. A node may have more operands than are written. */
typedef struct form {
    const char *name; /* PyTorch's */
    uint8_t kind;
    const char *text;
} form;

#define LOG1P "Log(Add(Neg(x)#))"

static const form forms[] = {
    {"threshold", ONV_FUSION_POINTWISE, "Where(LessOrEqual(x#)#x)"},
    {"hardshrink", ONV_FUSION_POINTWISE, "Where(LessOrEqual(Abs(x)#)#x)"},
    {"softshrink", ONV_FUSION_POINTWISE, "Where(Greater(Abs(x)#)Sub(xMul(Sign(x)#))Mul(x#))"},
    {"nan_to_num", ONV_FUSION_POINTWISE,
     "Where(And(Greater(x#)IsInf(x))#Where(And(Less(x#)IsInf(x))#Where(IsNaN(x)#x)))"},
    {"nansum", ONV_FUSION_POINTWISE, "ReduceSum(Where(IsNaN(x)#x))"},
    {"huber_loss", ONV_FUSION_POINTWISE, "Where(Less(z=Abs(Sub(xy))#)Mul(Mul(z#)z)Sub(z#))"},
    {"huber_loss", ONV_FUSION_POINTWISE, "Where(Less(z=Abs(Sub(xy))#)Mul(Mul(z#)z)Mul(Sub(z#)#))"},
    {"smooth_l1_loss", ONV_FUSION_POINTWISE, "Where(Less(z=Abs(Sub(xy))#)Mul(Pow(z#)#)Sub(z#))"},
    {"smooth_l1_loss", ONV_FUSION_POINTWISE,
     "Where(Less(z=Abs(Sub(xy))#)Div(Mul(Pow(z#)#)#)Sub(z#))"},
    {"binary_cross_entropy", ONV_FUSION_POINTWISE,
     "Sub(Mul(Sub(y#)Max(" LOG1P "#))Mul(yMax(Log(x)#)))"},
    {"binary_cross_entropy_with_logits", ONV_FUSION_POINTWISE, "Sub(Mul(Sub(#y)x)Log(Sigmoid(x)))"},
    {"bce_with_logits_weighted", ONV_FUSION_POINTWISE,
     "Sub(Mul(Sub(#y)x)Mul(Add(Mul(?y)#)Log(Sigmoid(x))))"},
    {"multi_margin_loss", ONV_FUSION_POINTWISE,
     "ReduceMean(Where(Not(Equal(?Unsqueeze(w?)))Clip(Add(Sub(#"
     "GatherElements(xUnsqueeze(w?)))x)#)#)?)"},
    {"cdist", ONV_FUSION_CDIST,
     "Sqrt(Clip(MatMul(Concat(Mul(x#)ReduceSum(Pow(x#))?)Transpose(Concat(y?ReduceSum(Pow(y#)))))#)"
     ")"},
    /* Indices of a pooling, which the exporter counts from the start of each image again. */
    {"indices", ONV_FUSION_SAME, "Sub(wSlice(MaxPool(x)))"},
};

enum { MAX_OPERATOR = 24, N_NAMES = 4 };

typedef struct matching {
    onv_finder *s;
    const onv_node *last;
    onv_value_id named[N_NAMES]; /* w, x, y, z; ONV_NO_VALUE: not yet */
    onv_group g;
    bool of_loss;
} matching;

static bool is_taken(const matching *m, const onv_node *node)
{
    for (uint32_t i = 0; i < m->g.count; i++)
        if (onv_find_node(m->s, m->g.nodes[i]) == node) return true;
    return false;
}

/* The same lines called both, even if they name what one of them is, but not the other. */
static bool has_same_lines(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        size_t digits = strspn(a, "0123456789");
        if (digits != strspn(b, "0123456789") || strncmp(a, b, digits) != 0) return false;
        a += strcspn(a, ";");
        b += strcspn(b, ";");
        a += *a == ';';
        b += *b == ';';
    }
    return *a == *b;
}

/* Of the same line of the same module. Losses are long enough for any call of the line to be a part of them. */
static bool belongs(const onv_node *node, const onv_node *last, bool of_loss)
{
    if (node == last) return true;
    if (node->aten_op == NULL || node->aten_op[0] == '\0' || node->scope != last->scope)
        return false;
    const char *a = node->statements != NULL ? node->statements : "";
    const char *b = last->statements != NULL ? last->statements : "";
    return of_loss ? has_same_lines(a, b) : strcmp(a, b) == 0;
}

static bool match_name(matching *m, onv_value_id value, char name)
{
    onv_value_id *named = &m->named[name - 'w'];
    if (!onv_is_value(value)) return false;
    if (onv_is_value(*named)) return onv_find_same(*named, value);
    const onv_value *v = onv_model_value(m->s->model, value);
    *named = value;
    return onv_dtype_is_float((onv_dtype)v->type.dtype) == (name != 'w');
}

/* Forms are as deep as they are written. */
static bool match(matching *m, onv_value_id value, const char **at);

/* `Operator(...)`, without its name so far. */
static bool match_node(matching *m, onv_value_id value, const char **at)
{
    char op[MAX_OPERATOR];
    size_t length = strcspn(*at, "(");
    if (length >= sizeof op) return false;
    memcpy(op, *at, length);
    op[length] = '\0';
    *at += length + 1;
    const onv_node *node = onv_find_producer(m->s, value, op);
    if (node == NULL || !belongs(node, m->last, m->of_loss)) return false;
    if (!is_taken(m, node) && !onv_find_take(m->s, &m->g, node)) return false;
    for (uint32_t k = 0; **at != ')'; k++)
        if (k >= node->n_inputs || !match(m, node->inputs[k], at)) return false;
    (*at)++;
    return true;
}

static bool match(matching *m, onv_value_id value, const char **at)
{
    char c = *(*at)++;
    if (c == '?') return true;
    if (c == '#') return onv_find_is_number(m->s, value);
    if (c < 'w' || c > 'z') {
        (*at)--;
        return match_node(m, value, at);
    }
    if (**at == '=') {
        (*at)++;
        return match_node(m, value, at) && match_name(m, value, c);
    }
    return match_name(m, value, c);
}

/* Nothing outside reads what is inside. */
static bool is_closed(const matching *m)
{
    for (uint32_t i = 0; i < m->g.count; i++) {
        const onv_node *node = onv_find_node(m->s, m->g.nodes[i]);
        if (node == m->last) continue;
        uint32_t inside = 0, out = node->outputs[0].index;
        for (uint32_t j = 0; j < m->g.count; j++) {
            const onv_node *reader = onv_find_node(m->s, m->g.nodes[j]);
            for (uint32_t k = 0; k < reader->n_inputs; k++)
                inside += reader->inputs[k].index == out;
        }
        if (inside != m->s->f->n_uses[out]) return false;
    }
    return true;
}

/* "mean" and "sum" of all, as losses end with them. */
static const onv_node *reduction_of(matching *m, const onv_node *last)
{
    static const char *const ends[][2] = {{"ReduceMean", "aten.mean.default"},
                                          {"ReduceSum", "aten.sum.default"}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const onv_node *end = onv_find_reader(m->s, last->outputs[0], ends[i][0]);
        if (end == NULL || !belongs(end, last, true) || strcmp(end->aten_op, ends[i][1]) != 0)
            continue;
        if (!onv_find_take(m->s, &m->g, end)) continue;
        const onv_node *number = onv_find_reader(m->s, end->outputs[0], "Squeeze");
        bool is_own = number != NULL && belongs(number, last, true) &&
                      strcmp(number->aten_op, ends[i][1]) == 0;
        return is_own && onv_find_take(m->s, &m->g, number) ? number : end;
    }
    return last;
}

/* F.huber_loss and its like, which reduce what they compute. */
static bool is_loss(const char *name)
{
    return strstr(name, "_loss") != NULL ||
           strncmp(name, "binary_cross", strlen("binary_cross")) == 0 ||
           strncmp(name, "bce_with_logits", strlen("bce_with_logits")) == 0;
}

/* index_add(alpha=2): torch.export multiplies what is added, which the call itself does. */
static void find_index_add(onv_finder *s, const onv_node *scatter)
{
    onv_group g = {0};
    const onv_attr *reduction = onv_node_attr(scatter, "reduction");
    if (!onv_find_is_op(scatter, "ScatterND") || !onv_node_is_aten(scatter, "index_put") ||
        scatter->n_inputs < 3 || reduction == NULL)
        return;
    const onv_node *move = onv_find_sole(s, scatter->inputs[2], "Transpose");
    bool is_own = move != NULL && move->source_op == scatter->source_op;
    const onv_node *mul = onv_find_sole(s, is_own ? move->inputs[0] : scatter->inputs[2], "Mul");
    if (mul == NULL || mul->n_inputs != 2 || !belongs(mul, scatter, false) ||
        !onv_find_is_number(s, mul->inputs[1]) || !onv_find_take(s, &g, mul))
        return;
    onv_find_publish(s, &g, onv_find_unary(s, ONV_FUSION_SAME, mul->inputs[0], mul));
}

void onv_find_decomposed(onv_finder *s, const onv_node *last)
{
    if (last->aten_op == NULL || last->aten_op[0] == '\0' || last->n_outputs == 0) return;
    find_index_add(s, last);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0] && !s->failed; i++) {
        const char *at = forms[i].text;
        size_t length = strcspn(at, "(");
        if (strncmp(last->op_type, at, length) != 0 || last->op_type[length] != '\0') continue;
        matching m = {.s = s,
                      .last = last,
                      .of_loss = is_loss(forms[i].name),
                      .named = {ONV_NO_VALUE, ONV_NO_VALUE, ONV_NO_VALUE, ONV_NO_VALUE}};
        if (!match(&m, last->outputs[0], &at) || !is_closed(&m)) continue;
        if (m.of_loss) last = reduction_of(&m, last);
        bool is_same = forms[i].kind == ONV_FUSION_SAME;
        onv_fusion fusion =
            onv_find_unary(s, (onv_fusion_kind)forms[i].kind, m.named[is_same ? 0 : 1], last);
        fusion.key = onv_is_value(m.named[0]) && !is_same ? m.named[0] : m.named[2];
        fusion.name = forms[i].name;
        onv_find_publish(s, &m.g, fusion);
        if (s->f->n_by_form++ == 0) s->f->by_form = fusion.name;
        return;
    }
}
