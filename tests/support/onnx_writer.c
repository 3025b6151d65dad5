#include "support/onnx_writer.h"
#include "support/test.h"

typedef struct buffer {
    unsigned char *at;
    size_t size, capacity;
} buffer;

enum { MAX_DEPTH = 64 };

/* A graph that is being written, and the subgraphs of its next node. */
typedef struct open_graph {
    buffer graph, subgraphs;
    char attribute[64]; /* of its owner */
} open_graph;

struct model {
    open_graph at[MAX_DEPTH];
    unsigned depth; /* of the graph that is written to */
    buffer file;
    int64_t opset;
    buffer imports;   /* of other domains */
    char source[256]; /* of the next node */
    char trace[512];  /* likewise */
    char classes[256];
    char call[256];
    char rules[256];
    buffer notes; /* others of the next node */
};

enum { VARINT = 0, BYTES = 2, FIXED32 = 5 };

static buffer *current(model *m)
{
    return &m->at[m->depth].graph;
}

static void put(buffer *b, const void *data, size_t size)
{
    if (b->size + size > b->capacity) {
        b->capacity = (b->size + size) * 2 + 64;
        b->at = realloc(b->at, b->capacity);
        assert_non_null(b->at);
    }
    if (size > 0) memcpy(b->at + b->size, data, size);
    b->size += size;
}

static void put_varint(buffer *b, uint64_t value)
{
    do {
        unsigned char byte = value & 0x7f;
        value >>= 7;
        if (value != 0) byte |= 0x80;
        put(b, &byte, 1);
    } while (value != 0);
}

static void put_number(buffer *b, unsigned field, int64_t value)
{
    put_varint(b, field << 3 | VARINT);
    put_varint(b, (uint64_t)value);
}

static void put_field(buffer *b, unsigned field, const void *data, size_t size)
{
    put_varint(b, field << 3 | BYTES);
    put_varint(b, size);
    put(b, data, size);
}

static void put_text(buffer *b, unsigned field, const char *text)
{
    put_field(b, field, text, strlen(text));
}

static void put_message(buffer *b, unsigned field, buffer *message)
{
    put_field(b, field, message->at, message->size);
    free(message->at);
    *message = (buffer){0};
}

/* --- Types ------------------------------------------------------------------------------------- */

static int64_t parse_dtype(const char **type)
{
    static const struct {
        const char *name;
        int64_t number;
    } names[] = {{"f32", 1}, {"f16", 10}, {"f64", 11}, {"i64", 7}, {"i32", 6},  {"i8", 3},
                 {"u8", 2},  {"bool", 9}, {"str", 8},  {"u4", 21}, {"bf16", 16}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i].name);
        if (strncmp(*type, names[i].name, length) != 0) continue;
        *type += length;
        return names[i].number;
    }
    fail_msg("unknown type '%s'", *type);
    return 0;
}

/* Calls back for each dim of "[a,b,c]". */
static void each_dim(const char *text, void (*use)(buffer *, const char *, size_t), buffer *to)
{
    if (*text != '[') return;
    text++;
    while (*text != ']' && *text != '\0') {
        size_t length = strcspn(text, ",]");
        use(to, text, length);
        text += length;
        if (*text == ',') text++;
    }
}

static void add_shape_dim(buffer *shape, const char *text, size_t length)
{
    buffer dim = {0};
    if ((*text >= '0' && *text <= '9') || *text == '-')
        put_number(&dim, 1, strtoll(text, NULL, 10));
    else if (*text != '?')
        put_field(&dim, 2, text, length);
    put_message(shape, 1, &dim);
}

static void put_value_info(buffer *to, unsigned field, const char *name, const char *type)
{
    buffer info = {0}, outer = {0}, tensor = {0}, shape = {0}, sequence = {0};
    bool is_sequence = strncmp(type, "seq-", 4) == 0;
    if (is_sequence) type += 4;
    put_text(&info, 1, name);
    put_number(&tensor, 1, parse_dtype(&type));
    if (*type == '[') {
        each_dim(type, add_shape_dim, &shape);
        put_message(&tensor, 2, &shape);
    }
    put_message(&outer, 1, &tensor);
    if (is_sequence) {
        put_message(&sequence, 1, &outer);
        put_message(&outer, 4, &sequence);
    }
    put_message(&info, 2, &outer);
    put_message(to, field, &info);
}

