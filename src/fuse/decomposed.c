/* Operations by the form in which PyTorch, or an exporter, writes them. torch.export takes some apart before the exporter sees them
 * (torch/_decomp, torch/_refs): their nodes are notes of as many calls. The older exporter writes others as formulas, without a note. */
#include <string.h>

#include "fuse/find.h"
#include "ir/form.h"

typedef struct matching {
    onv_finder *s;
    const onv_node *last;
    onv_form_match form;
    onv_group g;
    bool of_loss, is_noted; /* as several calls */
} matching;

/* When a form is looked for. */
enum {
    DECOMPOSED, /* before others, of nodes that are noted as several calls of one line */
    KERNEL,     /* before others, whatever its nodes are noted as */
    FORMULA,    /* of nodes that are not noted, or as one call */
};

/* A row of forms.def. */
typedef struct form {
    const char *name; /* PyTorch's */
    const char *text;
    uint8_t kind, found;
    uint8_t more;      /* of a GELU: how many tensors of its size the formula would keep more */
    const char *class; /* of the last node's module; NULL: any */
    bool (*fits)(matching *m, onv_fusion *fusion); /* what no text says; NULL: nothing */
} form;

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
    if (onv_noted(node)->aten_op[0] == '\0' || onv_noted(node)->scope != onv_noted(last)->scope)
        return false;
    const char *a = onv_noted(node)->statements;
    const char *b = onv_noted(last)->statements;
    return of_loss ? has_same_lines(a, b) : strcmp(a, b) == 0;
}

static bool takes(void *self, onv_node_id id)
{
    const matching *m = self;
    const onv_node *node = onv_find_node(m->s, id);
    return onv_find_is_op(node, (onv_op_name)node->code) && m->s->f->of_node[id.index] == 0 &&
           node->graph.index == m->last->graph.index &&
           (!m->is_noted || belongs(node, m->last, m->of_loss));
}

static bool names(void *self, onv_value_id value, char letter)
{
    const onv_value *v = onv_model_value(((matching *)self)->s->model, value);
    return onv_dtype_is_float((onv_dtype)v->type.dtype) == (letter != 'w') &&
           (letter != 'c' || onv_value_is_weight(v));
}

/* '#': any number, '.': a tensor of no dims. No form here asks for one number. */
static bool is_number(void *self, onv_value_id value, char sign, double *number)
{
    onv_finder *s = ((matching *)self)->s;
    (void)number;
    if (sign == '#') return onv_find_is_number(s, value);
    return onv_is_value(value) && onv_model_value(s->model, value)->type.rank == 0;
}

static uint32_t n_reads(void *self, onv_node_id node)
{
    return onv_find_n_reads(((matching *)self)->s, node);
}

