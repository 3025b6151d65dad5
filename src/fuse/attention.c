/* Attention: softmax(scale * query key + mask) value, in the forms in which exporters write it. */
#include <string.h>

#include "fuse/find.h"
#include "ir/form.h"
#include "ir/notes.h"
#include "ops/op.h"

static bool is_in_call(const onv_node *node)
{
    static const char call[] = "aten.scaled_dot_product_attention";
    return strncmp(onv_noted(node)->aten_op, call, sizeof call - 1) == 0;
}

/* softmax(scale * query key + mask) value, the scale at the scores or at their factors: a number, perhaps computed from shapes. The softmax may
 * be computed in another type, and zeros stand for what is no number, as torch.export writes a softmax whose rows may be masked whole. */
#define SCALED(name, of) "[" name "=*Mul(_.)|" name "=Div(_.)]" of
#define ATTENTION(key, value)                                                                      \
    "MatMul([d=Dropout(_)][b=Cast(_)][g=Where(IsNaN(p)._)]p=Softmax([c=Cast(_)][a=*Add(_m)"        \
    "]" SCALED("s", "n=MatMul(" SCALED("t", "q") SCALED("u", key) ")") ")" value ")"
/* As the exporter writes the transpose of a key with more than three axes for its own operator. */
#define TURNED(key) "y=Reshape(Transpose(z=Reshape(" key ")))"
/* Each head was repeated for a group of queries. */
#define REPEATED(name, of) name "=Expand(Unsqueeze(" of "))"

enum { PLAIN, TURNED_KEY, GROUPS };
static const char *const forms[] = {
    [PLAIN] = ATTENTION("k", "v"),
    [TURNED_KEY] = ATTENTION(TURNED("k"), "v"),
    [GROUPS] = ATTENTION(TURNED(REPEATED("e", "k")), "Reshape(" REPEATED("w", "v") ")"),
};

typedef struct attention {
    onv_finder *s;
    onv_form_match form;
    const onv_node *softmax, *last;
} attention;

static bool takes(void *self, onv_node_id id)
{
    const onv_node *node = onv_find_node(((attention *)self)->s, id);
    return onv_find_is_op(node, (onv_op_name)node->code);
}

static bool is_number(void *self, onv_value_id value, char sign, double *number)
{
    (void)sign, (void)number;
    if (!onv_is_value(value)) return false;
    const onv_type *type = &onv_model_value(((attention *)self)->s->model, value)->type;
    return type->rank == 0 || (type->rank == 1 && onv_dim_is(type->dims[0], 1));
}

static uint32_t n_reads(void *self, onv_node_id node)
{
    return onv_find_n_reads(((attention *)self)->s, node);
}

static onv_node_id reader(void *self, onv_node_id node)
{
    const onv_finder *s = ((attention *)self)->s;
    const onv_node *at = onv_find_node(s, node);
    bool is_read = at->n_outputs > 0 && onv_is_value(at->outputs[0]);
    return is_read ? s->f->user[at->outputs[0].index] : ONV_NO_NODE;
}

static bool find_form(attention *a, uint32_t form)
{
    attention found = *a;
    const onv_form_place place = {.model = a->s->model,
                                  .self = a,
                                  .takes = takes,
                                  .number = is_number,
                                  .n_reads = n_reads,
                                  .reader = reader};
    if (!onv_form_find(&place, onv_find_id(a->s, a->softmax), forms[form], &found.form))
        return false;
    found.last = onv_find_node(a->s, found.form.nodes[0]);
    *a = found;
    return true;
}

static onv_value_id value_of(const attention *a, char name)
{
    return onv_form_value(&a->form, name);
}

/* NULL: the form is without it. */
static const onv_node *node_of(const attention *a, char name)
{
    return onv_model_maker(a->s->model, value_of(a, name));
}

static const onv_type *type_of(const attention *a, char name)
{
    return &onv_model_value(a->s->model, value_of(a, name))->type;
}

