/* The one number in a tensor attribute, such as the value of ConstantOfShape. */
#ifndef ONV_OPS_GENERATOR_H
#define ONV_OPS_GENERATOR_H

#include "ops/op.h"

/* The first element of a stored tensor; unknown where there is none, or of a type that is not
 * tracked. Reads a few bytes of what the payload says is there. */
onv_scalar onv_tensor_first(const onv_tensor *tensor);

#endif
