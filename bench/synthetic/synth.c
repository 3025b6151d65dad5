/* Writes ONNX models of any size, for measuring and for nothing else.
 *
 * chain:    Conv, Relu, Conv, Relu ...
 * residual: blocks of Conv, Relu, Conv and an Add of the block's input
 *
 * Every Conv has a weight of its own and the attributes that exporters write. The weights are
 * references to a file that is not there, or stand in the model (--weights).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

typedef enum payload_kind { PAYLOAD_EXTERNAL, PAYLOAD_HOLE, PAYLOAD_NOISE } payload_kind;

typedef struct recipe {
    bool residual;
    uint64_t nodes;
    uint64_t channels; /* of every activation */
    payload_kind payload;
    const char *path;
} recipe;

/* Numbers of the ONNX schema. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    TYPE_INT = 2,
    TYPE_INTS = 7,
    TENSOR_DIM = 1,
    TENSOR_DTYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_EXTERNAL_DATA = 13,
    TENSOR_LOCATION = 14,
    FLOAT32 = 1,
    KERNEL = 3,
    IMAGE = 32
};

/* --- Nodes ------------------------------------------------------------------------------------ */

typedef struct name {
    char text[48];
} name;

/* The value that comes out of node i, counted from 1; 0 is the input. */
static name value_name(uint64_t i)
{
    name n = {"input"};
    if (i > 0) snprintf(n.text, sizeof n.text, "t%" PRIu64, i);
    return n;
}

static name weight_name(uint64_t i)
{
    name n;
    snprintf(n.text, sizeof n.text, "w%" PRIu64, i);
    return n;
}

static bool is_conv(uint64_t i)
{
    return i % 2 == 1;
}

static void put_ints(message *node, const char *attribute, size_t count, uint64_t value)
{
    message m = {0};
    put_text(&m, ATTRIBUTE_NAME, attribute);
    for (size_t i = 0; i < count; i++) put_number(&m, ATTRIBUTE_INTS, value);
    put_number(&m, ATTRIBUTE_TYPE, TYPE_INTS);
    put_message(node, NODE_ATTRIBUTE, &m);
}

static void put_conv(message *node, uint64_t i)
{
    put_text(node, NODE_INPUT, weight_name(i).text);
    put_ints(node, "dilations", 2, 1);
    message group = {0};
    put_text(&group, ATTRIBUTE_NAME, "group");
    put_number(&group, ATTRIBUTE_I, 1);
    put_number(&group, ATTRIBUTE_TYPE, TYPE_INT);
    put_message(node, NODE_ATTRIBUTE, &group);
    put_ints(node, "kernel_shape", 2, KERNEL);
    put_ints(node, "pads", 4, KERNEL / 2);
    put_ints(node, "strides", 2, 1);
}

static void emit_node(sink *out, const recipe *job, uint64_t i)
{
    const char *op_type = is_conv(i) ? "Conv" : "Relu";
    message node = {0};
    put_text(&node, NODE_INPUT, value_name(i - 1).text);
    if (is_conv(i)) put_conv(&node, i);
    if (job->residual && i % 4 == 0) {
        op_type = "Add";
        put_text(&node, NODE_INPUT, value_name(i - 4).text);
    }
    name text;
    snprintf(text.text, sizeof text.text, "/block%" PRIu64 "/%s_%" PRIu64, (i - 1) / 4, op_type, i);
    put_text(&node, NODE_NAME, text.text);
    put_text(&node, NODE_OUTPUT, value_name(i).text);
    put_text(&node, NODE_OP_TYPE, op_type);
    emit_message(out, GRAPH_NODE, &node);
}

/* --- Weights, inputs and outputs -------------------------------------------------------------- */

static void emit_weight(sink *out, const recipe *job, uint64_t i)
{
    message tensor = {0};
    put_number(&tensor, TENSOR_DIM, job->channels);
    put_number(&tensor, TENSOR_DIM, job->channels);
    put_number(&tensor, TENSOR_DIM, KERNEL);
    put_number(&tensor, TENSOR_DIM, KERNEL);
    put_number(&tensor, TENSOR_DTYPE, FLOAT32);
    put_text(&tensor, TENSOR_NAME, weight_name(i).text);
    if (job->payload == PAYLOAD_EXTERNAL) {
        message entry = {0};
        put_text(&entry, 1, "location");
        put_text(&entry, 2, "weights.bin");
        put_message(&tensor, TENSOR_EXTERNAL_DATA, &entry);
        put_number(&tensor, TENSOR_LOCATION, 1);
        emit_message(out, GRAPH_INITIALIZER, &tensor);
        return;
    }
    uint64_t bytes = job->channels * job->channels * KERNEL * KERNEL * sizeof(float);
    emit_open(out, GRAPH_INITIALIZER, tensor.size + open_bytes(TENSOR_RAW, bytes) + bytes);
    emit_body(out, &tensor);
    emit_open(out, TENSOR_RAW, bytes);
    if (job->payload == PAYLOAD_HOLE)
        emit_hole(out, bytes);
    else
        emit_noise(out, bytes);
}

