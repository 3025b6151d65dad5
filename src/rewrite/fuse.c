#include "rewrite/fuse.h"
#include "rewrite/rules.h"

#include <math.h>
#include <string.h>

bool onv_fuse_same_provider(const onv_edit *e, onv_node_id a, onv_node_id b)
{
    return onv_edit_node_at(e, a)->provider == onv_edit_node_at(e, b)->provider;
}

bool onv_fuse_is_float(const onv_edit *e, onv_value_id value)
{
    if (!onv_is_value(value)) return false;
    const onv_type *type = &onv_edit_value_at(e, value)->type;
    return type->kind == ONV_TYPE_TENSOR && onv_dtype_is_float((onv_dtype)type->dtype) &&
           onv_dtype_bits((onv_dtype)type->dtype) >= 16;
}

bool onv_fuse_has_uses(const onv_edit *e, onv_node_id node, uint32_t n)
{
    return !onv_edit_makes_result(e, node) && onv_edit_n_output_uses(e, node) == n;
}

/* Uses are in no particular order; the node made first stands for the first. Subgraphs read through the
 * node that owns them, which no fusion takes. */
onv_node_id onv_fuse_reader(const onv_edit *e, onv_node_id node)
{
    onv_node_id found = ONV_NO_NODE;
    onv_value_id out = onv_is_node(node) ? onv_edit_out(e, node, 0) : ONV_NO_VALUE;
    if (!onv_is_value(out)) return found;
    uint32_t graph = onv_edit_node_at(e, node)->graph.index;
    ONV_EACH_USE(e, out, use)
    {
        if (onv_edit_node_at(e, use->node)->graph.index != graph) continue;
        if (!onv_is_node(found) || use->node.index < found.index) found = use->node;
    }
    return found;
}

bool onv_fuse_has_on_cpu(const onv_edit *e, onv_graph_id graph, const char *ops)
{
    for (onv_node_id id = onv_edit_first(e, graph); onv_is_node(id); id = onv_edit_next(e, id)) {
        const onv_node *at = onv_edit_node_at(e, id);
        if (at->provider == ONV_PROVIDER_CPU && onv_rewrite_names(ops, at->op_type) &&
            (at->domain[0] == '\0' || strcmp(at->domain, ONV_MS_DOMAIN) == 0))
            return true;
    }
    return false;
}

int onv_fuse_rank(const onv_edit *e, onv_value_id value)
{
    const onv_type *type = onv_edit_seen(e, value);
    return onv_type_has_rank(type) ? type->rank : -1;
}

onv_dim onv_fuse_dim(const onv_edit *e, onv_value_id value, int axis)
{
    const onv_type *type = onv_edit_seen(e, value);
    if (!onv_type_has_rank(type)) return ONV_DIM_UNKNOWN;
    if (axis < 0) axis += type->rank;
    return axis >= 0 && axis < type->rank ? type->dims[axis] : ONV_DIM_UNKNOWN;
}

/* A constant of one element, of rank 0 or 1, that is that number, but for rounding. */
static bool fuse_is_number(onv_edit *e, onv_value_id value, double number)
{
    double is;
    if (!onv_is_value(value) || !onv_edit_is_constant(e, value)) return false;
    const onv_type *type = &onv_edit_value_at(e, value)->type;
    if (!onv_type_has_rank(type) || type->rank > 1 || !onv_edit_scalar(e, value, &is)) return false;
    /* A number of 16 bits is compared with the number that its type has for it. */
    double step = type->dtype == ONV_FLOAT16 ? 0x1p-11 : type->dtype == ONV_BFLOAT16 ? 0x1p-8 : 0;
    return fabs(is - number) <= 1e-8 + (1e-5 + step) * fabs(number);
}

onv_value_id onv_fuse_other_input(const onv_edit *e, onv_node_id node, onv_value_id value)
{
    onv_value_id a = onv_edit_in(e, node, 0), b = onv_edit_in(e, node, 1);
    if (onv_is_same_value(a, value)) return b;
    return onv_is_same_value(b, value) ? a : ONV_NO_VALUE;
}

bool onv_fuse_replace(onv_edit *e, onv_node_id last, const onv_node_id *nodes, uint32_t n_nodes,
                      onv_new_node made)
{
    const onv_value_id out = onv_edit_out(e, last, 0);
    made.at = last;
    made.outputs = &out;
    onv_edit_add(e, &made);
    if (e->status != ONV_OK) return false;
    onv_edit_remove(e, last);
    for (bool again = true; again && e->status == ONV_OK;) {
        again = false;
        for (uint32_t i = 0; i < n_nodes; i++) again |= onv_edit_remove_unread(e, nodes[i]);
    }
    return e->status == ONV_OK;
}