/* The last two axes have changed places. */
static bool find_turned_key(attention *a)
{
    attention found = *a;
    if (!find_form(&found, TURNED_KEY)) return false;
    const onv_node *first = node_of(&found, 'z');
    bool noted = first != NULL && onv_node_is_noted(first);
    const onv_type *from = type_of(&found, 'k'), *to = type_of(&found, 'y');
    if ((noted && !is_in_call(first)) || from->rank != to->rank || from->rank < 3) return false;
    int n = from->rank;
    for (int i = 0; i < n; i++)
        if (!onv_dim_same(from->dims[i], to->dims[i + 2 < n ? i : 2 * n - 3 - i])) return false;
    *a = found;
    return true;
}

/* [batch, heads, rows, values] became [batch, heads, repeats, rows, values]. */
static bool is_repeated(const attention *a, char narrow, char wide)
{
    const onv_type *from = type_of(a, narrow), *to = type_of(a, wide);
    if (from->rank != 4 || to->rank != 5) return false;
    for (int i = 0; i < 4; i++)
        if (!onv_dim_same(from->dims[i], to->dims[i < 2 ? i : i + 1])) return false;
    return true;
}

/* transformers repeats keys and values for groups of queries where there is a mask, which an export has for its
 * own sake; without one the kernel does. */
static bool find_groups(attention *a)
{
    static const char library[] = "'transformers.models.";
    attention found = *a;
    const char *around = onv_noted(a->last)->call_classes;
    if (around == NULL || strstr(around, library) == NULL || !is_in_call(a->last) ||
        !find_form(&found, GROUPS) || !is_in_call(node_of(&found, 'z')) ||
        !is_repeated(&found, 'k', 'e') || !is_repeated(&found, 'v', 'w'))
        return false;
    *a = found;
    return true;
}

/* Nothing of it comes from data or parameters: a causal mask, which PyTorch tells its kernels with a
 * flag. What takes too long to look at is no such mask. */
static bool is_made_of_shapes(const onv_finder *s, onv_value_id id, uint32_t *budget)
{
    if (!onv_is_value(id)) return true;
    if (*budget == 0) return false;
    --*budget;
    const onv_value *value = onv_model_value(s->model, id);
    if (onv_value_is_weight(value))
        return value->tensor != NULL &&
               (value->tensor->elems == 1 || !onv_dtype_is_float((onv_dtype)value->type.dtype));
    const onv_node *node = onv_model_maker(s->model, id);
    if (node == NULL || node->op == NULL) return false;
    if ((node->op->flags & (ONV_OP_RANDOM | ONV_OP_SUBGRAPH)) != 0) return false;
    if (onv_find_is_op(node, ONV_OP_Shape) || onv_find_is_op(node, ONV_OP_Size)) return true;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        if (!is_made_of_shapes(s, node->inputs[k], budget)) return false;
    return true;
}

/* Positions tell where samples in a row begin, and each sees itself alone. transformers asks for values whether there are any,
 * and drops a mask of one sample, but not where torch.compile traces it, as the export does: the sample's number is
 * compared with itself, "eq", for all pairs of places. */
static bool is_of_packed(const onv_finder *s, onv_value_id id, uint32_t *budget)
{
    if (!onv_is_value(id) || *budget == 0) return false;
    --*budget;
    const onv_value *value = onv_model_value(s->model, id);
    if (value->type.dtype == ONV_BOOL && value->type.rank == 4 && onv_is_call_of(value->name, "eq"))
        return true;
    const onv_node *node = onv_model_maker(s->model, id);
    bool goes_on =
        node != NULL && (onv_find_is_op(node, ONV_OP_And) || onv_find_is_op(node, ONV_OP_Where) ||
                         onv_find_is_op(node, ONV_OP_Expand));
    for (uint32_t k = 0; goes_on && k < node->n_inputs; k++)
        if (is_of_packed(s, node->inputs[k], budget)) return true;
    return false;
}

/* Kernels want rows of a head in steps of 16 bytes, and that the softmax runs along them; a call takes one for four axes alone. */
enum { ROW_STEP_BITS = 8 * 16 };

