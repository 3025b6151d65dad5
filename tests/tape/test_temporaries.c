/* What rows of the table say that forward and backward take on their way, against what PyTorch's CUDA build allocated inside each operator
 * (tests/truth/aten_temporaries.txt, which tests/aten/temporaries.py writes, on a substitute for the CUDA driver). */
#include "support/test.h"
#include "tape/state.h"

enum { MAX_LINE = 400, N_FIELDS = 5, MOST_ARGUMENTS = 8, LEAST_OPERATORS = 150 };
enum { NAME, ARGUMENTS, SHAPE, FORWARD, BACKWARD };

/* Bytes: workspaces of reductions, numbers of their own, and sizes on the way that are no multiple of a tensor's. */
enum { TOLERANCE = 8192 };

typedef struct harness {
    onv_model model;
    onv_eager eager;
    onv_lower_options options;
    onv_error err;
    onv_tape tape;
    onv_program program;
    onv_tape_value states[MOST_ARGUMENTS + 1];
    onv_program_value values[MOST_ARGUMENTS + 1];
    onv_argument arguments[MOST_ARGUMENTS];
    uint32_t n_values, n_arguments;
} harness;

static void cut(char *line, char *fields[N_FIELDS])
{
    for (uint32_t i = 0; i < N_FIELDS; i++) {
        fields[i] = line;
        char *end = strstr(line, " | ");
        if (end == NULL) return;
        *end = '\0';
        line = end + 3;
    }
}

static onv_shape shape_of(const char *text)
{
    onv_shape shape = {0};
    for (bool more = *text != '-'; more; text += more) {
        char *end;
        shape.dims[shape.rank++] = strtoll(text, &end, 10);
        text = end;
        more = *text == 'x';
    }
    return shape;
}

static uint32_t add_value(harness *h, uint8_t dtype, const onv_shape *shape, uint32_t tensor)
{
    uint32_t value = h->n_values++;
    onv_dim *dims = ONV_ARENA_ARRAY(&h->model.arena, onv_dim, shape->rank);
    for (uint32_t i = 0; i < shape->rank; i++) dims[i] = onv_dim_const(shape->dims[i]);
    h->states[value] =
        (onv_tape_value){.tensor = tensor, .object = value, .base = ONV_NO_PROGRAM_VALUE};
    h->values[value] =
        (onv_program_value){.name = "", .dtype = dtype, .rank = shape->rank, .dims = dims};
    return value;
}

static uint8_t dtype_of(const char *kind)
{
    return kind == NULL || *kind == 'n' ? ONV_FLOAT
           : *kind == 'i'               ? ONV_INT64
           : *kind == 'd'               ? ONV_DOUBLE
           : *kind == 'h'               ? ONV_FLOAT16
                                        : ONV_BOOL;
}

/* "mask:b", "dim=[1]", "min=0.5", "self", "x1@4x16x64", "base:n", which has no gradient, "reduce=sum". */
static void add_argument(harness *h, char *text)
{
    onv_shape shape = {3, {64, 64, 64}};
    onv_argument *a = &h->arguments[h->n_arguments++];
    char *number = strchr(text, '='), *kind = strchr(text, ':'), *size = strchr(text, '@');
    if (size != NULL) shape = shape_of(size + 1);
    if (size != NULL) *size = '\0';
    if (number != NULL) *number++ = '\0';
    if (kind != NULL) *kind++ = '\0';
    *a = (onv_argument){.name = text, .kind = ONV_ARGUMENT_TENSOR};
    if (number != NULL && *number == '[') {
        onv_dim *dims = ONV_ARENA_ARRAY(&h->model.arena, onv_dim, 1);
        dims[0] = onv_dim_const(strtoll(number + 1, NULL, 10));
        a->kind = ONV_ARGUMENT_INTS;
        a->count = 1;
        a->numbers = dims;
    } else if (number != NULL && *number >= 'a') {
        a->kind = ONV_ARGUMENT_STRING;
        a->text = number;
    } else if (number != NULL) {
        a->kind = ONV_ARGUMENT_FLOAT;
        a->real = strtod(number, NULL);
    } else {
        uint8_t dtype = dtype_of(kind);
        uint32_t tensor = onv_tensor_new(&h->tape.emit, dtype, shape.rank, shape.dims, NULL);
        h->eager.tensors.at[tensor].needs_grad = kind == NULL;
        a->value = add_value(h, dtype, &shape, tensor);
    }
}

