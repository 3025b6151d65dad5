/* Notes of PyTorch's exporter, in a model of two products: `h = x w`, `y = h c`. An input is the notes, with a byte 1 between:
 * first the list of parameters (or several, with a byte 2 between), of what c was computed, the name of h, then five notes of the first product and five of the second
 * one, which has those of the first where the input ends before. */
#include <string.h>

#include "fuzz/hold.h"
#include "fuzz/message.h"
#include "load/load.h"
#include "onnxvram/onnxvram.h"

enum { N_NOTES = 5, N_FIELDS = 3 + 2 * N_NOTES, MOST_LISTS = 4, MOST_BYTES = 20000, SEPARATOR = 1 };

static const char *const keys[N_NOTES] = {
    "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "pkg.torch.onnx.stack_trace",
    "pkg.torch.onnx.fx_node", "pkg.onnxscript.rewriter.rule_name"};

typedef struct notes {
    const uint8_t *at[N_FIELDS]; /* NULL: the input ends before */
    size_t size[N_FIELDS];
} notes;

static notes split(const uint8_t *data, size_t size)
{
    notes n = {{0}, {0}};
    for (unsigned i = 0; i < N_FIELDS && data != NULL; i++) {
        const uint8_t *end = size > 0 ? memchr(data, SEPARATOR, size) : NULL;
        n.at[i] = data;
        n.size[i] = end != NULL ? (size_t)(end - data) : size;
        data = end != NULL ? end + 1 : NULL;
        size -= end != NULL ? n.size[i] + 1 : size;
    }
    return n;
}

typedef struct parts {
    message model, graph, part, inner, deeper;
} parts;

/* float32[8, 8]. */
static void put_type(parts *p, unsigned field)
{
    for (unsigned i = 0; i < 2; i++) {
        put_number(&p->deeper, 1, 8);
        put_part(&p->inner, 1, &p->deeper);
    }
    put_number(&p->deeper, 1, 1);
    put_part(&p->deeper, 2, &p->inner);
    put_part(&p->inner, 1, &p->deeper);
    put_part(&p->part, field, &p->inner);
}

static void put_weight(parts *p, const char *name)
{
    static const uint8_t zeros[8 * 8 * sizeof(float)];
    put_number(&p->part, 1, 8);
    put_number(&p->part, 1, 8);
    put_number(&p->part, 2, 1);
    put_text(&p->part, 8, name);
    put_bytes(&p->part, 9, zeros, sizeof zeros);
    put_part(&p->graph, 5, &p->part);
}

/* The name of what both products share: a word of the input. */
static void put_middle(message *m, unsigned field, const notes *n)
{
    size_t size = n->size[2] < 64 ? n->size[2] : 64;
    bool is_text = size > 0;
    for (size_t i = 0; i < size; i++) is_text &= n->at[2][i] > ' ' && n->at[2][i] < 0x7f;
    if (is_text && (size > 1 || strchr("xywc", n->at[2][0]) == NULL))
        put_bytes(m, field, n->at[2], size);
    else
        put_text(m, field, "h");
}

static void put_product(parts *p, const notes *n, unsigned index)
{
    const unsigned first = 3 + index * N_NOTES;
    if (index == 0) put_text(&p->part, 1, "x");
    if (index == 1) put_middle(&p->part, 1, n);
    put_text(&p->part, 1, index == 0 ? "w" : "c");
    if (index == 0) put_middle(&p->part, 2, n);
    if (index == 1) put_text(&p->part, 2, "y");
    put_text(&p->part, 4, "MatMul");
    for (unsigned k = 0; k < N_NOTES; k++) {
        unsigned from = n->at[first + k] != NULL ? first + k : 3 + k;
        if (n->at[from] != NULL)
            put_note(&p->part, 9, keys[k], (const char *)n->at[from], n->size[from]);
    }
    put_part(&p->graph, 1, &p->part);
}

static void put_value(parts *p, unsigned field, const char *name)
{
    put_text(&p->part, 1, name);
    put_type(p, 2);
    put_part(&p->graph, field, &p->part);
}

/* The list of the graph; with a byte 2 in it, several of them. */
static void put_lists(parts *p, const notes *n)
{
    const uint8_t *at = n->at[0], *end = at != NULL ? at + n->size[0] : NULL;
    for (unsigned i = 0; i < MOST_LISTS && at != NULL; i++) {
        const uint8_t *stop = at < end ? memchr(at, SEPARATOR + 1, (size_t)(end - at)) : NULL;
        put_note(&p->graph, 16, "pkg.torch.export.ExportedProgram.graph_signature", at,
                 (size_t)((stop != NULL ? stop : end) - at));
        at = stop != NULL ? stop + 1 : NULL;
    }
}

static parts *make(const notes *n)
{
    static parts all; /* large, and only one model is made at a time */
    parts *p = &all;
    p->model.size = p->graph.size = 0;
    put_product(p, n, 0);
    put_product(p, n, 1);
    put_weight(p, "w");
    put_weight(p, "c");
    put_value(p, 11, "x");
    put_value(p, 12, "y");
    put_text(&p->part, 1, "w");
    put_note(&p->part, 4, "pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER", 9);
    put_part(&p->graph, 13, &p->part);
    put_text(&p->part, 1, "c");
    if (n->at[1] != NULL)
        put_note(&p->part, 4, "pkg.onnxscript.optimizer.folded_from", n->at[1], n->size[1]);
    put_part(&p->graph, 13, &p->part);
    put_lists(p, n);
    put_number(&p->model, 1, 10);
    put_number(&p->inner, 2, 18);
    put_part(&p->model, 8, &p->inner);
    put_part(&p->model, 7, &p->graph);
    return p;
}

static void load(const notes *n)
{
    onv_model model;
    onv_error error = {0};
    parts *p = make(n);
    onv_status status = onv_load_memory(p->model.at, p->model.size, NULL, NULL, &model, &error);
    if (status != ONV_OK)
        check_failure(status, &error);
    else
        onv_model_cleanup(&model);
}

void fuzz_run_notes(const uint8_t *data, size_t size)
{
    if (size > MOST_BYTES) return;
    notes n = split(data, size);
    load(&n);
}

/* All of it is the stack trace, and two modules are around the operation. */
void fuzz_run_statements(const uint8_t *data, size_t size)
{
    static const uint8_t scopes[] = "['', 'blocks.0', 'blocks.0.conv1', 'relu_1']",
                         classes[] = "['Net', 'Block', 'torch.nn.ReLU', 'aten.relu.default']";
    notes n = {{0}, {0}};
    if (size > MOST_BYTES) return;
    n.at[3] = scopes;
    n.size[3] = sizeof scopes - 1;
    n.at[4] = classes;
    n.size[4] = sizeof classes - 1;
    n.at[5] = data;
    n.size[5] = size;
    load(&n);
}

/* What training makes of the notes: parameters that are listed, and what constants were computed of. */
void fuzz_run_terms(const uint8_t *data, size_t size)
{
    if (size > MOST_BYTES) return;
    notes n = split(data, size);
    parts *p = make(&n);
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    onv_error error;
    options.train = "sgd";
    options.runtimes = "ideal";
    onv_status status =
        onv_analysis_new_from_memory(p->model.at, p->model.size, NULL, &options, &analysis, &error);
    if (status != ONV_OK)
        check_failure(status, &error);
    else
        onv_analysis_destroy(analysis);
}
