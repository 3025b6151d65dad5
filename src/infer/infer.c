#include "infer/infer.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "infer/driver.h"
#include "load/limits.h"
#include "load/load.h"

/* Inference may run bodies of loops again, a few times per level of nesting; this many node runs
 * per node, and those of the limit, end a hostile nest. */
enum { RUNS_PER_NODE = 64 };

/* Nodes that loops run iteration by iteration may infer, in all. */
enum { UNROLLED_NODES = 1 << 16 };

void onv_infer_info_cleanup(onv_infer_info *info)
{
    onv_vec_cleanup(&info->bounds);
    onv_vec_cleanup(&info->free_dims);
    onv_vec_cleanup(&info->data_dims);
}

/* A Constant's or an initializer's type is that of its tensor. */
static void type_constants(onv_model *model)
{
    for (size_t i = 0; i < model->values.count; i++) {
        onv_value *value = &model->values.at[i];
        if (value->tensor != NULL) value->type = value->tensor->type;
    }
}

/* Whatever a run left in a graph that turned out never to run. */
static void clear_graph(onv_model *model, const onv_graph *graph)
{
    for (uint32_t k = 0; k < graph->n_inputs; k++)
        onv_driver_clear_value(onv_model_value(model, graph->inputs[k]));
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        onv_driver_clear_node(model, onv_model_node(model, graph->nodes[i]));
}

/* What is inside a graph that never runs never runs. Graphs come after the graph of their owner. */
static void spread_never_runs(onv_model *model)
{
    for (size_t g = 1; g < model->graphs.count; g++) {
        onv_graph *graph = &model->graphs.at[g];
        if (!onv_is_node(graph->owner)) continue;
        const onv_node *owner = onv_model_node(model, graph->owner);
        if (onv_model_graph(model, owner->graph)->never_runs) graph->never_runs = true;
        if (graph->never_runs) clear_graph(model, graph);
    }
}

/* --- Weights ----------------------------------------------------------------------------------- */

enum { READ = 1, READ_IN_DROPPED = 2 };

static void note(uint8_t *reads, onv_value_id id, bool dropped)
{
    if (onv_is_value(id)) reads[id.index] |= dropped ? READ_IN_DROPPED : READ;
}

/* A few initializers, as the scales of a Resize, do not make Constant nodes numbers in the code. */
enum { MORE_IN_CONSTANTS = 10 };

/* Where nearly all numbers are in Constant nodes, the parameters are. */
static void find_parameters(onv_model *model)
{
    uint64_t elems[2] = {0};
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (!onv_value_is_weight(value) || value->tensor == NULL) continue;
        const onv_tensor *tensor = value->tensor;
        if (!onv_dtype_is_float((onv_dtype)tensor->type.dtype) || tensor->elems < 2) continue;
        uint64_t *sum = &elems[value->kind == ONV_VALUE_CONSTANT];
        *sum = onv_u64_plus(*sum, tensor->elems);
    }
    /* PyTorch writes no parameter there, but zeros and tables of the code. */
    bool by_pytorch = strncmp(model->producer, "pytorch", strlen("pytorch")) == 0;
    model->trains_constants =
        !by_pytorch && elems[1] > 0 && elems[0] <= elems[1] / MORE_IN_CONSTANTS;
}

/* Marks the weights that no run holds: those of branches that cannot be taken, and those outside that only such branches
 * read. One that nothing reads at all stays: it is in the file, and runtimes load it. */
static onv_status drop_weights(onv_driver *driver)
{
    onv_model *model = driver->model;
    find_parameters(model);
    bool any = false;
    for (size_t g = 0; g < model->graphs.count; g++) any |= model->graphs.at[g].never_runs;
    if (!any) return ONV_OK;
    uint8_t *reads = ONV_ARENA_ARRAY(&driver->scratch, uint8_t, model->values.count);
    if (reads == NULL) return onv_fail_memory(driver->err);
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        bool dropped = onv_model_graph(model, node->graph)->never_runs;
        for (uint32_t k = 0; k < node->n_inputs; k++) note(reads, node->inputs[k], dropped);
    }
    for (size_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        for (uint32_t k = 0; k < graph->n_outputs; k++)
            note(reads, graph->outputs[k], graph->never_runs);
    }
    for (size_t i = 0; i < model->values.count; i++) {
        onv_value *value = &model->values.at[i];
        if (!onv_value_is_weight(value)) continue; /* inputs are fed, and what runs gives values */
        value->is_dropped =
            onv_model_graph(model, value->graph)->never_runs || reads[i] == READ_IN_DROPPED;
    }
    return ONV_OK;
}

/* --- Sizes ------------------------------------------------------------------------------------- */

/* How many elements there are, at most; 0: that does not matter, or the type has none. Unknown: nobody can say. */
static onv_dim elems_of(onv_model *model, const onv_type *type)
{
    if (onv_type_is_on_host(type)) return onv_dim_const(0);
    if (type->kind != ONV_TYPE_TENSOR && type->kind != ONV_TYPE_SPARSE_TENSOR)
        return type->kind != ONV_TYPE_UNKNOWN ? onv_dim_const(0) : ONV_DIM_UNKNOWN;
    onv_dim elems = onv_type_elems(&model->dims, type);
    return onv_dim_is_known(elems) ? onv_dim_substitute_bounds(&model->dims, elems) : elems;
}