/* float32 [batch, channels, IMAGE, IMAGE] */
static void emit_port(sink *out, const recipe *job, unsigned field, const char *text)
{
    message shape = {0}, batch = {0};
    put_text(&batch, 2, "batch");
    put_message(&shape, 1, &batch);
    const uint64_t dims[] = {job->channels, IMAGE, IMAGE};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        message dim = {0};
        put_number(&dim, 1, dims[i]);
        put_message(&shape, 1, &dim);
    }
    message tensor = {0}, type = {0}, port = {0};
    put_number(&tensor, 1, FLOAT32);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&port, 1, text);
    put_message(&port, 2, &type);
    emit_message(out, field, &port);
}

static void emit_graph(sink *out, const recipe *job)
{
    for (uint64_t i = 1; i <= job->nodes; i++) emit_node(out, job, i);
    message graph = {0};
    put_text(&graph, GRAPH_NAME, job->residual ? "residual" : "chain");
    emit_body(out, &graph);
    for (uint64_t i = 1; i <= job->nodes; i++)
        if (is_conv(i)) emit_weight(out, job, i);
    emit_port(out, job, GRAPH_INPUT, "input");
    emit_port(out, job, GRAPH_OUTPUT, value_name(job->nodes).text);
}

static bool write_model(const recipe *job)
{
    sink count = {0}, out = {.file = fopen(job->path, "wb")};
    if (out.file == NULL) return false;
    emit_graph(&count, job);

    message head = {0}, opset = {0};
    put_number(&head, MODEL_IR_VERSION, 8);
    put_text(&head, MODEL_PRODUCER, "onnxvram-synth");
    put_text(&opset, 1, "");
    put_number(&opset, 2, 17);
    put_message(&head, MODEL_OPSET, &opset);
    emit_body(&out, &head);
    emit_open(&out, MODEL_GRAPH, count.bytes);
    emit_graph(&out, job);
    bool closed = fclose(out.file) == 0;
    return closed && !out.failed && !count.failed;
}

/* --- Command line ----------------------------------------------------------------------------- */

static bool parse_count(const char *text, uint64_t *count)
{
    char *end;
    errno = 0;
    *count = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *text != '-' && *count > 0 &&
           *count <= (uint64_t)1 << 50;
}

/* The channels with which the weights take `bytes` bytes together, or a little more. */
static uint64_t channels_for(uint64_t bytes, uint64_t nodes)
{
    double each = (double)bytes / (double)((nodes + 1) / 2);
    return (uint64_t)ceil(sqrt(each / (KERNEL * KERNEL * sizeof(float))));
}

static bool parse(int argc, char **argv, recipe *job)
{
    *job = (recipe){.channels = 16};
    if (argc < 4 || !parse_count(argv[2], &job->nodes)) return false;
    job->residual = strcmp(argv[1], "residual") == 0;
    if (!job->residual && strcmp(argv[1], "chain") != 0) return false;
    job->path = argv[3];
    uint64_t bytes = 0;
    payload_kind payload = PAYLOAD_HOLE;
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "--weights") == 0 && i + 1 < argc) {
            if (!parse_count(argv[++i], &bytes)) return false;
        } else if (strcmp(argv[i], "--dense") == 0) {
            payload = PAYLOAD_NOISE;
        } else if (strcmp(argv[i], "--external") == 0) {
            payload = PAYLOAD_EXTERNAL;
        } else {
            return false;
        }
    }
    if (bytes > 0) {
        job->channels = channels_for(bytes, job->nodes);
        job->payload = payload;
    }
    return true;
}

int main(int argc, char **argv)
{
    recipe job;
    if (!parse(argc, argv, &job)) {
        fprintf(stderr,
                "usage: %s chain|residual N OUT.onnx [--weights BYTES [--dense|--external]]\n"
                "  --weights BYTES  weights of that size together, inside the model, as a hole\n"
                "  --dense          ... written out\n"
                "  --external       ... only referred to, as without --weights\n",
                argv[0]);
        return 2;
    }
    if (!write_model(&job)) {
        fprintf(stderr, "%s: cannot write it: %s\n", job.path, strerror(errno));
        return 1;
    }
    return 0;
}