void model_input(model *m, const char *name, const char *type)
{
    put_value_info(current(m), 11, name, type);
}

void model_output(model *m, const char *name, const char *type)
{
    put_value_info(current(m), 12, name, type);
}

void model_value_info(model *m, const char *name, const char *type)
{
    put_value_info(current(m), 13, name, type);
}

/* --- Tensors ----------------------------------------------------------------------------------- */

static void add_tensor_dim(buffer *tensor, const char *text, size_t length)
{
    (void)length;
    put_number(tensor, 1, strtoll(text, NULL, 10));
}

static void put_weight(buffer *to, unsigned field, const char *name, const char *type)
{
    buffer tensor = {0}, entry = {0};
    int64_t dtype = parse_dtype(&type);
    each_dim(type, add_tensor_dim, &tensor);
    put_number(&tensor, 2, dtype);
    put_text(&tensor, 8, name);
    put_text(&entry, 1, "location");
    put_text(&entry, 2, "weights.bin");
    put_message(&tensor, 13, &entry);
    put_number(&tensor, 14, 1);
    put_message(to, field, &tensor);
}

void model_weight(model *m, const char *name, const char *type)
{
    put_weight(current(m), 5, name, type);
}

void model_constant(model *m, const char *name, const char *type)
{
    buffer node = {0}, attribute = {0};
    put_text(&node, 2, name);
    put_text(&node, 4, "Constant");
    put_text(&attribute, 1, "value");
    put_weight(&attribute, 5, "", type);
    put_number(&attribute, 20, 4);
    put_message(&node, 5, &attribute);
    put_message(current(m), 1, &node);
}

/* An initializer with its data; the host is little-endian. A scalar where `count` is NULL. */
static void put_tensor(model *m, const char *name, int64_t dtype, const size_t *count,
                       const void *data, size_t size)
{
    buffer tensor = {0};
    if (count != NULL) put_number(&tensor, 1, (int64_t)*count);
    put_number(&tensor, 2, dtype);
    put_text(&tensor, 8, name);
    put_field(&tensor, 9, data, size);
    put_message(current(m), 5, &tensor);
}

void model_ints(model *m, const char *name, size_t count, const int64_t *values)
{
    put_tensor(m, name, 7, &count, values, count * sizeof *values);
}

void model_int(model *m, const char *name, int64_t value)
{
    put_tensor(m, name, 7, NULL, &value, sizeof value);
}

void model_bool(model *m, const char *name, bool value)
{
    put_tensor(m, name, 9, NULL, &value, 1);
}

void model_float(model *m, const char *name, float value)
{
    put_tensor(m, name, 1, NULL, &value, sizeof value);
}

void model_weight_data(model *m, const char *name, const char *type, const void *data, size_t bytes)
{
    buffer tensor = {0};
    int64_t dtype = parse_dtype(&type);
    void *zeros = calloc(1, bytes);
    assert_non_null(zeros);
    each_dim(type, add_tensor_dim, &tensor);
    put_number(&tensor, 2, dtype);
    put_text(&tensor, 8, name);
    put_field(&tensor, 9, data != NULL ? data : zeros, bytes);
    put_message(current(m), 5, &tensor);
    free(zeros);
}

/* --- Nodes ------------------------------------------------------------------------------------- */

static void put_names(buffer *node, unsigned field, const char *names)
{
    while (*names != '\0') {
        size_t length = strcspn(names, " ");
        bool absent = length == 1 && *names == '-';
        put_field(node, field, names, absent ? 0 : length);
        names += length;
        while (*names == ' ') names++;
    }
}

static void put_float(buffer *b, unsigned field, float value)
{
    put_varint(b, field << 3 | FIXED32);
    put(b, &value, sizeof value);
}

/* A list, a string or a number; returns where it ends. */
static const char *put_attribute_value(buffer *attribute, const char *text)
{
    char *end = NULL;
    if (*text == '\'') {
        size_t length = strcspn(text + 1, "'");
        put_field(attribute, 4, text + 1, length);
        put_number(attribute, 20, 3);
        return text + length + 2;
    }
    if (*text == '[') {
        for (text++; *text != ']'; text = *end == ',' ? end + 1 : end) {
            put_number(attribute, 8, strtoll(text, &end, 10));
            if (end == text) fail_msg("lists hold integers, not '%s'", text);
        }
        put_number(attribute, 20, 7);
        return text + 1;
    }
    size_t length = strcspn(text, " ");
    if (memchr(text, '.', length) != NULL) {
        put_float(attribute, 2, strtof(text, &end));
        put_number(attribute, 20, 1);
    } else {
        put_number(attribute, 3, strtoll(text, &end, 10));
        put_number(attribute, 20, 2);
    }
    return end;
}

