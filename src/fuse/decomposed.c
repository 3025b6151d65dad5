/* Operations by the form in which PyTorch, or an exporter, writes them. torch.export takes some apart before the exporter sees them
 * (torch/_decomp, torch/_refs): their nodes are notes of as many calls. The older exporter writes others as formulas, without a note. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/find.h"
#include "load/load.h"

/* A form is written from its last node back: operators with their operands, letters for tensors, `w` for one of integers, `#` for a number
 * (`#{2}`: this one), `.` for one that the graph may compute, `?` for anything; `z=` names what follows, and `Mul*` takes two operands in either
 * order. A node may have more operands than are written. `x`, `y` (or `w`) and `v` are the operands of the operation. */
typedef struct form {
    const char *name; /* PyTorch's */
    uint8_t kind;
    const char *text;
} form;

/* Of exporters: its nodes have no notes, or all of them that of one call. */
typedef struct formula {
    const char *name;
    uint8_t kind;
    uint8_t more;     /* of a GELU: how many tensors of its size the formula would keep more */
    const char *call; /* the operator that the last node is noted as; "": not noted; NULL: any */
    const char *text;
} formula;

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

/* (t + 1) * x * 0.5 in any order of the factors. */
#define HALF_PRODUCTS(more, t)                                                                     \
    {"gelu", ONV_FUSION_POINTWISE, more, NULL, "Mul*(Add*(" t "#)Mul*(x#))"},                      \
        {"gelu", ONV_FUSION_POINTWISE, more, NULL, "Mul*(Mul*(Add*(" t "#)x)#)"},                  \
    {                                                                                              \
        "gelu", ONV_FUSION_POINTWISE, more, NULL, "Mul*(Mul*(Add*(" t "#)#)x)"                     \
    }
#define SUM_OF_PRODUCT(a, b) "ReduceSum(Mul(" a b "))"

static const formula formulas[] = {
    HALF_PRODUCTS(2, "Erf(Div(x#))"),
    HALF_PRODUCTS(2, "Erf(Mul*(x#))"),
    /* approximate="tanh"; with Pow it is a formula in Python, which eager PyTorch runs as written. */
    HALF_PRODUCTS(3, "Tanh(Mul*(Add*(Mul*(Mul*(Mul(xx)x)#)x)#))"),
    {"silu", ONV_FUSION_POINTWISE, 0, NULL, "Mul*(Sigmoid(x)x)"},
    {"mish", ONV_FUSION_POINTWISE, 0, NULL, "Mul*(Tanh(Softplus(x))x)"},
    {"hardswish", ONV_FUSION_POINTWISE, 0, NULL, "Mul*(HardSigmoid(x)x)"},
    {"rsqrt", ONV_FUSION_POINTWISE, 0, NULL, "Reciprocal(Sqrt(x))"},
    {"rsqrt", ONV_FUSION_POINTWISE, 0, NULL, "Div(#Sqrt(x))"},
    /* Rows without a finite number give zeros. */
    {"_safe_softmax", ONV_FUSION_POINTWISE, 0, NULL, "Where(IsNaN(z=Softmax(x))?z)"},
    {"layer_norm", ONV_FUSION_LAYER_NORM, 0, NULL,
     "Div(z=Sub(xReduceMean(x))Sqrt(Add(ReduceMean(Pow(z)))))"},
    /* Both branches, of which a number chooses one. */
    {"lerp.Scalar", ONV_FUSION_POINTWISE, 0, NULL, "Where(.Add(xMul*(z=Sub(yx).))Sub(yMul*(z.)))"},
    {"atan2", ONV_FUSION_POINTWISE, 0, NULL,
     "Where(Less(y)Where(Greater(x)Add*(z=Atan(Div(xy))#)Sub(z))z)"},
    /* Multiplied by the value that addcmul takes. */
    {"addcmul", ONV_FUSION_POINTWISE, 0, "", "Add(xMul(Mul(yv)#{1}))"},
    {"addcmul", ONV_FUSION_POINTWISE, 0, "addcmul", "Add(xMul(Mul(#y)v))"},
    {"addcmul", ONV_FUSION_POINTWISE, 0, "addcmul", "Add(xMul(yv))"},
    {"addcdiv", ONV_FUSION_POINTWISE, 0, "addcdiv", "Add(xMul(Div(yv)#))"},
    {"addcdiv", ONV_FUSION_POINTWISE, 0, "addcdiv", "Add(xDiv(Mul(#y)v))"},
    {"addcdiv", ONV_FUSION_POINTWISE, 0, "addcdiv", "Add(xDiv(yv))"},
    {"cosine_similarity", ONV_FUSION_COSINE, 0, NULL,
     "Div(" SUM_OF_PRODUCT("x", "y") "Max(Sqrt(Mul(" SUM_OF_PRODUCT("x", "x")
         SUM_OF_PRODUCT("y", "y") "))))"},
    /* The exporter's 1 / (p + 1e-6), which nobody else writes. */
    {"cdist", ONV_FUSION_CDIST, 0, NULL,
     "Pow(ReduceSum(Pow(Sub(Unsqueeze(x)Unsqueeze(y))#{2}))#{0.49999975})"},
};

enum { MAX_OPERATOR = 24, N_NAMES = 'z' - 'a' + 1 };

typedef struct matching {
    onv_finder *s;
    const onv_node *last;
    onv_value_id named[N_NAMES]; /* ONV_NO_VALUE: not yet */
    onv_group g;
    bool of_loss, is_formula;
} matching;