static void emit(harness *h, char *fields[N_FIELDS], const onv_aten_op *op)
{
    onv_model_init(&h->model, SIZE_MAX);
    onv_eager_init(&h->eager);
    h->tape.emit = (onv_emitter){.model = &h->model,
                                 .options = &h->options,
                                 .eager = &h->eager,
                                 .err = &h->err,
                                 .node = ONV_NO_NODE,
                                 .region = ONV_NO_REGION};
    h->tape.program = &h->program;
    h->tape.values = h->states;
    for (char *at = strtok(fields[ARGUMENTS], " "); at != NULL; at = strtok(NULL, " "))
        add_argument(h, at);
    onv_shape shape = shape_of(fields[SHAPE]);
    char *kind = strchr(fields[SHAPE], ':');
    uint8_t dtype = dtype_of(kind == NULL ? NULL : kind + 1);
    uint32_t result = add_value(h, dtype, &shape, ONV_NO_TENSOR);
    onv_program_call call = {.name = "",
                             .op_name = fields[NAME],
                             .arguments = h->arguments,
                             .results = &result,
                             .n_arguments = h->n_arguments,
                             .n_results = 1,
                             .module = UINT32_MAX};
    h->program.values.at = h->values;
    h->program.values.count = h->n_values;
    onv_tape_emit(&h->tape, &call, op, false);
    assert_int_equal(h->tape.emit.status, ONV_OK);
    assert_true(h->eager.ops.count > 0);
}

static bool is_near(uint64_t ours, uint64_t measured)
{
    return ours <= measured + TOLERANCE && measured <= ours + TOLERANCE;
}

/* Rows cannot say: what libraries take for a decomposition or an order; what operators keep that PyTorch computes by others; what depends
 * on contents, or on a number. */