static void put_note(buffer *message, unsigned field, const char *key, const char *value)
{
    buffer note = {0};
    put_text(&note, 1, key);
    put_text(&note, 2, value);
    put_message(message, field, &note);
}

void model_role(model *m, const char *name, const char *role)
{
    buffer info = {0};
    put_text(&info, 1, name);
    put_note(&info, 4, "pkg.torch.export.graph_signature.InputSpec.kind", role);
    put_message(current(m), 13, &info);
}

void model_folded(model *m, const char *name, const char *from)
{
    buffer info = {0};
    put_text(&info, 1, name);
    put_note(&info, 4, "pkg.onnxscript.optimizer.folded_from", from);
    put_message(current(m), 13, &info);
}

void model_note(model *m, const char *key, const char *value)
{
    put_note(&m->notes, 9, key, value);
}

void model_graph_note(model *m, const char *key, const char *value)
{
    put_note(current(m), 16, key, value);
}

void model_rules(model *m, const char *rules)
{
    snprintf(m->rules, sizeof m->rules, "%s", rules);
}

void model_parameters(model *m, const char *names)
{
    char text[1024] = "\n# inputs\n";
    size_t n = strlen(text);
    for (size_t length; *names != '\0'; names += length + (names[length] == ' ')) {
        length = strcspn(names, " ");
        char placeholder[256] = "";
        for (size_t i = 0; i < length && i + 1 < sizeof placeholder; i++)
            placeholder[i] = names[i] == '.' ? '_' : names[i];
        bool is_update = names[0] == '^', is_buffer = is_update || names[0] == '~';
        n += (size_t)snprintf(text + n, sizeof text - n, "%s_%s: %s target='%.*s'\n",
                              is_buffer ? "b" : "p", placeholder + is_buffer,
                              is_update   ? "BUFFER_MUTATION"
                              : is_buffer ? "BUFFER"
                                          : "PARAMETER",
                              (int)length - is_buffer, names + is_buffer);
        if (n >= sizeof text) fail_msg("too many names");
    }
    model_graph_note(m, "pkg.torch.export.ExportedProgram.graph_signature", text);
}

void model_node(model *m, const char *op_type, const char *name, const char *inputs,
                const char *outputs, const char *attributes)
{
    buffer node = {0};
    put_names(&node, 1, inputs);
    put_names(&node, 2, outputs);
    put_text(&node, 3, name);
    const char *colons = strstr(op_type, "::");
    put_text(&node, 4, colons != NULL ? colons + 2 : op_type);
    if (colons != NULL) put_field(&node, 7, op_type, (size_t)(colons - op_type));
    while (*attributes != '\0') {
        buffer attribute = {0};
        size_t length = strcspn(attributes, "=");
        put_field(&attribute, 1, attributes, length);
        attributes = put_attribute_value(&attribute, attributes + length + 1);
        put_message(&node, 5, &attribute);
        while (*attributes == ' ') attributes++;
    }
    buffer *subgraphs = &m->at[m->depth].subgraphs;
    put(&node, subgraphs->at, subgraphs->size);
    subgraphs->size = 0;
    if (m->source[0] != '\0') put_note(&node, 9, "pkg.torch.onnx.name_scopes", m->source);
    if (m->classes[0] != '\0') put_note(&node, 9, "pkg.torch.onnx.class_hierarchy", m->classes);
    if (m->trace[0] != '\0') put_note(&node, 9, "pkg.torch.onnx.stack_trace", m->trace);
    if (m->call[0] != '\0') put_note(&node, 9, "pkg.torch.onnx.fx_node", m->call);
    if (m->rules[0] != '\0') put_note(&node, 9, "pkg.onnxscript.rewriter.rule_name", m->rules);
    if (m->notes.size > 0) put(&node, m->notes.at, m->notes.size);
    m->source[0] = m->classes[0] = m->trace[0] = m->call[0] = m->rules[0] = '\0';
    m->notes.size = 0;
    put_message(current(m), 1, &node);
}

