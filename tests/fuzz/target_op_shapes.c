/* Files of --op-shapes: read, and then used in a model that has a node of every declared operator. */
#include <string.h>
#include <unistd.h>

#include "fuzz/hold.h"
#include "fuzz/message.h"
#include "onnxvram/onnxvram.h"
#include "ops/op_shapes.h"

enum { MOST_NODES = 8 };

typedef struct parts {
    message model, graph, node, inner, deeper;
} parts;

static void put_attribute(parts *p, const char *name, bool is_list)
{
    put_text(&p->inner, 1, name);
    put_number(&p->inner, 20, is_list ? 7 : 2);
    for (uint64_t i = 0; i < (is_list ? 4 : 1); i++) put_number(&p->inner, is_list ? 8 : 3, i + 2);
    put_part(&p->node, 5, &p->inner);
}

static void put_node(parts *p, const onv_custom_op *custom, unsigned number)
{
    /* A tensor with a free dim, one with contents, a scalar, an absent input. */
    static const char *const inputs[] = {"x", "shape", "n", ""};
    char name[32];
    for (uint32_t i = 0; i < custom->n_inputs; i++) put_text(&p->node, 1, inputs[i % 4]);
    for (uint32_t i = 0; i < custom->n_outs; i++) {
        snprintf(name, sizeof name, "y%u.%u", number, (unsigned)i);
        put_text(&p->node, 2, name);
    }
    put_text(&p->node, 4, custom->row.name);
    put_text(&p->node, 7, custom->domain);
    put_attribute(p, "size", false);
    put_attribute(p, "k", false);
    put_attribute(p, "pads", true);
    put_part(&p->graph, 1, &p->node);
}

/* float32[n, 3, 8]. */
static void put_input(parts *p)
{
    put_text(&p->inner, 2, "n");
    put_part(&p->deeper, 1, &p->inner);
    for (uint64_t dim = 3; dim <= 8; dim += 5) {
        put_number(&p->inner, 1, dim);
        put_part(&p->deeper, 1, &p->inner);
    }
    put_number(&p->inner, 1, 1);
    put_part(&p->inner, 2, &p->deeper);
    put_part(&p->deeper, 1, &p->inner); /* TypeProto.tensor_type */
    put_text(&p->node, 1, "x");
    put_part(&p->node, 2, &p->deeper);
    put_part(&p->graph, 11, &p->node);
}

static void put_ints(parts *p, const char *name, const int64_t *values, size_t count, bool scalar)
{
    if (!scalar) put_number(&p->node, 1, count);
    put_number(&p->node, 2, 7);
    put_text(&p->node, 8, name);
    put_bytes(&p->node, 9, values, count * sizeof *values);
    put_part(&p->graph, 5, &p->node);
}

static void put_opset(parts *p, const char *domain)
{
    put_text(&p->inner, 1, domain);
    put_number(&p->inner, 2, 17);
    put_part(&p->model, 8, &p->inner);
}

static void make_model(parts *p, const onv_op_shapes *table)
{
    static const int64_t shape[] = {2, -1, 5}, n[] = {4};
    put_number(&p->model, 1, 8);
    put_opset(p, "");
    unsigned number = 0;
    for (const onv_custom_op *t = table->first; t != NULL && number < MOST_NODES; t = t->next) {
        put_node(p, t, number++);
        if (t->domain[0] != '\0') put_opset(p, t->domain);
    }
    put_ints(p, "shape", shape, 3, false);
    put_ints(p, "n", n, 1, true);
    put_input(p);
    put_part(&p->model, 7, &p->graph);
}

/* The table as a user gives it: as a file. */
static void use(const uint8_t *data, size_t size, const message *model)
{
    char path[FUZZ_PATH];
    int fd = fuzz_as_file(data, size, path);
    onv_options options = onv_options_default();
    options.op_shapes_file = path;
    options.runtimes = "ideal"; /* the table decides shapes alone */
    options.batch = size % 2 == 0 ? 2 : 0;
    onv_analysis *analysis;
    onv_error error;
    onv_status status =
        onv_analysis_new_from_memory(model->at, model->size, NULL, &options, &analysis, &error);
    if (status != ONV_OK)
        check_failure(status, &error);
    else
        onv_analysis_destroy(analysis);
    close(fd);
}

void fuzz_run_op_shapes(const uint8_t *data, size_t size)
{
    onv_arena arena;
    onv_error error = {0};
    onv_op_shapes table = {0};
    if (size > ONV_CUSTOM_OP_MAX_LINE) return; /* so that the names fit the model */
    onv_arena_init(&arena, (size_t)64 << 20);
    onv_status status =
        onv_op_shapes_parse(&table, &arena, "declared", (const char *)data, size, &error);
    if (status != ONV_OK) {
        check_failure(status, &error);
    } else {
        static parts p; /* large, and only one model is made at a time */
        p.model.size = 0;
        make_model(&p, &table);
        use(data, size, &p.model);
    }
    onv_arena_cleanup(&arena);
}
