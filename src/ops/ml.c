/* ai.onnx.ml: classical models over rows of features. Inputs are [N, F]; [F] is one row. What the
 * standard leaves open (the axes of DictVectorizer, CastMap and a one-dimensional
 * ArrayFeatureExtractor, the scores of an SVM) is as ONNX Runtime gives it. */
#include "ops/rules.h"

#include <string.h>

/* --- Attributes -------------------------------------------------------------------------------- */

static uint32_t count_of(const onv_op_ctx *c, const char *name)
{
    const onv_attr *attr = onv_op_attr(c, name);
    return attr != NULL ? attr->count : 0;
}

/* Entries in one of two lists, as labels and categories are given: numbers or strings. */
static uint32_t either_count(const onv_op_ctx *c, const char *numbers, const char *strings)
{
    uint32_t count = count_of(c, strings);
    return count > 0 ? count : count_of(c, numbers);
}

/* Rows of a batch. */
static onv_dim rows_of(const onv_op_ctx *c, uint32_t k)
{
    int rank = onv_op_in_rank(c, k);
    if (rank < 0) return ONV_DIM_UNKNOWN;
    return rank <= 1 ? onv_dim_const(1) : onv_op_in_dim(c, k, 0);
}

static onv_status set_rows(onv_op_ctx *c, uint32_t k, onv_dtype dtype, onv_dim columns)
{
    onv_dim dims[2] = {rows_of(c, 0), columns};
    return onv_op_set_out(c, k, dtype, dims, 2);
}

/* --- Elementwise ------------------------------------------------------------------------------- */

static onv_status infer_category_mapper(onv_op_ctx *c)
{
    onv_dtype from = onv_op_in_dtype(c, 0), to = ONV_UNDEFINED;
    if (count_of(c, "cats_strings") != count_of(c, "cats_int64s"))
        return onv_op_fail(c, "cats_strings and cats_int64s differ in length");
    if (from == ONV_STRING) to = ONV_INT64;
    if (from == ONV_INT64) to = ONV_STRING;
    return onv_op_set_out_like(c, 0, 0, to);
}

/* LabelEncoder-1 knows strings and their positions; later ones take the type of the values. */
static onv_dtype label_dtype(const onv_op_ctx *c)
{
    onv_dtype from = onv_op_in_dtype(c, 0);
    if (c->version < 2)
        return from == ONV_STRING ? ONV_INT64 : from == ONV_INT64 ? ONV_STRING : ONV_UNDEFINED;
    const onv_attr *values = onv_op_attr(c, "values_tensor");
    if (values != NULL && values->kind == ONV_ATTR_TENSOR)
        return (onv_dtype)values->tensor->type.dtype;
    if (onv_op_attr(c, "values_strings") != NULL) return ONV_STRING;
    if (onv_op_attr(c, "values_int64s") != NULL) return ONV_INT64;
    return onv_op_attr(c, "values_floats") != NULL ? ONV_FLOAT : ONV_UNDEFINED;
}

static onv_status infer_label_encoder(onv_op_ctx *c)
{
    return onv_op_set_out_like(c, 0, 0, label_dtype(c));
}

/* --- Features ---------------------------------------------------------------------------------- */

static onv_status infer_feature_vectorizer(onv_op_ctx *c)
{
    uint32_t count;
    /* NULL also where the list is too long to be kept: then the inputs say the same. */
    const int64_t *sizes = onv_op_attr_ints(c, "inputdimensions", &count);
    count = count_of(c, "inputdimensions");
    onv_dim total = onv_dim_const(0), batch = ONV_DIM_UNKNOWN;
    if (count > 0 && count != c->n_in)
        return onv_op_fail(c, "%u inputdimensions for %u inputs", count, c->n_in);
    for (uint32_t k = 0; k < c->n_in; k++) {
        onv_dim size = sizes != NULL ? onv_dim_const(sizes[k]) : onv_op_in_dim(c, k, -1);
        if (sizes != NULL && sizes[k] < 0)
            return onv_op_fail(c, "inputdimensions holds %lld", (long long)sizes[k]);
        total = onv_dim_add(c->dims, total, size);
        ONV_TRY(onv_tensor_unify(c, "the batches", &batch, rows_of(c, k)));
    }
    onv_dim dims[2] = {batch, total};
    return onv_op_set_out(c, 0, ONV_FLOAT, dims, 2);
}

