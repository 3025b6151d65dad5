/* Operations by the form in which PyTorch, or an exporter, writes them. torch.export takes some apart before the exporter sees them
 * (torch/_decomp, torch/_refs): their nodes are notes of as many calls. The older exporter writes others as formulas, without a note. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fuse/find.h"
#include "ir/form.h"

/* Forms as in ir/form.h: letters are tensors, `w` one of integers, `#` a number of the file, `.` one that the graph may compute. `x`, `y` (or `w`)
 * and `v` are the operands of the operation. */
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
    {"gelu", ONV_FUSION_POINTWISE, more, NULL, "*Mul(*Add(" t "#)*Mul(x#))"},                      \
        {"gelu", ONV_FUSION_POINTWISE, more, NULL, "*Mul(*Mul(*Add(" t "#)x)#)"},                  \
    {                                                                                              \
        "gelu", ONV_FUSION_POINTWISE, more, NULL, "*Mul(*Mul(*Add(" t "#)#)x)"                     \
    }
#define SUM_OF_PRODUCT(a, b) "ReduceSum(Mul(" a b "))"

static const formula formulas[] = {
    HALF_PRODUCTS(2, "Erf(Div(x#))"),
    HALF_PRODUCTS(2, "Erf(*Mul(x#))"),
    /* approximate="tanh"; with Pow it is a formula in Python, which eager PyTorch runs as written. */
    HALF_PRODUCTS(3, "Tanh(*Mul(*Add(*Mul(*Mul(Mul(xx)x)#)x)#))"),
    {"silu", ONV_FUSION_POINTWISE, 0, NULL, "*Mul(Sigmoid(x)x)"},
    {"mish", ONV_FUSION_POINTWISE, 0, NULL, "*Mul(Tanh(Softplus(x))x)"},
    {"hardswish", ONV_FUSION_POINTWISE, 0, NULL, "*Mul(HardSigmoid(x)x)"},
    {"rsqrt", ONV_FUSION_POINTWISE, 0, NULL, "Reciprocal(Sqrt(x))"},
    {"rsqrt", ONV_FUSION_POINTWISE, 0, NULL, "Div(#Sqrt(x))"},
    /* Rows without a finite number give zeros. */
    {"_safe_softmax", ONV_FUSION_POINTWISE, 0, NULL, "Where(IsNaN(z=Softmax(x))?z)"},
    {"layer_norm", ONV_FUSION_LAYER_NORM, 0, NULL,
     "Div(z=Sub(xReduceMean(x))Sqrt(Add(ReduceMean(Pow(z)))))"},
    /* Both branches, of which a number chooses one. */
    {"lerp.Scalar", ONV_FUSION_POINTWISE, 0, NULL, "Where(.Add(x*Mul(z=Sub(yx).))Sub(y*Mul(z.)))"},
    {"atan2", ONV_FUSION_POINTWISE, 0, NULL,
     "Where(Less(y)Where(Greater(x)*Add(z=Atan(Div(xy))#)Sub(z))z)"},
    /* Multiplied by the value that addcmul takes. */
    {"addcmul", ONV_FUSION_POINTWISE, 0, "", "Add(xMul(Mul(yv){1}))"},
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
     "Pow(ReduceSum(Pow(Sub(Unsqueeze(x)Unsqueeze(y)){2})){0.49999975})"},
};

typedef struct matching {
    onv_finder *s;
    const onv_node *last;
    onv_form_match form;
    onv_group g;
    bool of_loss, is_formula;
} matching;

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

static bool takes(void *self, onv_node_id id)
{
    const matching *m = self;
    const onv_node *node = onv_find_node(m->s, id);
    return onv_find_is_op(node, (onv_op_name)node->code) && m->s->f->of_node[id.index] == 0 &&
           node->graph.index == m->last->graph.index &&
           (m->is_formula || belongs(node, m->last, m->of_loss));
}

static bool names(void *self, onv_value_id value, char letter)
{
    const onv_type *type = &onv_model_value(((matching *)self)->s->model, value)->type;
    return onv_dtype_is_float((onv_dtype)type->dtype) == (letter != 'w');
}

static bool is_number(void *self, onv_value_id value, char sign, double *number)
{
    onv_finder *s = ((matching *)self)->s;
    double is;
    if (sign == '#') return onv_find_is_number(s, value);
    if (sign == '{') return onv_find_number(s, value, &is) && fabs(is - *number) < 1e-7;
    return onv_is_value(value) && onv_model_value(s->model, value)->type.rank == 0;
}

