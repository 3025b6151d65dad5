/* Values as text, in the language of the cases. */
#include <math.h>
#include <string.h>

#include "ops/case_parse.h"

const char *case_dtype_text(onv_dtype dtype)
{
    static const char *const names[ONV_DTYPE_COUNT] = {
        [ONV_UNDEFINED] = "undefined",
        [ONV_FLOAT] = "f32",
        [ONV_UINT8] = "u8",
        [ONV_INT8] = "i8",
        [ONV_UINT16] = "u16",
        [ONV_INT16] = "i16",
        [ONV_INT32] = "i32",
        [ONV_INT64] = "i64",
        [ONV_STRING] = "str",
        [ONV_BOOL] = "bool",
        [ONV_FLOAT16] = "f16",
        [ONV_DOUBLE] = "f64",
        [ONV_UINT32] = "u32",
        [ONV_UINT64] = "u64",
        [ONV_COMPLEX64] = "c64",
        [ONV_COMPLEX128] = "c128",
        [ONV_BFLOAT16] = "bf16",
        [ONV_FLOAT8E4M3FN] = "f8e4m3fn",
        [ONV_FLOAT8E4M3FNUZ] = "f8e4m3fnuz",
        [ONV_FLOAT8E5M2] = "f8e5m2",
        [ONV_FLOAT8E5M2FNUZ] = "f8e5m2fnuz",
        [ONV_UINT4] = "u4",
        [ONV_INT4] = "i4",
        [ONV_FLOAT4E2M1] = "f4e2m1",
        [ONV_FLOAT8E8M0] = "f8e8m0",
        [ONV_UINT2] = "u2",
        [ONV_INT2] = "i2",
        [ONV_FLOAT6E2M3] = "f6e2m3",
        [ONV_FLOAT6E3M2] = "f6e3m2",
    };
    return dtype < ONV_DTYPE_COUNT && names[dtype] != NULL ? names[dtype] : "invalid";
}

static const char *dim_text(onv_model *model, onv_dim d, bool bounds)
{
    if (bounds) d = onv_dim_substitute_bounds(&model->dims, d);
    const char *text = onv_dim_text(&model->dims, &model->arena, d);
    return case_squeeze(&model->arena, text, strlen(text));
}

static const char *scalar_text(onv_model *model, onv_dtype dtype, onv_scalar s)
{
    if (!onv_scalar_is_known(dtype, s)) return "?";
    if (!onv_dtype_is_float(dtype)) return dim_text(model, s.i, false);
    if (onv_dim_is_const(s.i))
        return onv_arena_printf(&model->arena, "%.9g", s.f * (double)s.i.raw);
    const char *size = dim_text(model, s.i, false);
    if (s.f == 1) return size;
    return onv_arena_printf(&model->arena, "%.9g*(%s)", s.f, size);
}

static const char *known_text(onv_model *model, const onv_known *known)
{
    bool any = false;
    const char *text = "={";
    for (uint32_t i = 0; i < known->count; i++) {
        any = any || onv_scalar_is_known(known->dtype, known->elems[i]);
        text = onv_arena_printf(&model->arena, "%s%s%s", text, i > 0 ? "," : "",
                                scalar_text(model, known->dtype, known->elems[i]));
    }
    return any ? onv_arena_printf(&model->arena, "%s}", text) : "";
}

static const char *type_text(onv_model *model, const onv_type *type, bool bounds);

static const char *tensor_text(onv_model *model, const onv_type *type, bool bounds)
{
    const char *text = onv_arena_printf(&model->arena, "%s[", case_dtype_text(type->dtype));
    if (type->rank < 0) return onv_arena_printf(&model->arena, "%s...]", text);
    for (int i = 0; i < type->rank; i++)
        text = onv_arena_printf(&model->arena, "%s%s%s", text, i > 0 ? "," : "",
                                dim_text(model, type->dims[i], bounds));
    return onv_arena_printf(&model->arena, "%s]", text);
}

static const char *sequence_text(onv_model *model, const onv_type *type, bool bounds)
{
    onv_arena *arena = &model->arena;
    const onv_elements of = onv_type_elements(type);
    if (of.items != NULL && onv_dim_is_const(of.length)) {
        const char *text = "seq{";
        for (int64_t i = 0; i < of.length.raw; i++)
            text = onv_arena_printf(arena, "%s%s%s", text, i > 0 ? "," : "",
                                    type_text(model, &of.items->at[i], bounds));
        return onv_arena_printf(arena, "%s}", text);
    }
    const char *text = onv_arena_printf(arena, "seq(%s)", type_text(model, of.type, bounds));
    if (!onv_dim_is_known(of.length)) return text;
    return onv_arena_printf(arena, "%s*%s", text, dim_text(model, of.length, bounds));
}

static const char *type_text(onv_model *model, const onv_type *type, bool bounds)
{
    onv_arena *arena = &model->arena;
    if (type == NULL) return "?";
    switch (type->kind) {
    case ONV_TYPE_TENSOR: return tensor_text(model, type, bounds);
    case ONV_TYPE_SPARSE_TENSOR:
        return onv_arena_printf(arena, "sparse(%s)", tensor_text(model, type, bounds));
    case ONV_TYPE_SEQUENCE: return sequence_text(model, type, bounds);
    case ONV_TYPE_OPTIONAL:
        return onv_arena_printf(arena, "opt(%s)",
                                type_text(model, onv_type_elements(type).type, bounds));
    case ONV_TYPE_MAP:
        return onv_arena_printf(arena, "map(%s,%s)", case_dtype_text(type->dtype),
                                type_text(model, onv_type_elements(type).type, bounds));
    default: return "?";
    }
}

const char *case_value_text(onv_model *model, const onv_op_value *value, bool bounds)
{
    const char *type = type_text(model, &value->type, bounds);
    if (bounds || value->known == NULL) return type;
    return onv_arena_printf(&model->arena, "%s%s", type, known_text(model, value->known));
}