typedef struct data_list {
    const onv_dims *dims;
    onv_infer_info *info;
} data_list;

static void note_data_dim(void *context, onv_dim symbol)
{
    enum { MOST = 8 };
    const data_list *list = context;
    onv_infer_info *info = list->info;
    const char *name = onv_dim_symbol_name(list->dims, symbol);
    bool is_known = info->data_dims.count == MOST;
    for (size_t i = 0; i < info->free_dims.count && !is_known; i++)
        is_known = strcmp(info->free_dims.at[i].name, name) == 0;
    for (size_t i = 0; i < info->data_dims.count && !is_known; i++)
        is_known = strcmp(info->data_dims.at[i], name) == 0;
    if (!is_known) (void)onv_vec_push(&info->data_dims, name); /* else the list is shorter */
}

/* The first node (in order) that had sized inputs and gave an output without a size is the cause
 * of those that hang on it. */
void onv_infer_find_unknown(onv_model *model, onv_infer_info *info)
{
    data_list list = {&model->dims, info};
    for (size_t g = 0; g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        for (uint32_t i = 0; i < graph->n_nodes && !graph->never_runs; i++) {
            const onv_node *node = onv_model_node(model, graph->nodes[i]);
            for (uint32_t k = 0; k < node->n_outputs; k++) {
                const onv_value *value = onv_node_output(model, node, k);
                onv_dim elems = value != NULL ? elems_of(model, &value->type) : onv_dim_const(0);
                if (onv_dim_is_const(elems)) continue;
                onv_dim_each_symbol(&model->dims, elems, note_data_dim, &list);
                if (onv_dim_is_known(elems)) continue;
                info->unknown_values++;
                if (info->unknown_cause != NULL) continue;
                info->unknown_cause = node->op_type;
                info->unknown_node = node->name;
            }
        }
    }
}

static void start_graphs(onv_driver *driver)
{
    onv_model *model = driver->model;
    for (size_t g = 0; g < model->graphs.count; g++) {
        model->graphs.at[g].never_runs = false;
        model->graphs.at[g].trips = onv_dim_const(1);
    }
    driver->unroll = (onv_op_unroll){.nodes_left = UNROLLED_NODES};
}

/* Runs again where the first run made a size that is bound by the name the file gives it. */
static onv_status run_graphs(onv_driver *driver)
{
    onv_diag_mark mark = onv_driver_mark(driver);
    bool again = false;
    start_graphs(driver);
    if (driver->rebatch.needed)
        ONV_TRY(onv_rebatch_run(driver));
    else
        ONV_TRY(onv_driver_run_graph(driver, (onv_graph_id){0}));
    for (;;) {
        ONV_TRY(onv_bind_made(driver, &again));
        if (!again) break;
        onv_driver_rewind(driver, mark);
        driver->runs = 0;
        start_graphs(driver);
        ONV_TRY(onv_driver_run_graph(driver, (onv_graph_id){0}));
    }
    if (driver->rebatch.needed) ONV_TRY(onv_rebatch_store(driver));
    onv_rebatch_tell(driver);
    return ONV_OK;
}

bool onv_infer_has_sizes(const onv_options *options)
{
    return options->batch != 0 || options->n_dims > 0 || options->n_shapes > 0 ||
           options->n_input_values > 0;
}

/* Constants of the file may hold the sizes that it was exported for. */
static onv_status run_sized(onv_driver *driver)
{
    onv_status status = run_graphs(driver);
    char *message = driver->err->message;
    size_t length = strlen(message);
    if (status == ONV_ERR_MODEL && driver->refixed != NULL)
        snprintf(message + length, sizeof driver->err->message - length,
                 "; --shape gives another size to %s: export the model with dynamic_shapes for it",
                 driver->refixed);
    return status;
}

static onv_status run(onv_driver *driver)
{
    onv_model *model = driver->model;
    const onv_options *options = driver->options;
    driver->may_contradict = options == NULL || (!options->strict && !onv_infer_has_sizes(options));
    if (!onv_op_index_init(&driver->index, &model->arena)) return onv_fail_memory(driver->err);
    if (options != NULL && options->op_shapes_file != NULL)
        ONV_TRY(onv_op_shapes_load(&driver->op_shapes, &model->arena, options->op_shapes_file,
                                   driver->err));
    onv_limits limits = onv_limits_resolve(options != NULL ? options->limits : NULL);
    driver->max_runs = limits.node_runs + (uint64_t)model->nodes.count * RUNS_PER_NODE;
    if (driver->max_runs < limits.node_runs) driver->max_runs = UINT64_MAX;
    type_constants(model);
    ONV_TRY(onv_driver_name_others(driver, false));
    ONV_TRY(onv_bind_inputs(driver));
    ONV_TRY(run_sized(driver));
    ONV_TRY(onv_driver_name_others(driver, true));
    spread_never_runs(model);
    ONV_TRY(drop_weights(driver));
    onv_infer_find_unknown(model, driver->info);
    onv_note_deciders(driver);
    ONV_TRY(onv_note_mixed_types(driver));
    if (model->dims.failed || model->arena.failed) return onv_fail_memory(driver->err);
    return ONV_OK;
}

