/* Optional, OptionalGetElement, OptionalHasElement. */
#include "ops/controlflow.h"
#include "ops/rules.h"

static onv_status infer_optional(onv_op_ctx *c)
{
    bool holds = onv_op_has_in(c, 0);
    const onv_attr *attr = onv_op_attr(c, "type");
    const onv_type *elem = holds ? onv_op_in(c, 0) : NULL;
    if (!holds) {
        if (attr == NULL || attr->kind != ONV_ATTR_TYPE_PROTO)
            return onv_op_fail(c, "neither an input nor attribute 'type' says what it may hold");
        elem = attr->type;
    }
    onv_type *copy = onv_arena_copy(c->arena, elem, sizeof *elem);
    onv_type optional = onv_type_of_elements(
        c->arena, ONV_TYPE_OPTIONAL, (onv_elements){.type = copy, .length = onv_dim_const(holds)});
    return onv_op_set_out_type(c, 0, &optional);
}

/* Since opset 18 a plain tensor or sequence is its own element. */
static onv_status infer_get_element(onv_op_ctx *c)
{
    const onv_type *type = onv_op_in(c, 0);
    if (type->kind == ONV_TYPE_OPTIONAL) {
        const onv_elements of = onv_type_elements(type);
        if (onv_dim_is(of.length, 0)) return onv_op_fail(c, "the optional holds nothing");
        if (of.type != NULL) onv_op_set_out_type(c, 0, of.type);
    } else if (type->kind != ONV_TYPE_UNKNOWN) {
        if (c->version < 18) return onv_op_fail(c, "input 0 is not an optional");
        onv_op_set_out_type(c, 0, type);
    }
    return ONV_OK;
}

static onv_status fold_has_element(onv_op_ctx *c)
{
    const onv_type *type = onv_op_in(c, 0);
    onv_dim holds = onv_dim_const(1);
    if (!onv_op_has_in(c, 0))
        holds = onv_dim_const(0);
    else if (type->kind == ONV_TYPE_OPTIONAL)
        holds = onv_type_elements(type).length;
    else if (type->kind == ONV_TYPE_UNKNOWN)
        holds = ONV_DIM_UNKNOWN;
    onv_known *known = onv_op_new_known(c, 0);
    if (known != NULL) known->elems[0] = onv_scalar_int(holds);
    return ONV_OK;
}

static const onv_op rows[] = {
    ONV_OP("Optional", 15, 0, 1, 1, 1, infer_optional, .traits = {.view_of = 1}),
    ONV_OP("OptionalGetElement", 15, 1, 1, 1, 1, infer_get_element, .fold = onv_fold_identity,
           .traits = {.view_of = 1}),
    ONV_SAYS("OptionalHasElement", 15, 1, 1, 1, 1, "(x): [] bool", .fold = fold_has_element,
             .flags = ONV_OP_HOST),
    ONV_SAYS("OptionalHasElement", 18, 0, 1, 1, 1, "(x): [] bool", .fold = fold_has_element,
             .flags = ONV_OP_HOST),
};

const onv_op_family onv_ops_optional = {"", rows, sizeof rows / sizeof rows[0]};