/* Since opset 13 axes are an input. */
onv_value_id onv_fuse_squeeze(onv_edit *e, onv_node_id at, const char *op_type, onv_value_id in,
                              const int64_t *axes, uint32_t n, onv_value_id out)
{
    onv_new_node made = ONV_NEW_NODE(.op_type = op_type, .at = at, ONV_INPUTS(in, ONV_NO_VALUE));
    if (onv_is_value(out)) made.outputs = &out;
    if (onv_edit_opset(e) >= 13) {
        const onv_value_id inputs[] = {in, onv_edit_add_ints(e, at, "axes", axes, n)};
        made.inputs = inputs;
        return onv_edit_make(e, &made);
    }
    const onv_attr attr = onv_fuse_ints(e, "axes", axes, n);
    made.n_inputs = made.n_attrs = 1;
    made.attrs = &attr;
    return onv_edit_make(e, &made);
}

/* --- Forms ------------------------------------------------------------------------------------- */

typedef struct form_of {
    onv_edit *e;
    onv_node_id first;
    bool is_any; /* type */
} form_of;

static bool takes(void *self, onv_node_id node)
{
    const form_of *f = self;
    const onv_node *at = onv_edit_node_at(f->e, node);
    bool is_known = onv_edit_is_there(f->e, node) &&
                    (at->domain[0] == '\0' || strcmp(at->domain, ONV_MS_DOMAIN) == 0);
    if (!onv_fuse_same_provider(f->e, node, f->first)) return false;
    if (f->is_any) return is_known;
    uint32_t n = at->code == ONV_OP_ReduceMean ? 1 : at->n_inputs;
    for (uint32_t k = 0; k < n; k++)
        if (!onv_fuse_is_float(f->e, onv_edit_in(f->e, node, k))) return false;
    return onv_edit_is(f->e, node, (onv_op_name)at->code);
}

static bool is_number(void *self, onv_value_id value, char sign, double *number)
{
    onv_edit *e = ((form_of *)self)->e;
    if (sign == '{') return fuse_is_number(e, value, *number);
    return onv_fuse_is_float(e, value) && onv_fuse_rank(e, value) <= 1 &&
           onv_edit_scalar(e, value, number);
}

static uint32_t n_reads(void *self, onv_node_id node)
{
    const onv_edit *e = ((form_of *)self)->e;
    return onv_edit_makes_result(e, node) ? UINT32_MAX : onv_edit_n_output_uses(e, node);
}

static onv_node_id reader(void *self, onv_node_id node)
{
    return onv_fuse_reader(((form_of *)self)->e, node);
}

static onv_form_place place_of(form_of *f)
{
    return (onv_form_place){.model = f->e->model,
                            .self = f,
                            .takes = takes,
                            .number = is_number,
                            .n_reads = n_reads,
                            .reader = reader};
}

bool onv_fuse_form(onv_edit *e, onv_node_id first, const char *form, onv_form_match *m)
{
    form_of f = {e, first, *form == '^'};
    const onv_form_place place = place_of(&f);
    return onv_form_find(&place, first, form + f.is_any, m);
}

bool onv_fuse_form_by(onv_edit *e, const onv_form_match *m, onv_new_node made)
{
    return onv_fuse_replace(e, m->nodes[0], m->nodes, m->n_nodes, made);
}

void onv_fuse_form_cast(onv_edit *e, onv_form_match *m, char name)
{
    onv_value_id *value = &m->named[name - 'a'];
    form_of f = {e, m->nodes[0], false};
    const onv_form_place place = place_of(&f);
    onv_node_id cast = onv_edit_producer(e, *value);
    if (onv_edit_is(e, cast, ONV_OP_Cast) && onv_fuse_same_provider(e, cast, f.first) &&
        onv_fuse_has_uses(e, cast, onv_form_reads(&place, m, *value)) && onv_form_join(m, cast))
        *value = onv_edit_in(e, cast, 0);
}

/* --- Attributes -------------------------------------------------------------------------------- */

onv_attr onv_fuse_int(onv_edit *e, const char *name, int64_t value)
{
    return (onv_attr){.name = onv_edit_intern(e, name), .kind = ONV_ATTR_INT, .i = value};
}

onv_attr onv_fuse_float(onv_edit *e, const char *name, double value)
{
    return (onv_attr){.name = onv_edit_intern(e, name), .kind = ONV_ATTR_FLOAT, .f = (float)value};
}

onv_attr onv_fuse_ints(onv_edit *e, const char *name, const int64_t *list, uint32_t count)
{
    int64_t *own = onv_arena_copy(&e->model->arena, list, count * sizeof *list);
    if (own == NULL && count > 0) onv_edit_fail(e, ONV_ERR_MEMORY);
    return (onv_attr){
        .name = onv_edit_intern(e, name), .kind = ONV_ATTR_INTS, .count = count, .ints = own};
}
