/* Asks cuDNN's heuristics which engine they choose for a convolution and what workspace it takes.
 *
 *     cc -I.../cudnn/include ask.c -lcudnn -o ask; ask [PLANS] < problems > answers
 *
 * A line of problems: id, pass (f, d, w), type (0 float32, 2 float16, 9 bfloat16), NHWC (0, 1), TF32 (0, 1), rank, batch,
 * channels, filters, groups, then input, output, kernel, stride, padding, dilation by axis. A line of answers: id,
 * heuristics (0 the asked ones, 1 fallback), index, engine, workspace bytes, knobs, whether it uses tensor cores.
 * HM chooses the heuristics: 0 instant (as PyTorch), 1 mode B (as ONNX Runtime), 3 mode A. */
#include <cudnn.h>
#include <cudnn_backend.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef cudnnBackendDescriptor_t D;
typedef cudnnBackendAttributeName_t attribute;
typedef cudnnBackendAttributeType_t type;
enum { CONFIGS = 64, KNOBS = 32, BYTES_OF_CONFIG = 303 /* without a name: the workspace of a configuration */ };

static cudnnHandle_t handle;

static D make(cudnnBackendDescriptorType_t kind)
{
    D d = 0;
    if (cudnnBackendCreateDescriptor(kind, &d)) exit(fprintf(stderr, "no descriptor\n"));
    return d;
}

static void set(D d, attribute name, type kind, int64_t count, const void *value)
{
    cudnnBackendSetAttribute(d, name, kind, count, value);
}

/* How many there are; 0 where there are none. */
static int64_t get(D d, attribute name, type kind, int64_t most, void *value)
{
    int64_t count = 0;
    return cudnnBackendGetAttribute(d, name, kind, most, &count, value) ? 0 : count;
}

static D make_tensor(int dtype, int n, const int64_t *dims, int is_nhwc, int64_t uid)
{
    D d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t alignment = 32, strides[5], size = is_nhwc ? dims[1] : 1;
    for (int i = n - 1; i >= (is_nhwc ? 2 : 0); i--) {
        strides[i] = size;
        size *= dims[i];
    }
    if (is_nhwc) strides[0] = size, strides[1] = 1;
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &dtype);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n, dims);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, n, strides);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    return cudnnBackendFinalize(d) ? 0 : d;
}

typedef struct problem {
    char id[64], pass;
    int dtype, is_nhwc, has_tf32, rank;
    int64_t v[40]; /* batch, channels, filters, groups, then the dims */
} problem;

static int read_problem(const char *line, problem *p)
{
    int at = 0;
    if (sscanf(line, "%63s %c %d %d %d %d%n", p->id, &p->pass, &p->dtype, &p->is_nhwc, &p->has_tf32, &p->rank, &at) < 6) return 0;
    char *rest = (char *)line + at;
    for (int i = 0; i < 4 + 6 * p->rank; i++) p->v[i] = strtoll(rest, &rest, 10);
    return 1;
}