onv_status onv_driver_open(onv_driver *driver, onv_model *model, onv_error *err)
{
    *driver = (onv_driver){
        .model = model, .max_runs = UINT64_MAX, .failed_node = ONV_NO_NODE, .err = err};
    if (!onv_op_index_init(&driver->index, &model->arena)) return onv_fail_memory(err);
    onv_arena_init(&driver->scratch, model->arena.limit_bytes);
    return ONV_OK;
}

void onv_driver_close(onv_driver *driver)
{
    onv_arena_cleanup(&driver->scratch);
    onv_vec_cleanup(&driver->unknown_ops);
    onv_ptr_map_cleanup(&driver->unknown_at);
    onv_dims_enter(&driver->model->dims, UINT32_MAX);
}

static void close_bindings(onv_driver *driver, onv_status status)
{
    onv_driver_close(driver);
    onv_vec_cleanup(&driver->declared_only);
    onv_vec_cleanup(&driver->given);
    driver->model->dims.given = NULL;
    driver->model->dims.n_given = 0;
    onv_rebatch_cleanup(&driver->rebatch);
    if (status != ONV_OK) onv_infer_info_cleanup(driver->info);
}

static onv_driver open_bindings(onv_model *model, const onv_options *options, onv_infer_info *info,
                                onv_error *err)
{
    onv_driver driver = {
        .model = model, .options = options, .info = info, .failed_node = ONV_NO_NODE, .err = err};
    *info = (onv_infer_info){0};
    onv_arena_init(&driver.scratch, model->arena.limit_bytes);
    return driver;
}

onv_status onv_infer(onv_model *model, const onv_options *options, onv_infer_info *info,
                     onv_error *err)
{
    onv_error local = {0}; /* rules need somewhere to fail into */
    onv_driver driver = open_bindings(model, options, info, err != NULL ? err : &local);
    onv_status status = run(&driver);
    close_bindings(&driver, status);
    return status;
}

static onv_status bind_view(onv_driver *driver)
{
    ONV_TRY(onv_bind_inputs(driver));
    if (driver->given.count > 0)
        return onv_fail(driver->err, ONV_ERR_USAGE,
                        "--dim: '%s' is not a symbol of the program; --dump=program lists them",
                        driver->given.at[0].name);
    if (!driver->rebatch.needed) return ONV_OK;
    return onv_fail(
        driver->err, ONV_ERR_USAGE,
        "--batch %lld: the program was exported with a fixed batch of %lld; export it with "
        "dynamic_shapes={\"x\": {0: torch.export.Dim.DYNAMIC}}, where x is the input's name",
        (long long)driver->options->batch, (long long)driver->rebatch.old);
}

onv_status onv_infer_bind(onv_model *model, const onv_options *options, onv_infer_info *info,
                          const onv_dim **sizes, onv_error *err)
{
    onv_driver driver = open_bindings(model, options, info, err);
    onv_status status = bind_view(&driver);
    *sizes = driver.symbol_values;
    close_bindings(&driver, status);
    return status;
}

static bool is_castable(uint8_t dtype)
{
    return dtype == ONV_FLOAT || dtype == ONV_DOUBLE || dtype == ONV_FLOAT16 ||
           dtype == ONV_BFLOAT16;
}

static bool is_16_bit(uint8_t dtype)
{
    return dtype == ONV_FLOAT16 || dtype == ONV_BFLOAT16;
}

/* By elements. */
static bool has_low_weights(const onv_model *model)
{
    double low = 0, all = 0;
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (value->tensor == NULL || !is_castable(value->type.dtype)) continue;
        all += (double)value->tensor->elems;
        if (is_16_bit(value->type.dtype)) low += (double)value->tensor->elems;
    }
    return low > all / 2;
}

onv_status onv_infer_cast_floats(onv_model *model, onv_dtype to, onv_error *err)
{
    if (to == ONV_UNDEFINED) return ONV_OK;
    bool keeps_wide = is_16_bit((uint8_t)to) && has_low_weights(model);
    for (size_t i = 0; i < model->values.count; i++) {
        onv_value *value = &model->values.at[i];
        if (value->type.kind != ONV_TYPE_TENSOR || !is_castable(value->type.dtype)) continue;
        if (keeps_wide && !is_16_bit(value->type.dtype)) continue;
        value->type.dtype = (uint8_t)to;
        if (value->tensor == NULL) continue;
        onv_tensor *copy = onv_arena_copy(&model->arena, value->tensor, sizeof *copy);
        if (copy == NULL) return onv_fail_memory(err);
        if (!onv_dtype_bytes(to, copy->elems, &copy->bytes))
            return onv_fail(err, ONV_ERR_OVERFLOW, "the bytes of '%s' do not fit 64 bits",
                            value->name);
        copy->type.dtype = (uint8_t)to;
        value->tensor = copy;
    }
    return ONV_OK;
}