static uint32_t n_reads(void *self, onv_node_id node)
{
    const onv_finder *s = ((matching *)self)->s;
    return s->f->n_uses[onv_find_node(s, node)->outputs[0].index];
}

/* All of the form, from the last node back. */
static bool matches(matching *m, const char *text)
{
    const onv_form_place place = {m->s->model, m, takes, names, is_number, n_reads};
    if (!onv_form_match_at(&place, onv_find_id(m->s, m->last), text, &m->form)) return false;
    for (uint32_t i = 0; i < m->form.n_nodes; i++)
        if (!onv_find_take(m->s, &m->g, onv_find_node(m->s, m->form.nodes[i]))) return false;
    return true;
}

/* Most forms end with another operator: no match is begun for them. */
static bool may_end(const char *text, const onv_node *last)
{
    return text[*text == '*'] == last->op_type[0];
}

/* "mean" and "sum" of all, as losses end with them. */
static const onv_node *reduction_of(matching *m, const onv_node *last)
{
    static const struct {
        onv_op_name op;
        const char *call;
    } ends[] = {{ONV_OP_ReduceMean, "aten.mean.default"}, {ONV_OP_ReduceSum, "aten.sum.default"}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const onv_node *end = onv_find_reader(m->s, last->outputs[0], ends[i].op);
        if (end == NULL || !belongs(end, last, true) || strcmp(end->aten_op, ends[i].call) != 0)
            continue;
        if (!onv_find_take(m->s, &m->g, end)) continue;
        const onv_node *number = onv_find_reader(m->s, end->outputs[0], ONV_OP_Squeeze);
        bool is_own = number != NULL && belongs(number, last, true) &&
                      strcmp(number->aten_op, ends[i].call) == 0;
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
    if (!onv_find_is_op(scatter, ONV_OP_ScatterND) || !onv_node_is_aten(scatter, "index_put") ||
        scatter->n_inputs < 3 || reduction == NULL)
        return;
    const onv_node *move = onv_find_sole(s, scatter->inputs[2], ONV_OP_Transpose);
    bool is_own = move != NULL && move->source_op == scatter->source_op;
    const onv_node *mul =
        onv_find_sole(s, is_own ? move->inputs[0] : scatter->inputs[2], ONV_OP_Mul);
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
        if (!may_end(forms[i].text, last)) continue;
        matching m = {.s = s, .last = last, .of_loss = is_loss(forms[i].name)};
        if (!matches(&m, forms[i].text)) continue;
        if (m.of_loss) last = reduction_of(&m, last);
        bool is_same = forms[i].kind == ONV_FUSION_SAME;
        onv_fusion fusion = onv_find_unary(s, (onv_fusion_kind)forms[i].kind,
                                           onv_form_value(&m.form, is_same ? 'w' : 'x'), last);
        fusion.key = onv_form_value(
            &m.form, onv_is_value(onv_form_value(&m.form, 'w')) && !is_same ? 'w' : 'y');
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

void onv_list_formulas(uint64_t *rules, uint64_t rule)
{
    char op[64];
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++)
        if (sscanf(formulas[i].text, "%*[*]%63[A-Za-z]", op) == 1 ||
            sscanf(formulas[i].text, "%63[A-Za-z]", op) == 1)
            rules[onv_op_name_of(op)] |= rule;
}

void onv_find_formula(onv_finder *s, const onv_node *last)
{
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0] && !s->failed; i++) {
        const formula *f = &formulas[i];
        if (!may_end(f->text, last) || !is_written(f, last)) continue;
        matching m = {.s = s, .last = last, .is_formula = true};
        if (!matches(&m, f->text) || !onv_find_same_call(s, &m.g)) continue;
        onv_fusion fusion =
            onv_find_unary(s, (onv_fusion_kind)f->kind, onv_form_value(&m.form, 'x'), last);
        fusion.key = onv_form_value(&m.form, 'y');
        fusion.value = onv_form_value(&m.form, 'v');
        fusion.name = f->name;
        fusion.groups = f->more;
        if (f->kind == ONV_FUSION_LAYER_NORM) onv_find_affine(s, &m.g, &fusion);
        onv_find_publish(s, &m.g, fusion);
        return;
    }
}