void model_begin(model *m, const char *attribute)
{
    assert_true(m->depth + 1 < MAX_DEPTH);
    char *name = m->at[++m->depth].attribute;
    snprintf(name, sizeof m->at->attribute, "%s", attribute);
}

void model_end(model *m)
{
    assert_true(m->depth > 0);
    open_graph *done = &m->at[m->depth--];
    buffer attribute = {0};
    assert_int_equal(done->subgraphs.size, 0); /* no node owns them */
    put_text(&done->graph, 2, done->attribute);
    put_text(&attribute, 1, done->attribute);
    put_message(&attribute, 6, &done->graph);
    put_number(&attribute, 20, 5);
    put_message(&m->at[m->depth].subgraphs, 5, &attribute);
}

void model_source(model *m, const char *module, const char *operation)
{
    snprintf(m->source, sizeof m->source, "['', '%s', '%s']", module, operation);
}

void model_class(model *m, const char *module_class, const char *aten)
{
    snprintf(m->classes, sizeof m->classes, "['Net', '%s', '%s']", module_class, aten);
}

void model_trace(model *m, const char *line)
{
    snprintf(m->trace, sizeof m->trace, "File \"net.py\", line 1, in forward\n    %s", line);
}

void model_inner_trace(model *m, unsigned graph, unsigned number, const char *line)
{
    snprintf(m->trace, sizeof m->trace, "File \"<eval_with_key>.%u\", line %u, in forward\n    %s",
             graph, number, line);
}

void model_statement(model *m, unsigned number, const char *line)
{
    snprintf(m->trace, sizeof m->trace,
             "File \"net.py\", line 3, in forward\n    return self.net(x)\n"
             "  File \"net.py\", line 9, in helper\n    x = y\n"
             "  File \"net.py\", line %u, in forward\n    %s",
             number, line);
}

void model_call(model *m, const char *operation, const char *arguments)
{
    const char *last = strrchr(m->source, ' '); /* " 'slice_1']" */
    const char *name = last != NULL ? last + 2 : "x";
    snprintf(
        m->call, sizeof m->call,
        "%%%.*s : [num_users=1] = call_function[target=torch.ops.%s](args = (%s), kwargs = {})",
        (int)strcspn(name, "'"), name, operation, arguments);
}

/* --- Models ------------------------------------------------------------------------------------ */

model *model_new(int64_t opset)
{
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->opset = opset;
    return m;
}

void model_free(model *m)
{
    for (unsigned i = 0; i < MAX_DEPTH; i++) {
        free(m->at[i].graph.at);
        free(m->at[i].subgraphs.at);
    }
    free(m->file.at);
    free(m->imports.at);
    free(m->notes.at);
    free(m);
}

void end_model(model **m)
{
    model_free(*m);
}

void model_import(model *m, const char *domain, int64_t version)
{
    buffer opset = {0};
    put_text(&opset, 1, domain);
    put_number(&opset, 2, version);
    put_message(&m->imports, 8, &opset);
}

const unsigned char *model_bytes(model *m, size_t *size)
{
    buffer opset = {0};
    assert_int_equal(m->depth, 0);
    m->file.size = 0;
    put_number(&m->file, 1, 8);
    put_text(&m->file, 2, "onnx_writer");
    put_field(&m->file, 7, m->at[0].graph.at, m->at[0].graph.size);
    put_number(&opset, 2, m->opset);
    put_message(&m->file, 8, &opset);
    if (m->imports.size > 0) put(&m->file, m->imports.at, m->imports.size);
    *size = m->file.size;
    return m->file.at;
}

onv_status model_try(model *m, const onv_options *options, onv_analysis **analysis,
                     onv_error *error)
{
    size_t size;
    const unsigned char *bytes = model_bytes(m, &size);
    return onv_analysis_new_from_memory(bytes, size, "test.onnx", options, analysis, error);
}

onv_analysis *model_analyse(model *m, const onv_options *options)
{
    onv_analysis *analysis;
    onv_error error;
    if (model_try(m, options, &analysis, &error) != ONV_OK)
        fail_msg("node '%s' (%s): %s", error.node, error.op_type, error.message);
    return analysis;
}

const char *model_shape(const onv_analysis *analysis, const char *name)
{
    onv_tensor_info info;
    for (size_t i = 0; onv_analysis_tensor(analysis, i, &info); i++)
        if (strcmp(info.name, name) == 0) return info.shape;
    fail_msg("no tensor '%s'", name);
    return "";
}
