/* ai.onnx.preview.training: optimizers as operators, and gradients. */
#include "ops/rules.h"

#include <string.h>

/* How many tensors an optimizer takes per parameter: the parameter, its gradient, its states. */
static uint32_t group_size(const onv_op_ctx *c)
{
    return strcmp(c->op->name, "Adam") == 0 ? 4 : 3;
}

/* Inputs: rate, step, then the parameters, all their gradients, and all their states, state by
 * state. Outputs: the new parameters and the new states. */
static onv_status infer_optimizer(onv_op_ctx *c)
{
    uint32_t group = group_size(c), n = (c->n_in - 2) / group;
    if ((c->n_in - 2) % group != 0 || c->n_out != n * (group - 1))
        return onv_op_fail(c, "%u tensors in and %u out are not multiples of %u and %u",
                           c->n_in - 2, c->n_out, group, group - 1);
    for (uint32_t i = 0; i < c->n_in - 2; i++) {
        uint32_t parameter = 2 + i % n, other = 2 + i;
        int rank = onv_op_in_rank(c, parameter);
        if (rank >= 0) ONV_TRY(onv_tensor_need_rank(c, other, rank, rank));
        for (int axis = 0; axis < rank; axis++) {
            onv_dim dim = onv_op_in_dim(c, parameter, axis);
            ONV_TRY(onv_tensor_unify(c, "dims of a parameter, its gradient and states", &dim,
                                     onv_op_in_dim(c, other, axis)));
        }
    }
    for (uint32_t k = 0; k < c->n_out; k++) {
        uint32_t from = 2 + (k < n ? k : k + n);
        onv_op_set_out_like(c, k, from, onv_op_in_dtype(c, from));
    }
    return ONV_OK;
}

/* Output i: the gradient with respect to xs[i], the value of which is input i. */
static onv_status infer_gradient(onv_op_ctx *c)
{
    const onv_attr *xs = onv_op_attr(c, "xs"), *zs = onv_op_attr(c, "zs");
    uint32_t n = xs != NULL ? xs->count : 0, others = zs != NULL ? zs->count : 0;
    if (c->n_out > n || (uint64_t)n + others != c->n_in)
        return onv_op_fail(c, "%u xs and %u zs for %u inputs and %u outputs", n, others, c->n_in,
                           c->n_out);
    for (uint32_t k = 0; k < c->n_out; k++) onv_op_set_out_like(c, k, k, onv_op_in_dtype(c, k));
    return ONV_OK;
}

#define MANY ONV_OP_MAX_ARITY

static const onv_op rows[] = {
    ONV_OP("Adagrad", 1, 3, MANY, 1, MANY, infer_optimizer),
    ONV_OP("Adam", 1, 3, MANY, 1, MANY, infer_optimizer),
    ONV_OP("Momentum", 1, 3, MANY, 1, MANY, infer_optimizer),
    ONV_OP("Gradient", 1, 1, MANY, 1, MANY, infer_gradient),
};

const onv_op_family onv_ops_training = {"ai.onnx.preview.training", rows,
                                        sizeof rows / sizeof rows[0]};