static bool is_apart(const char *name)
{
    static const char *const starts[] = {
        "aten._linalg",     "aten.linalg",        "aten.cholesky", "aten.det.",
        "aten.inverse",     "aten.triangular",    "aten.nuclear",  "aten.median.d",
        "aten.nanmedian.d", "aten.msort",         "aten.diff",     "aten.trapezoid",
        "aten.float_power", "aten.fake_quantize", "aten.rrelu",    "aten.dist",
        "aten.masked_s",    "aten.mvlgamma"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

static bool check(char *fields[N_FIELDS], const onv_aten_op *op)
{
    harness h = {.options = {.loss = ONV_LOSS_NONE, .cuda.compute_capability = 90}};
    emit(&h, fields, op);
    const onv_eager_op *made = &h.eager.ops.at[h.eager.ops.count - 1];
    uint64_t forward = strtoull(fields[FORWARD], NULL, 10);
    uint64_t backward = strtoull(fields[BACKWARD], NULL, 10);
    uint64_t temps = onv_eager_backward_temps(&h.eager, made);
    bool good = is_near(made->forward_temp_bytes, forward) && is_near(temps, backward);
    if (!good)
        print_message("%s: %llu and %llu bytes; the table says %llu and %llu\n", fields[NAME],
                      (unsigned long long)forward, (unsigned long long)backward,
                      (unsigned long long)made->forward_temp_bytes, (unsigned long long)temps);
    onv_emitter_cleanup(&h.tape.emit);
    onv_vec_cleanup(&h.tape.operands);
    onv_eager_cleanup(&h.eager);
    onv_model_cleanup(&h.model);
    return good;
}

TEST(rows_take_what_pytorch_took)
{
    char path[1000], line[MAX_LINE], *fields[N_FIELDS] = {NULL};
    uint32_t operators = 0, wrong = 0;
    bool in_place;
    snprintf(path, sizeof path, "%s/tests/truth/aten_temporaries.txt", ONV_SOURCE_DIR);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        cut(line, fields);
        assert_non_null(fields[BACKWARD]);
        const onv_aten_op *op = onv_aten_find(fields[NAME], &in_place);
        if (op == NULL || op->rule != ONV_RULE_NONE || is_apart(fields[NAME])) continue;
        operators++;
        wrong += !check(fields, op);
    }
    fclose(file);
    print_message("%u operators, %u differ\n", operators, wrong);
    assert_int_equal(wrong, 0);
    assert_true(operators >= LEAST_OPERATORS);
}

/* Likewise of operators whose rows have a rule, without workspaces of cuBLAS. */
TEST(rules_take_what_pytorch_took)
{
    static const char *const measured[] = {
        "aten.cdist.default | x1 x2 | 64x64x64 | 2162688 | 5275648",
        "aten.cdist.default | x1@3x8x8 x2@3x512x8 | 3x8x512 | 62208 | 155232",
        "aten.cdist.default | x1@4x16x64 x2@4x20x64 | 4x16x20 | 0 | 337920",
        "aten.cdist.default | x1@4x16x64 x2:n@4x20x64 | 4x16x20 | 0 | 327680",
        "aten._cdist_forward.default | x1 x2 | 64x64x64 | 0 | 69206016",
#define ATTENTION "aten._scaled_dot_product_efficient_attention.default | "
        ATTENTION "query@4x4x24x16 key@4x4x24x16 value@4x4x24x16 | 4x4x24x16 | 0 | 263936",
        ATTENTION "query@4x4x24x96 key@4x4x24x96 value@4x4x24x96 | 4x4x24x96 | 0 | 1050624",
        ATTENTION "query@4x4x24x128 key@4x4x24x128 value@4x4x24x128 | 4x4x24x128 | 0 | 1050624",
        ATTENTION "query@4x4x128x64 key@4x4x24x64 value@4x4x24x64 | 4x4x128x64 | 0 | 540672",
        ATTENTION "query@4x4x100x128 key@4x4x100x128 value@4x4x100x128 | 4x4x100x128 | 0 | 1055488",
        ATTENTION
        "query@64x12x197x64 key@64x12x197x64 value@64x12x197x64 | 64x12x197x64 | 0 | 50985984",
#define SCATTER "aten.scatter_reduce.two | "
#define TENSORS "index:i src reduce="
        SCATTER "self@64x32x64 " TENSORS "sum | 64x32x64 | 0 | 0",
        SCATTER "self:n@64x32x64 " TENSORS "sum | 64x32x64 | 0 | 0",
        SCATTER "self@64x32x64 " TENSORS "mean | 64x32x64 | 1703936 | 2621440",
        SCATTER "self:n@64x32x64 " TENSORS "mean | 64x32x64 | 1703936 | 3145728",
        SCATTER "self@64x32x64 " TENSORS "prod | 64x32x64 | 0 | 9437184",
        SCATTER "self:n@64x32x64 " TENSORS "prod | 64x32x64 | 0 | 9961472",
        SCATTER "self@64x32x64 " TENSORS "amax | 64x32x64 | 0 | 4980736",
        SCATTER "self:n@64x32x64 " TENSORS "amax | 64x32x64 | 0 | 5505024",
        /* Reductions to another type: of the argument in that type, but where kernels read 16 bits. */
        "aten.sum.default | self:b | -:i | 2097160 | 0",
        "aten.sum.default | self:h | - | 0 | 0",
        "aten.sum.default | self:h | -:d | 2097160 | 0",
        "aten.mean.default | self:n | -:d | 2097160 | 0",
        "aten.prod.default | self:b | -:i | 2097160 | 0",
        "aten.linalg_vector_norm.default | self:n | -:d | 2097160 | 0",
        "aten.cumsum.default | self:b | 64x64x64:i | 2097152 | 0",
        "aten.cumsum.default | self:h | 64x64x64 | 1048576 | 0",
        "aten.cumprod.default | self:b | 64x64x64:i | 2097152 | 0",
        "aten.count_nonzero.default | self:n | -:i | 2359304 | 0",
        "aten.isfinite.default | self:n | 64x64x64:b | 1572864 | 0",
        "aten.isinf.default | self:n | 64x64x64:b | 1048576 | 0",
        "aten.isclose.default | self:n other:n | 64x64x64:b | 3932160 | 0",
        "aten.cdist.default | x1:n x2:n p=1 | 64x64x64 | 0 | 0",
        "aten.binary_cross_entropy.default | self:n target:n | - | 0 | 0",
        "aten.soft_margin_loss.default | self:n target:n | - | 1048584 | 0",
#define SORT "aten.sort.default | self:"
        SORT "n@1048576 | 1048576 | 21180927 | 0",
        SORT "i@1048576 | 1048576:i | 25416191 | 0",
        SORT "h@100000 | 100000:h | 1823231 | 0",
        SORT "n@64x5000 | 64x5000 | 10310143 | 0",
        SORT "b@64x5000 | 64x5000:b | 5537791 | 0",
        SORT "n@300x5000 | 300x5000 | 30000383 | 0",
        SORT "i@128x16384 | 128x16384:i | 50331903 | 0",
        SORT "n@2x1000000 | 2x1000000 | 20200191 | 0",
        "aten.argsort.default | self:n@20000 | 20000:i | 492927 | 0",
        "aten.median.default | self:n@20000 | - | 652923 | 0",
    };
    char line[MAX_LINE], *fields[N_FIELDS] = {NULL};
    uint32_t wrong = 0;
    bool in_place;
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        snprintf(line, sizeof line, "%s", measured[i]);
        cut(line, fields);
        wrong += !check(fields, onv_aten_find(fields[NAME], &in_place));
    }
    assert_int_equal(wrong, 0);
}
