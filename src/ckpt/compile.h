/* Training under torch.compile: what AOTAutograd's partition keeps, and what the step then takes.
 *
 * The network is compiled in one graph, the loss is not. Saved is what the partition (min_cut.h) of the
 * joint graph (joint.h) keeps. The peak is that of the eager program with these tensors kept in place of
 * those that operations of eager PyTorch save, each until the last operation of backward that needs it, and
 * with what compile_memory.h adds and moves: of results that a compiled kernel never writes some still stand there.
 */
#ifndef ONV_CKPT_COMPILE_H
#define ONV_CKPT_COMPILE_H

#include "eager/program.h"
#include "graph/liveness.h"

typedef struct onv_compiled_tensor {
    uint64_t bytes;
    const char *operation; /* PyTorch's name of what makes it, of the tape; NULL: an input */
    onv_node_id node;      /* ONV_NO_NODE: an input */
    onv_value_id value;    /* that it is of; ONV_NO_VALUE: of none */
} onv_compiled_tensor;

typedef struct onv_compiled {
    double budget;
    uint64_t saved_activation_bytes; /* of the network, and what the loss saves */
    uint64_t recomputed_macs;
    uint64_t pass_macs; /* of a forward and a backward, which counts as two forwards */
    uint64_t peak_bytes;
    const onv_compiled_tensor *saved; /* by the network; in the model's arena */
    uint32_t n_saved;
} onv_compiled;

/* A network that was traced once, to be divided at any budget. */
typedef struct onv_compiling onv_compiling;

/* Requires what onv_eager_lower does. What makes results less than exact goes on the model's list of
 * diagnostics. `model` must outlive it. Closing takes NULL. */
onv_status onv_compiling_open(onv_model *model, const onv_live *live, const bool *is_host,
                              const onv_train_options *options, onv_compiling **compiling,
                              onv_error *err);
void onv_compiling_close(onv_compiling *compiling);

/* Divides at the budget, and builds the program of training with it; its segments are not looked at. The
 * result is in the model's arena; labels of the program live until the next build. */
onv_status onv_compiling_build(onv_compiling *compiling, double budget,
                               const onv_train_options *options, onv_train_program *program,
                               const onv_compiled **result, onv_error *err);

#endif