/* All of the form, from the last node back. */
static bool matches(matching *m, const char *text)
{
    const onv_form_place place = {.model = m->s->model,
                                  .self = m,
                                  .takes = takes,
                                  .names = names,
                                  .number = is_number,
                                  .n_reads = n_reads};
    if (!onv_form_match_at(&place, onv_find_id(m->s, m->last), text, &m->form)) return false;
    for (uint32_t i = 0; i < m->form.n_nodes; i++)
        if (!onv_find_take(m->s, &m->g, onv_find_node(m->s, m->form.nodes[i]))) return false;
    return true;
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
        if (end == NULL || !belongs(end, last, true) ||
            strcmp(onv_noted(end)->aten_op, ends[i].call) != 0)
            continue;
        if (!onv_find_take(m->s, &m->g, end)) continue;
        const onv_node *number = onv_find_reader(m->s, end->outputs[0], ONV_OP_Squeeze);
        bool is_own = number != NULL && belongs(number, last, true) &&
                      strcmp(onv_noted(number)->aten_op, ends[i].call) == 0;
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

/* --- What no text says ------------------------------------------------------------------------- */

static const onv_type *type_of(const matching *m, char name)
{
    return &onv_model_value(m->s->model, onv_form_value(&m->form, name))->type;
}

static bool fits_layer_norm(matching *m, onv_fusion *fusion)
{
    onv_find_affine(m->s, &m->g, fusion);
    return true;
}

/* Its root. */
static bool fits_variance(matching *m, onv_fusion *fusion)
{
    const onv_node *root = onv_find_reader(m->s, fusion->out, ONV_OP_Sqrt);
    if (root == NULL || onv_find_reader(m->s, root->outputs[0], ONV_OP_Reciprocal) != NULL)
        return true;
    fusion->name = "std";
    fusion->last = onv_find_id(m->s, root);
    fusion->out = root->outputs[0];
    return onv_find_take(m->s, &m->g, root);
}

/* Places are [n, 3, 1] or [n, 4, 1]. */
static bool fits_grid(matching *m, onv_fusion *fusion)
{
    const onv_type *places = type_of(m, 'c');
    const onv_type *out = &onv_model_value(m->s->model, fusion->out)->type;
    if (places->rank != 3 || out->rank != 3 || !onv_dim_is(places->dims[2], 1)) return false;
    bool is_plane = onv_dim_is(places->dims[1], 3) && onv_dim_is(out->dims[2], 2);
    return is_plane || (onv_dim_is(places->dims[1], 4) && onv_dim_is(out->dims[2], 3));
}

/* What is computed of a constant state is constant. */
static bool fits_cell(matching *m, onv_fusion *fusion)
{
    onv_value_id x = fusion->x, y = fusion->key;
    bool is_first = onv_value_is_weight(onv_model_value(m->s->model, x));
    if (onv_is_value(y) && is_first) {
        fusion->x = y;
        y = x;
    }
    bool is_computed = onv_is_value(y) && !onv_value_is_weight(onv_model_value(m->s->model, y));
    fusion->key = is_computed ? y : ONV_NO_VALUE;
    return m->s->kernels.cells;
}

static int64_t first_axis(const onv_finder *s, const onv_node *mean)
{
    const onv_type *in = &onv_model_value(s->model, mean->inputs[0])->type;
    const onv_attr *axes = onv_node_attr(mean, "axes");
    uint32_t n = axes != NULL && axes->kind == ONV_ATTR_INTS ? axes->count : 0;
    if (n == 0 && mean->n_inputs > 1 && onv_is_value(mean->inputs[1])) {
        const onv_type *given = &onv_model_value(s->model, mean->inputs[1])->type;
        if (given->rank == 1 && onv_dim_is_const(given->dims[0])) n = (uint32_t)given->dims[0].raw;
    }
    return in->rank - (int64_t)(n > 0 ? n : 1);
}

static const onv_node *maker_of(const matching *m, char name)
{
    return onv_model_maker(m->s->model, onv_form_value(&m->form, name));
}

/* PyTorch writes rms_norm apart with the sum of a tensor and a number; a network by hand with that of tensors. */
static bool fits_rms_norm(matching *m, onv_fusion *fusion)
{
    static const char class[] = "torch.nn.modules.normalization.RMSNorm";
    const onv_node *sum = maker_of(m, 'e'), *mean = maker_of(m, 'm');
    if (sum == NULL || mean == NULL) return false;
    bool is_module = strcmp(onv_noted(sum)->module_class, class) == 0;
    bool is_named = strcmp(onv_noted(sum)->aten_op, "aten.add.Scalar") == 0;
    if (!m->s->kernels.rms_norm || (!is_module && !is_named)) return false;
    fusion->groups = first_axis(m->s, mean);
    const onv_node *mul = onv_find_reader(m->s, fusion->out, ONV_OP_Mul);
    onv_value_id weight = onv_find_other(mul, fusion->out);
    if (!onv_is_value(weight) || onv_noted(mul)->scope != onv_noted(m->last)->scope ||
        !onv_value_is_weight(onv_model_value(m->s->model, weight)) ||
        !onv_find_take(m->s, &m->g, mul))
        return true;
    fusion->weight = weight;
    fusion->out = mul->outputs[0];
    fusion->last = onv_find_id(m->s, mul);
    return true;
}

/* --- The table --------------------------------------------------------------------------------- */

#define FORM(name_, kind_, found_, text_, ...)                                                     \
    {.name = #name_, .kind = ONV_FUSION_##kind_, .found = (found_), .text = (text_), __VA_ARGS__},
static const form forms[] = {
#include "fuse/forms.def"
};

enum { N_FORMS = sizeof forms / sizeof forms[0] };
_Static_assert(N_FORMS <= 64, "a form is a bit");

/* --- All of them ------------------------------------------------------------------------------- */

/* From opset 20 on the older exporter writes F.gelu as Gelu: what is a formula there is one in Python. */
static bool is_written(const form *f, const onv_node *last)
{
    bool is_noted = onv_node_is_noted(last);
    if (f->found == DECOMPOSED && !is_noted) return false;
    if (f->more > 0 && !is_noted && last->version >= 20) return false;
    return f->class == NULL || strcmp(onv_noted(last)->module_class, f->class) == 0;
}

void onv_list_forms(onv_finder *s, uint64_t rule)
{
    for (size_t i = 0; i < N_FORMS; i++) {
        char op[64] = "";
        const char *text = forms[i].text + (forms[i].text[0] == '*');
        strncat(op, text, strcspn(text, "("));
        onv_op_name code = onv_op_name_of(op);
        s->forms[code] |= UINT64_C(1) << i;
        if (forms[i].found == FORMULA) s->rules[code] |= rule;
    }
}

static bool find_form(onv_finder *s, const onv_node *last, const form *f)
{
    if (!is_written(f, last)) return false;
    matching m; /* large, and most forms end at their first operand */
    m.s = s;
    m.last = last;
    m.of_loss = is_loss(f->name);
    m.is_noted = f->found == DECOMPOSED;
    m.g.count = 0;
    if (!matches(&m, f->text)) return false;
    if (m.of_loss) last = reduction_of(&m, last);
    bool of_integers = onv_is_value(onv_form_value(&m.form, 'w'));
    onv_fusion fusion =
        onv_find_unary(s, (onv_fusion_kind)f->kind, onv_form_value(&m.form, 'x'), last);
    fusion.key = onv_form_value(&m.form, of_integers ? 'w' : 'y');
    fusion.value = onv_form_value(&m.form, 'v');
    fusion.state = onv_form_value(&m.form, 's');
    fusion.name = f->name;
    fusion.groups = f->more;
    if (f->fits != NULL && !f->fits(&m, &fusion)) return false;
    if (f->found == FORMULA && !onv_find_same_call(s, &m.g)) return false;
    if (f->found == DECOMPOSED && s->f->n_by_form++ == 0) s->f->by_form = fusion.name;
    onv_find_publish(s, &m.g, fusion);
    return true;
}

static void find_forms(onv_finder *s, const onv_node *last, bool are_formulas)
{
    for (uint64_t left = s->forms[last->code]; left != 0 && !s->failed; left &= left - 1) {
        const form *f = &forms[__builtin_ctzll(left)];
        if ((f->found == FORMULA) == are_formulas && find_form(s, last, f)) return;
    }
}

void onv_find_decomposed(onv_finder *s, const onv_node *last)
{
    if (last->n_outputs == 0 || last->n_inputs == 0 || !onv_is_value(last->inputs[0])) return;
    find_forms(s, last, false);
}

void onv_find_formula(onv_finder *s, const onv_node *last)
{
    find_forms(s, last, true);
}
