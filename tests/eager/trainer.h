/* A model taken as far as training, for tests: loaded, inferred, lowered. */
#ifndef ONV_TESTS_TRAINER_H
#define ONV_TESTS_TRAINER_H

#include "ckpt/training.h"
#include "lower/lower.h"
#include "support/onnx_writer.h"

typedef struct trainer {
    onv_model model;
    onv_live live;
    bool *is_host;
} trainer;

/* Fail the test where the model cannot be read. */
void trainer_open(trainer *t, const char *path, const onv_options *options);
/* That of samples/, at so many images of 64 x 64 where their size is free. */
void trainer_open_sample(trainer *t, const char *name, int64_t batch);
void trainer_open_model(trainer *t, model *m);
void trainer_close(trainer *t);
/* Closed at the end of its block. */
#define OWNED_TRAINER __attribute__((cleanup(trainer_close))) trainer

/* The tape; fails the test where there is none. */
void trainer_lower(trainer *t, const onv_lower_options *options, onv_eager *eager);
#define OWNED_EAGER __attribute__((cleanup(onv_eager_cleanup))) onv_eager

/* Saved bytes under these options. */
uint64_t trainer_saved(trainer *t, const onv_lower_options *options);

/* The same of a model that is used for nothing else: frees it. */
uint64_t trainer_kept(model *m, const onv_lower_options *options);

/* Opens the model, and trains it by SGD. */
onv_training_figures trainer_sgd(trainer *t, model *m, const onv_lower_options *options);
#define TRAINED(t, m, ...) trainer_sgd((t), (m), &(onv_lower_options){__VA_ARGS__})

/* The whole result; fails the test where there is none. */
onv_training trainer_run(trainer *t, const onv_train_options *options);
onv_training trainer_compute(trainer *t, const onv_training_options *options);

#endif