static bool has_kernel(const onv_finder *s, const attention *a, bool is_of_call)
{
    const onv_type *query = type_of(a, 'q');
    const onv_type *scores = &onv_model_value(s->model, a->softmax->inputs[0])->type;
    if (query->rank < (is_of_call ? 4 : 3) || scores->rank != query->rank) return false;
    onv_dim head = query->dims[query->rank - 1];
    const onv_attr *axis = onv_node_attr(a->softmax, "axis");
    bool along_rows =
        axis == NULL ? a->softmax->version >= 13
                     : axis->kind == ONV_ATTR_INT && (axis->i == -1 || axis->i == query->rank - 1);
    int64_t bits = s->kernels.low ? 16 : (int64_t)onv_dtype_bits((onv_dtype)query->dtype);
    return along_rows && onv_dim_is_const(head) && head.raw > 0 && head.raw < INT64_MAX / 64 &&
           head.raw * bits % ROW_STEP_BITS == 0;
}

static void publish_attention(onv_finder *s, attention *a)
{
    uint32_t budget = 256;
    bool is_masked = !is_made_of_shapes(s, value_of(a, 'm'), &budget) ||
                     (s->kernels.packed && is_of_packed(s, value_of(a, 'm'), &budget));
    bool is_grouped = !is_masked && find_groups(a);
    onv_group g = {0};
    for (uint32_t i = 0; i < a->form.n_nodes; i++)
        if (!onv_find_take(s, &g, onv_find_node(s, a->form.nodes[i]))) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_ATTENTION, value_of(a, 'q'), a->last);
    fusion.first = fusion.last;
    for (uint32_t i = 0; i < g.count; i++)
        if (g.nodes[i].index < fusion.first.index) fusion.first = g.nodes[i];
    fusion.key = value_of(a, 'k');
    fusion.value = value_of(a, 'v');
    if (is_masked) fusion.mask = value_of(a, 'm');
    onv_find_publish(s, &g, fusion);
    s->f->n_grouped += is_grouped;
}

/* A call of scaled_dot_product_attention: a note says so, or both factors are scaled; a network that
 * multiplies by hand scales once. */
static bool is_call(const attention *a, bool by_parts)
{
    bool noted = onv_node_is_noted(a->last);
    return noted ? is_in_call(a->last) : by_parts;
}

static void mark_lost_dropout(onv_finder *s, const attention *a, bool by_parts)
{
    const onv_node *dropout = node_of(a, 'd'), *guard = node_of(a, 'g');
    /* The older exporter does not say that it trains; evaluation has no dropout at all. */
    if (by_parts && dropout != NULL && dropout->n_inputs == 2)
        s->f->attention[onv_find_id(s, dropout).index].live_dropout = true;
    if (dropout != NULL || !is_call(a, by_parts)) return;
    s->f->attention[onv_find_id(s, guard != NULL ? guard : a->softmax).index].lost_dropout = true;
}

/* What autocast sees as one where the nodes run one by one. */
static void mark_parts(onv_finder *s, const attention *a)
{
    for (uint32_t i = 0; i < a->form.n_nodes; i++) {
        const onv_node *node = onv_find_node(s, a->form.nodes[i]);
        if (node->code != ONV_OP_Reshape && node->code != ONV_OP_Transpose)
            s->f->attention[a->form.nodes[i].index].part = ONV_ATTENTION_INSIDE;
    }
    onv_attention_mark *last = &s->f->attention[onv_find_id(s, a->last).index];
    last->part = ONV_ATTENTION_LAST;
    last->scaled_query = node_of(a, 'n')->inputs[0];
    s->f->attention[onv_find_id(s, node_of(a, 't')).index].attended = a->last->inputs[1];
}

void onv_find_attention(onv_finder *s, const onv_node *softmax)
{
    attention a = {.s = s, .softmax = softmax};
    if (!find_turned_key(&a) && !find_form(&a, PLAIN)) return;
    bool by_parts = node_of(&a, 't') != NULL && node_of(&a, 'u') != NULL &&
                    node_of(&a, 's') == NULL && node_of(&a, 'c') == NULL &&
                    node_of(&a, 'b') == NULL;
    bool fits = has_kernel(s, &a, is_call(&a, by_parts));
    bool fuses =
        s->fusing == ONV_FUSE_ATTENTION || (s->fusing == ONV_FUSE_CALLS && is_call(&a, by_parts));
    if (by_parts) mark_parts(s, &a);
    if (fits && fuses) {
        publish_attention(s, &a);
        return;
    }
    mark_lost_dropout(s, &a, by_parts);
    s->f->n_apart += by_parts && fits;
}