static onv_status infer_one_hot_encoder(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims);
    uint32_t categories = either_count(c, "cats_int64s", "cats_strings");
    if (categories == 0) return onv_op_fail(c, "no categories are given");
    ONV_TRY(onv_tensor_check_rank(c, rank + 1));
    if (rank >= 0) dims[rank] = onv_dim_const(categories);
    return onv_op_set_out(c, 0, ONV_FLOAT, dims, rank < 0 ? -1 : rank + 1);
}

/* --- Maps -------------------------------------------------------------------------------------- */

static onv_status need_map(onv_op_ctx *c, const onv_type **map)
{
    *map = onv_op_in(c, 0);
    if ((*map)->kind != ONV_TYPE_MAP && (*map)->kind != ONV_TYPE_UNKNOWN)
        return onv_op_fail(c, "input 0 is not a map");
    return ONV_OK;
}

static onv_status infer_cast_map(onv_op_ctx *c)
{
    const char *to = onv_op_attr_string(c, "cast_to", "TO_FLOAT");
    const char *form = onv_op_attr_string(c, "map_form", "DENSE");
    const onv_type *map;
    ONV_TRY(need_map(c, &map));
    onv_dtype dtype = strcmp(to, "TO_STRING") == 0  ? ONV_STRING
                      : strcmp(to, "TO_INT64") == 0 ? ONV_INT64
                                                    : ONV_FLOAT;
    onv_dim dims[2] = {onv_dim_const(1), ONV_DIM_UNKNOWN};
    if (strcmp(form, "SPARSE") == 0) {
        dims[1] = onv_dim_const(onv_op_attr_int(c, "max_map", 1));
        if (dims[1].raw < 0) return onv_op_fail(c, "max_map is %lld", (long long)dims[1].raw);
    } else {
        dims[1] = onv_dim_fresh(c->dims, "map", ONV_DIM_UNKNOWN);
    }
    return onv_op_set_out(c, 0, dtype, dims, 2);
}

static onv_status infer_dict_vectorizer(onv_op_ctx *c)
{
    uint32_t words = either_count(c, "int64_vocabulary", "string_vocabulary");
    const onv_type *map;
    ONV_TRY(need_map(c, &map));
    if (words == 0) return onv_op_fail(c, "no vocabulary is given");
    onv_dim dims[2] = {onv_dim_const(1), onv_dim_const(words)};
    const onv_type *value = onv_type_elements(map).type;
    onv_dtype dtype = value != NULL ? (onv_dtype)value->dtype : ONV_UNDEFINED;
    return onv_op_set_out(c, 0, dtype, dims, 2);
}

/* One map per row. */
static onv_status infer_zip_map(onv_op_ctx *c)
{
    bool strings = count_of(c, "classlabels_strings") > 0;
    uint32_t labels = either_count(c, "classlabels_int64s", "classlabels_strings");
    onv_dim columns = onv_op_in_dim(c, 0, -1);
    onv_type *value = ONV_ARENA_ARRAY(c->arena, onv_type, 1);
    onv_type *map = ONV_ARENA_ARRAY(c->arena, onv_type, 1);
    if (labels == 0) return onv_op_fail(c, "no labels are given");
    if (onv_dim_is_const(columns) && columns.raw != (int64_t)labels)
        return onv_op_fail(c, "%u labels for %lld columns", labels, (long long)columns.raw);
    if (value == NULL || map == NULL) return ONV_OK;
    *value = (onv_type){.kind = ONV_TYPE_TENSOR, .dtype = ONV_FLOAT};
    *map = onv_type_of_elements(c->arena, ONV_TYPE_MAP,
                                (onv_elements){.type = value, .length = ONV_DIM_UNKNOWN});
    map->dtype = strings ? ONV_STRING : ONV_INT64;
    onv_type sequence = onv_type_of_elements(c->arena, ONV_TYPE_SEQUENCE,
                                             (onv_elements){.type = map, .length = rows_of(c, 0)});
    return onv_op_set_out_type(c, 0, &sequence);
}

/* --- Models ------------------------------------------------------------------------------------ */

/* A label per row, and `scores` numbers per row. */
static onv_status set_classes(onv_op_ctx *c, bool strings, uint32_t labels, int64_t scores)
{
    onv_dim rows = rows_of(c, 0);
    if (labels == 0) return onv_op_fail(c, "no class labels are given");
    onv_op_set_out(c, 0, strings ? ONV_STRING : ONV_INT64, &rows, 1);
    return set_rows(c, 1, ONV_FLOAT, onv_dim_const(scores));
}

