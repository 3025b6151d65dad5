/* Resize and Upsample: an axis gets a size, or its own times a float factor. */
#include <math.h>
#include <string.h>

#include "ops/op.h"
#include "ops/rules.h"

/* The axes that factors or sizes apply to, in their order. */
typedef struct resize {
    int rank, n_axes;
    int axes[ONV_MAX_RANK];
    onv_dim dims[ONV_MAX_RANK]; /* the input's, then the output's */
} resize;

static onv_status read_axes(onv_op_ctx *c, resize *r)
{
    r->rank = onv_op_in_dims(c, 0, r->dims);
    return onv_tensor_axis_list(c, "axes", r->rank, r->axes, &r->n_axes);
}

static onv_status check_count(onv_op_ctx *c, const resize *r, const char *what, onv_dim count)
{
    if (!onv_dim_always_ne(c->dims, count, onv_dim_const(r->n_axes))) return ONV_OK;
    return onv_op_fail(c, "%s has %s values for %d axes", what,
                       onv_dim_text(c->dims, c->arena, count), r->n_axes);
}

/* --- Factors ----------------------------------------------------------------------------------- */

/* floor(size * factor) where the factor is a number of few bits, so that the product in float32
 * that runtimes form is exact; otherwise unknown, for a rounded product is no expression. */
static onv_dim scale_symbolic(onv_op_ctx *c, onv_dim size, double factor)
{
    int exponent;
    int64_t bits = (int64_t)ldexp(frexp(factor, &exponent), 24);
    exponent -= 24;
    while (bits % 2 == 0) {
        bits /= 2;
        exponent++;
    }
    if (bits >= 1 << 12 || exponent > 24 || exponent < -24) return ONV_DIM_UNKNOWN;
    if (exponent > 0) bits <<= exponent;
    onv_dim product = onv_dim_mul(c->dims, size, onv_dim_const(bits));
    if (exponent >= 0) return product;
    return onv_dim_floordiv(c->dims, product, onv_dim_const((int64_t)1 << -exponent));
}

static onv_status scale_axis(onv_op_ctx *c, onv_scalar scale, double least, onv_dim *size)
{
    onv_dim in = *size;
    double factor = scale.f;
    *size = ONV_DIM_UNKNOWN;
    if (!onv_scalar_is_known(ONV_FLOAT, scale)) return ONV_OK;
    if (onv_dim_is_const(scale.i)) {
        factor = (double)(float)(factor * (double)scale.i.raw);
        if (!(factor > 0 && factor >= least && factor < 0x1p31))
            return onv_op_fail(c, "a factor of %g cannot be applied", factor);
    } else if (factor > 0) {
        in = onv_dim_mul(c->dims, in, scale.i);
    } else {
        return ONV_OK;
    }
    if (!onv_dim_is_const(in) || !onv_dim_is_const(scale.i)) {
        *size = scale_symbolic(c, in, factor);
        return ONV_OK;
    }
    float product = (float)in.raw * (float)factor; /* in float32, as every runtime does */
    if (product >= 0x1p61f)
        return onv_op_fail(c, "%lld times %g is too large", (long long)in.raw, factor);
    *size = onv_dim_const((int64_t)floorf(product));
    return ONV_OK;
}

static onv_status scale_axes(onv_op_ctx *c, resize *r, const onv_scalar *scales, double least)
{
    for (int i = 0; i < r->n_axes; i++)
        ONV_TRY(scale_axis(c, scales[i], least, &r->dims[r->axes[i]]));
    return ONV_OK;
}

static onv_status scale_by_input(onv_op_ctx *c, uint32_t k, resize *r, double least)
{
    const onv_known *known = onv_op_in_known(c, k);
    onv_scalar scales[ONV_MAX_RANK];
    ONV_TRY(check_count(c, r, "scales", onv_op_in_elems(c, k)));
    bool usable = known != NULL && known->count == (uint32_t)r->n_axes &&
                  onv_dtype_is_float((onv_dtype)known->dtype);
    for (int i = 0; i < r->n_axes; i++) scales[i] = usable ? known->elems[i] : onv_scalar_unknown();
    return scale_axes(c, r, scales, least);
}

/* --- Sizes ------------------------------------------------------------------------------------- */

/* One factor for all axes: the smallest (largest) of those that the sizes ask for. */
static void keep_aspect_ratio(const resize *r, onv_dim *sizes, bool smallest)
{
    float factor = smallest ? INFINITY : 0;
    bool known = true;
    for (int i = 0; i < r->n_axes; i++) {
        onv_dim in = r->dims[r->axes[i]];
        known = known && onv_dim_is_const(in) && in.raw > 0 && onv_dim_is_const(sizes[i]);
        if (!known) break;
        float wanted = (float)sizes[i].raw / (float)in.raw;
        factor = smallest ? fminf(factor, wanted) : fmaxf(factor, wanted);
    }
    for (int i = 0; i < r->n_axes && r->n_axes > 1; i++) {
        float size = known ? roundf(factor * (float)r->dims[r->axes[i]].raw) : INFINITY;
        sizes[i] = size < 0x1p61f ? onv_dim_const((int64_t)size) : ONV_DIM_UNKNOWN;
    }
}

