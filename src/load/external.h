/* Tensor data in other files, which stay inside the model's folder. */
#ifndef ONV_LOAD_EXTERNAL_H
#define ONV_LOAD_EXTERNAL_H

#include "ir/model.h"

/* Reads the first `bytes` bytes of the tensor's external data. *found is false (and the status OK)
 * where the file is absent. ONV_ERR_MODEL: the file lies outside the folder (links are followed
 * first) or is too short; ONV_ERR_IO: it cannot be read. */
onv_status onv_external_read(const onv_model *model, const onv_tensor *tensor, void *to,
                             size_t bytes, bool *found, onv_error *err);

#endif