/* `with`: the attribute with the labels that are numbers. */
static onv_status infer_classifier(onv_op_ctx *c)
{
    uint32_t labels = either_count(c, c->op->with, "classlabels_strings");
    return set_classes(c, count_of(c, "classlabels_strings") > 0, labels, labels);
}

/* Support vectors without probabilities give a score per pair of classes. */
static onv_status infer_svm_classifier(onv_op_ctx *c)
{
    uint32_t labels = either_count(c, "classlabels_ints", "classlabels_strings");
    bool pairs = count_of(c, "vectors_per_class") > 0 && count_of(c, "prob_a") == 0 && labels > 2;
    int64_t scores = pairs ? (int64_t)labels * (labels - 1) / 2 : labels;
    return set_classes(c, count_of(c, "classlabels_strings") > 0, labels, scores);
}

/* `with`: the attribute that says how many numbers a row gives. */
static onv_status infer_regressor(onv_op_ctx *c)
{
    int64_t targets = onv_op_attr_int(c, c->op->with, 1);
    if (targets < 1)
        return onv_op_fail(c, "%s is %lld", (const char *)c->op->with, (long long)targets);
    return set_rows(c, 0, c->op->since < 5 ? ONV_FLOAT : onv_op_in_dtype(c, 0),
                    onv_dim_const(targets));
}

static onv_status infer_svm_regressor(onv_op_ctx *c)
{
    return set_rows(c, 0, ONV_FLOAT, onv_dim_const(1));
}

/* Every row meets every coefficient. */
static onv_dim count_linear(onv_op_ctx *c)
{
    return onv_dim_mul(c->dims, rows_of(c, 0), onv_dim_const(count_of(c, "coefficients")));
}

/* A kernel is a dot product (or a distance) with each support vector. */
static onv_dim count_svm(onv_op_ctx *c)
{
    uint32_t vectors = count_of(c, "support_vectors");
    if (vectors == 0) return count_linear(c);
    return onv_dim_mul(c->dims, rows_of(c, 0), onv_dim_const(vectors));
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_SAYS("ArrayFeatureExtractor", 1, 2, 2, 1, 1,
             "(x[_] or [..., _], at): [1, at.elems] or [x.:-1, at.elems]"),
    ONV_OP("Binarizer", 1, 1, 1, 1, 1, onv_infer_same, .traits = {.inplace = ONV_BIT(0)}),
    ONV_OP("CastMap", 1, 1, 1, 1, 1, infer_cast_map, .flags = ONV_OP_DATA_DEPENDENT),
    ONV_OP("CategoryMapper", 1, 1, 1, 1, 1, infer_category_mapper, .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("DictVectorizer", 1, 1, 1, 1, 1, infer_dict_vectorizer),
    ONV_OP("FeatureVectorizer", 1, 1, ONV_OP_MAX_ARITY, 1, 1, infer_feature_vectorizer),
    ONV_OP("Imputer", 1, 1, 1, 1, 1, onv_infer_same, .traits = {.inplace = ONV_BIT(0)},
           .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("LabelEncoder", 1, 1, 1, 1, 1, infer_label_encoder, .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("LinearClassifier", 1, 1, 1, 2, 2, infer_classifier, .with = "classlabels_ints",
           .macs = count_linear, .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("LinearRegressor", 1, 1, 1, 1, 1, infer_regressor, .with = "targets",
           .macs = count_linear, .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_SAYS("Normalizer", 1, 1, 1, 1, 1, "(x): like x f32"),
    ONV_OP("OneHotEncoder", 1, 1, 1, 1, 1, infer_one_hot_encoder),
    ONV_OP("SVMClassifier", 1, 1, 1, 2, 2, infer_svm_classifier, .macs = count_svm,
           .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("SVMRegressor", 1, 1, 1, 1, 1, infer_svm_regressor, .macs = count_svm,
           .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_SAYS("Scaler", 1, 1, 1, 1, 1, "(x): like x f32", .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("TreeEnsemble", 5, 1, 1, 1, 1, infer_regressor, .with = "n_targets",
           .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("TreeEnsembleClassifier", 1, 1, 1, 2, 2, infer_classifier, .with = "classlabels_int64s",
           .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("TreeEnsembleRegressor", 1, 1, 1, 1, 1, infer_regressor, .with = "n_targets",
           .flags = ONV_OP_WEIGHT_ATTRS),
    ONV_OP("ZipMap", 1, 1, 1, 1, 1, infer_zip_map),
};

const onv_op_family onv_ops_ml = {"ai.onnx.ml", rows, sizeof rows / sizeof rows[0]};