static onv_status resize_to_sizes(onv_op_ctx *c, uint32_t k, resize *r, const char *policy)
{
    onv_dim sizes[ONV_MAX_RANK];
    ONV_TRY(check_count(c, r, "sizes", onv_op_in_elems(c, k)));
    for (int i = 0; i < r->n_axes; i++) ONV_TRY(onv_tensor_size_at(c, k, (uint32_t)i, &sizes[i]));
    if (strcmp(policy, "stretch") != 0)
        keep_aspect_ratio(r, sizes, strcmp(policy, "not_larger") == 0);
    for (int i = 0; i < r->n_axes; i++) r->dims[r->axes[i]] = sizes[i];
    return ONV_OK;
}

/* --- Operators --------------------------------------------------------------------------------- */

/* An empty tensor stands for an absent input. */
static bool is_given(onv_op_ctx *c, uint32_t k)
{
    return onv_op_has_in(c, k) && !onv_dim_is(onv_op_in_elems(c, k), 0);
}

/* Resize since opset 11: X, roi, scales, sizes. The roi decides what is sampled, not how much. */
static onv_status infer_resize(onv_op_ctx *c)
{
    enum { SCALES = 2, SIZES = 3 };
    resize r;
    const char *policy = onv_op_attr_string(c, "keep_aspect_ratio_policy", "stretch");
    bool stretch = strcmp(policy, "stretch") == 0;
    bool scales = is_given(c, SCALES), sizes = is_given(c, SIZES);
    if (scales == sizes)
        return onv_op_fail(c, scales ? "scales and sizes are both given"
                                     : "neither scales nor sizes are given");
    if (!stretch && strcmp(policy, "not_larger") != 0 && strcmp(policy, "not_smaller") != 0)
        return onv_op_fail(c, "keep_aspect_ratio_policy is '%s'", policy);
    if (!stretch && scales)
        return onv_op_fail(c, "scales cannot be used with keep_aspect_ratio_policy '%s'", policy);
    if (onv_op_in_rank(c, 0) < 0) return onv_op_set_like(c, NULL, -1);
    ONV_TRY(read_axes(c, &r));
    if (sizes)
        ONV_TRY(resize_to_sizes(c, SIZES, &r, policy));
    else
        ONV_TRY(scale_by_input(c, SCALES, &r, 0));
    return onv_op_set_like(c, r.dims, r.rank);
}

/* Resize 10 and Upsample 9: X, scales. Upsample never shrinks. */
static onv_status infer_scale(onv_op_ctx *c)
{
    resize r;
    if (onv_op_in_rank(c, 0) < 0) return onv_op_set_like(c, NULL, -1);
    ONV_TRY(read_axes(c, &r));
    ONV_TRY(scale_by_input(c, 1, &r, strcmp(c->op->name, "Upsample") == 0 ? 1 : 0));
    return onv_op_set_like(c, r.dims, r.rank);
}

/* Upsample 7: the factors of all axes in an attribute. */
static onv_status infer_upsample_attr(onv_op_ctx *c)
{
    resize r;
    onv_scalar scales[ONV_MAX_RANK];
    const onv_attr *attr = onv_op_attr(c, "scales");
    onv_op_set_like(c, NULL, -1);
    if (attr == NULL || attr->kind != ONV_ATTR_FLOATS)
        return onv_op_fail(c, "attribute scales is missing");
    if (onv_op_in_rank(c, 0) < 0) return ONV_OK;
    ONV_TRY(read_axes(c, &r));
    ONV_TRY(check_count(c, &r, "scales", onv_dim_const(attr->count)));
    for (int i = 0; i < r.n_axes; i++) scales[i] = onv_scalar_real((double)attr->floats[i]);
    ONV_TRY(scale_axes(c, &r, scales, 1));
    return onv_op_set_like(c, r.dims, r.rank);
}

/* Upsample 1: an image, with one factor for its height and one for its width. */
static onv_status infer_upsample_image(onv_op_ctx *c)
{
    resize r = {.rank = 4, .n_axes = 2, .axes = {2, 3}};
    onv_scalar scales[2] = {onv_scalar_real(onv_op_attr_float(c, "height_scale", 0)),
                            onv_scalar_real(onv_op_attr_float(c, "width_scale", 0))};
    ONV_TRY(onv_tensor_need_rank(c, 0, 4, 4));
    onv_op_in_dims(c, 0, r.dims);
    ONV_TRY(scale_axes(c, &r, scales, 1));
    return onv_op_set_like(c, r.dims, r.rank);
}

static const onv_op rows[] = {
    ONV_OP("Resize", 10, 2, 2, 1, 1, infer_scale),
    ONV_OP("Resize", 11, 3, 4, 1, 1, infer_resize),
    ONV_OP("Resize", 13, 1, 4, 1, 1, infer_resize),
    ONV_OP("Upsample", 1, 1, 1, 1, 1, infer_upsample_image),
    ONV_OP("Upsample", 7, 1, 1, 1, 1, infer_upsample_attr),
    ONV_OP("Upsample", 9, 2, 2, 1, 1, infer_scale),
};

const onv_op_family onv_ops_image_resize = {"", rows, sizeof rows / sizeof rows[0]};
