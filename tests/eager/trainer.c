#include "eager/trainer.h"

#include "graph/storage.h"
#include "infer/infer.h"
#include "ir/check.h"
#include "load/load.h"
#include "lower/lower.h"
#include "support/test.h"

static void finish(trainer *t, onv_status status, const onv_options *options, onv_error *err)
{
    onv_infer_info info = {0};
    if (status == ONV_OK) status = onv_graph_check(&t->model, err);
    if (status == ONV_OK) status = onv_infer(&t->model, options, &info, err);
    onv_infer_info_cleanup(&info);
    if (status == ONV_OK) status = onv_live_compute(&t->model, NULL, &t->live, err);
    if (status == ONV_OK) status = onv_mark_host_values(&t->model, &t->live, &t->is_host, err);
    if (status != ONV_OK) fail_msg("%s (%s)", err->message, err->node);
}

void trainer_open(trainer *t, const char *path, const onv_options *options)
{
    onv_error err = {0};
    onv_limits limits = {0};
    finish(t, onv_load(path, &limits, &t->model, &err), options, &err);
}

void trainer_open_model(trainer *t, model *m)
{
    onv_error err = {0};
    onv_limits limits = {0};
    onv_options options = onv_options_default();
    size_t size;
    const unsigned char *bytes = model_bytes(m, &size);
    finish(t, onv_load_memory(bytes, size, NULL, &limits, &t->model, &err), &options, &err);
}

void trainer_open_sample(trainer *t, const char *name, int64_t batch)
{
    char path[1024];
    const int64_t dims[] = {batch, 3, 64, 64};
    onv_shape_binding shape = {"input", dims, 4};
    onv_options options = onv_options_default();
    options.batch = batch;
    if (strstr(name, "unet") != NULL) {
        options.batch = 0;
        options.shapes = &shape;
        options.n_shapes = 1;
    }
    snprintf(path, sizeof path, ONV_SOURCE_DIR "/samples/%s.onnx", name);
    trainer_open(t, path, &options);
}

void trainer_close(trainer *t)
{
    onv_model_cleanup(&t->model);
}

void trainer_lower(trainer *t, const onv_lower_options *options, onv_eager *eager)
{
    onv_error err = {0};
    if (onv_eager_lower(&t->model, &t->live, t->is_host, options, eager, &err) != ONV_OK)
        fail_msg("%s (%s)", err.message, err.node);
}

uint64_t trainer_saved(trainer *t, const onv_lower_options *options)
{
    onv_error err = {0};
    onv_eager eager;
    uint64_t bytes = 0;
    onv_status status = onv_eager_lower(&t->model, &t->live, t->is_host, options, &eager, &err);
    if (status == ONV_OK) status = onv_eager_check(&eager, &err);
    if (status == ONV_OK) status = onv_eager_saved(&t->model, &eager, &bytes, NULL, &err);
    onv_eager_cleanup(&eager);
    if (status != ONV_OK) fail_msg("%s (%s)", err.message, err.node);
    return bytes;
}

uint64_t trainer_kept(model *m, const onv_lower_options *options)
{
    trainer t;
    trainer_open_model(&t, m);
    uint64_t kept = trainer_saved(&t, options);
    trainer_close(&t);
    model_free(m);
    return kept;
}

onv_training trainer_run(trainer *t, const onv_train_options *options)
{
    return trainer_compute(t, &(onv_training_options){.train = *options});
}

onv_training trainer_compute(trainer *t, const onv_training_options *options)
{
    onv_error err = {0};
    onv_training result;
    if (onv_training_compute(&t->model, &t->live, options, &result, &err) != ONV_OK)
        fail_msg("%s (%s)", err.message, err.node);
    return result;
}

onv_training_figures trainer_sgd(trainer *t, model *m, const onv_lower_options *options)
{
    const onv_train_options how = {.optimizer = onv_optimizer_find("sgd"), .lower = *options};
    trainer_open_model(t, m);
    return trainer_run(t, &how).figures;
}
