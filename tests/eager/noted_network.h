/* Networks as the newer exporter writes them, with notes of modules and calls. */
#ifndef ONV_TESTS_EAGER_NOTED_NETWORK_H
#define ONV_TESTS_EAGER_NOTED_NETWORK_H

#include <stdint.h>

#include "eager/trainer.h"

enum { MAX_NODES = 12 };

typedef struct call {
    const char *op, *inputs, *output, *attributes;
    const char *module, *call, *class, *aten; /* module NULL: not noted */
} call;

#define LINEAR "torch.nn.modules.linear.Linear"
#define CONV   "torch.nn.modules.conv.Conv2d"

typedef struct network {
    const char *listed;  /* parameters */
    const char *weights; /* of the file: names and types */
    call calls[MAX_NODES];
} network;

typedef struct outcome {
    onv_training_figures figures;
    char text[1024];
    char factors[512]; /* what is said of constants that the exporter computed */
} outcome;

/* x is [4, 8], the result y. */
model *network_model(const network *n);
/* One node of a module "net", called as it is named. */
void add_call(model *m, const char *op, const char *inputs, const char *output, const char *name);

/* Trains it. */
outcome run(const network *n);
outcome run_with(const network *n, uint64_t parameters);

/* A weight of a linear layer has a made-up name; the bias beside it may be gone. */
#define FC                                                                                         \
    {                                                                                              \
        "MatMul", "x val_1", "h", "", "fc", "linear", LINEAR, "aten.linear.default"                \
    }

#endif