/* Parts are x, y, w and the convolution; those of no descriptor do not end the program. */
static D make_operation(const problem *p, D *parts)
{
    static const struct {
        char pass;
        cudnnBackendDescriptorType_t kind;
        attribute part[4], alpha, beta;
    } passes[] = {
#define PASS(letter, KIND, FORM, X, Y, W)                                                                                        \
    {letter,                                                                                                                     \
     CUDNN_BACKEND_OPERATION_CONVOLUTION_##KIND##_DESCRIPTOR,                                                                    \
     {CUDNN_ATTR_OPERATION_CONVOLUTION_##FORM##_##X, CUDNN_ATTR_OPERATION_CONVOLUTION_##FORM##_##Y,                              \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##FORM##_##W, CUDNN_ATTR_OPERATION_CONVOLUTION_##FORM##_CONV_DESC},                       \
     CUDNN_ATTR_OPERATION_CONVOLUTION_##FORM##_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_##FORM##_BETA}
        PASS('f', FORWARD, FORWARD, X, Y, W), PASS('d', BACKWARD_DATA, BWD_DATA, DX, DY, W),
        PASS('w', BACKWARD_FILTER, BWD_FILTER, X, DY, DW)};
    const int64_t *v = p->v, *in = v + 4, *out = in + p->rank, *kernel = out + p->rank, *stride = kernel + p->rank,
                  *pad = stride + p->rank, *dilation = pad + p->rank, rank = p->rank;
    int64_t dims[3][5] = {{v[0], v[1]}, {v[0], v[2]}, {v[2], v[1] / v[3]}};
    int compute = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION, which = p->pass == 'f' ? 0 : p->pass == 'd' ? 1 : 2;
    float alpha = 1, beta = 0;
    for (int i = 0; i < rank; i++) dims[0][2 + i] = in[i], dims[1][2 + i] = out[i], dims[2][2 + i] = kernel[i];
    for (int i = 0; i < 3; i++) parts[i] = make_tensor(p->dtype, p->rank + 2, dims[i], p->is_nhwc, i < 2 ? 120 + i : 119);
    parts[3] = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(parts[3], CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(parts[3], CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(parts[3], CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &rank);
    set(parts[3], CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, rank, pad);
    set(parts[3], CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, rank, pad);
    set(parts[3], CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, rank, dilation);
    set(parts[3], CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, rank, stride);
    cudnnBackendFinalize(parts[3]);
    D op = make(passes[which].kind);
    for (int i = 0; i < 4; i++) set(op, passes[which].part[i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &parts[i]);
    set(op, passes[which].alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    set(op, passes[which].beta, CUDNN_TYPE_FLOAT, 1, &beta);
    return op;
}

static void print_knobs(D config)
{
    D knobs[KNOBS];
    for (int i = 0; i < KNOBS; i++) knobs[i] = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    int64_t n = get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, knobs);
    for (int i = 0; i < n; i++) {
        int kind = -1;
        int64_t value = -1;
        get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &kind);
        get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
        printf("%s%d=%ld", i ? "," : "", kind, (long)value);
    }
    for (int i = 0; i < KNOBS; i++) cudnnBackendDestroyDescriptor(knobs[i]);
}

/* Whether a line was printed: not for an engine that the type or the settings rule out, nor one without a plan. */
static int print_answer(const problem *p, int heuristics, int index, D config)
{
    D engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR), plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t number = -1, bytes = -1;
    int notes[KNOBS], on_cores = 0, converts = 0, is_printed = 0;
    get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
    int64_t n = get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, KNOBS, notes);
    for (int i = 0; i < n; i++) {
        on_cores |= notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        converts |= notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    }
    if (p->dtype != 0 || (!converts && (p->has_tf32 || !on_cores))) {
        if (!getenv("NOFAST")) get(config, (attribute)BYTES_OF_CONFIG, CUDNN_TYPE_INT64, 1, &bytes);
        int is_known = bytes >= 0;
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
        is_printed = is_known || !cudnnBackendFinalize(plan);
        if (is_printed && !is_known) get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    }
    if (is_printed) {
        printf("%s %d %d eng%ld %ld ", p->id, heuristics, index, (long)number, (long)bytes);
        print_knobs(config);
        printf(" %d\n", on_cores);
    }
    cudnnBackendDestroyDescriptor(plan);
    cudnnBackendDestroyDescriptor(engine);
    return is_printed;
}

/* Of the first `wanted` configurations: each costs time. */
static int print_answers(const problem *p, D graph, int heuristics, int most, int wanted)
{
    D asked = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), configs[CONFIGS];
    int mode = heuristics == 1 ? 2 : getenv("HM") ? atoi(getenv("HM")) : 0, printed = 0;
    set(asked, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    set(asked, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!cudnnBackendFinalize(asked)) {
        for (int i = 0; i < wanted; i++) configs[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        int64_t n = get(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, wanted, configs);
        for (int i = 0; i < n && printed < most; i++) printed += print_answer(p, heuristics, i, configs[i]);
        for (int i = 0; i < wanted; i++) cudnnBackendDestroyDescriptor(configs[i]);
    }
    cudnnBackendDestroyDescriptor(asked);
    return printed;
}

int main(int argc, char **argv)
{
    int most = argc > 1 ? atoi(argv[1]) : 1;
    char line[4096];
    problem p;
    if (cudnnCreate(&handle)) return fprintf(stderr, "no handle\n");
    cudnnSetStream(handle, 0);
    while (fgets(line, sizeof line, stdin)) {
        if (!read_problem(line, &p)) continue;
        D parts[4], op = make_operation(&p, parts), graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        int printed = 0, is_wrong = cudnnBackendFinalize(op);
        set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
        set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        is_wrong |= cudnnBackendFinalize(graph);
        if (most == 1 && !is_wrong) printed = print_answers(&p, graph, 0, 1, 2); /* nearly always enough */
        for (int heuristics = 0; heuristics < 2 && printed < most && !is_wrong; heuristics++)
            printed += print_answers(&p, graph, heuristics, most - printed, CONFIGS);
        if (!printed) printf("%s -1 -1 none -1 - 0\n", p.id);
        fflush(stdout);
        cudnnBackendDestroyDescriptor(graph);
        cudnnBackendDestroyDescriptor(op);
        for (int i = 0; i < 4; i++)
            if (parts[i]) cudnnBackendDestroyDescriptor(parts[i]);
    }
}