static onv_value_id named(const matching *m, char name)
{
    return m->named[name - 'a'];
}

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
    onv_value_id *named = &m->named[name - 'a'];
    if (!onv_is_value(value)) return false;
    if (onv_is_value(*named)) return onv_find_same(*named, value);
    const onv_value *v = onv_model_value(m->s->model, value);
    *named = value;
    return onv_dtype_is_float((onv_dtype)v->type.dtype) == (name != 'w');
}

/* Forms are as deep as they are written. */
static bool match(matching *m, onv_value_id value, const char **at);

/* A number: that one, where one is written, else a scalar of the file. */
static bool match_number(matching *m, onv_value_id id, const char **at)
{
    if (**at != '{') return onv_find_is_number(m->s, id);
    char *end;
    double wanted = strtod(*at + 1, &end);
    *at = end + 1;
    const onv_value *value = onv_is_value(id) ? onv_model_value(m->s->model, id) : NULL;
    const onv_known *known = value != NULL ? value->known : NULL;
    onv_error unused = {0};
    if (known == NULL && value != NULL && value->tensor != NULL && value->tensor->elems == 1 &&
        onv_load_known(m->s->model, value->tensor, &known, &unused) != ONV_OK)
        return false;
    if (known == NULL || known->count != 1 || !onv_dim_is_const(known->elems[0].i)) return false;
    bool is_float = onv_dtype_is_float((onv_dtype)known->dtype);
    double number = (double)known->elems[0].i.raw * (is_float ? known->elems[0].f : 1.0);
    return fabs(number - wanted) < 1e-7;
}

static bool match_operands(matching *m, const onv_node *node, const char **at, bool turned)
{
    for (uint32_t k = 0; **at != ')'; k++)
        if (k >= node->n_inputs || !match(m, node->inputs[turned ? 1 - k : k], at)) return false;
    (*at)++;
    return true;
}

/* `Operator(...)`, without its name so far. */
static bool match_node(matching *m, onv_value_id value, const char **at)
{
    char op[MAX_OPERATOR];
    size_t length = strcspn(*at, "(*");
    if (length >= sizeof op) return false;
    memcpy(op, *at, length);
    op[length] = '\0';
    *at += length;
    bool turns = **at == '*';
    *at += turns ? 2 : 1;
    const onv_node *node = onv_find_producer(m->s, value, op);
    if (node == NULL || (!m->is_formula && !belongs(node, m->last, m->of_loss))) return false;
    if (!is_taken(m, node) && !onv_find_take(m->s, &m->g, node)) return false;
    if (!turns) return match_operands(m, node, at, false);
    if (node->n_inputs != 2) return false;
    const matching before = *m;
    const char *begin = *at;
    if (match_operands(m, node, at, false)) return true;
    *m = before;
    *at = begin;
    return match_operands(m, node, at, true);
}

static bool match(matching *m, onv_value_id value, const char **at)
{
    char c = *(*at)++;
    if (c == '?') return true;
    if (c == '#') return match_number(m, value, at);
    if (c == '.') return onv_is_value(value) && onv_model_value(m->s->model, value)->type.rank == 0;
    if (c < 'a' || c > 'z') {
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

/* All of the form, from the last node back. */
static bool matches(matching *m, const char *text)
{
    for (uint32_t i = 0; i < N_NAMES; i++) m->named[i] = ONV_NO_VALUE;
    return match(m, m->last->outputs[0], &text) && is_closed(m);
}

static bool ends_with(const char *text, const onv_node *last)
{
    size_t length = strcspn(text, "(*");
    return strncmp(last->op_type, text, length) == 0 && last->op_type[length] == '\0';
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
        if (!ends_with(at, last)) continue;
        matching m = {.s = s, .last = last, .of_loss = is_loss(forms[i].name)};
        if (!matches(&m, at)) continue;
        if (m.of_loss) last = reduction_of(&m, last);
        bool is_same = forms[i].kind == ONV_FUSION_SAME;
        onv_fusion fusion =
            onv_find_unary(s, (onv_fusion_kind)forms[i].kind, named(&m, is_same ? 'w' : 'x'), last);
        fusion.key = named(&m, onv_is_value(named(&m, 'w')) && !is_same ? 'w' : 'y');
        fusion.name = forms[i].name;
        onv_find_publish(s, &m.g, fusion);
        if (s->f->n_by_form++ == 0) s->f->by_form = fusion.name;
        return;
    }
}

/* From opset 20 on the older exporter writes F.gelu as Gelu: what is a formula there is one in Python. */
static bool is_written(const formula *f, const onv_node *last)
{
    bool is_noted = last->aten_op != NULL && last->aten_op[0] != '\0';
    if (f->more > 0 && !is_noted && last->version >= 20) return false;
    if (f->call == NULL || f->call[0] == '\0') return f->call == NULL || !is_noted;
    return onv_node_is_aten(last, f->call);
}

void onv_find_formula(onv_finder *s, const onv_node *last)
{
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0] && !s->failed; i++) {
        const formula *f = &formulas[i];
        if (!ends_with(f->text, last) || !is_written(f, last)) continue;
        matching m = {.s = s, .last = last, .is_formula = true};
        if (!matches(&m, f->text) || !onv_find_same_call(s, &m.g)) continue;
        onv_fusion fusion = onv_find_unary(s, (onv_fusion_kind)f->kind, named(&m, 'x'), last);
        fusion.key = named(&m, 'y');
        fusion.value = named(&m, 'v');
        fusion.name = f->name;
        fusion.groups = f->more;
        if (f->kind == ONV_FUSION_LAYER_NORM) onv_find_affine(s, &m.g, &fusion);
        onv_find_publish(s, &m.g, fusion);
        return;
    }
}
