/* Tensor data in other files.
 *
 * What such a file holds can decide shapes, and shapes are shown: a model must not be able to spell
 * files that are not its own. So the file is called as exporters call weights, lies in the model's
 * folder (which is not the root, nor on procfs, sysfs and the like), is reached without links but the
 * ones of download caches, and is known to be a regular file before it is opened. */
#ifndef ONV_LOAD_EXTERNAL_H
#define ONV_LOAD_EXTERNAL_H

#include "ir/model.h"

/* Reads the first `bytes` bytes of the tensor's external data. *unread is NULL where they were read;
 * else the status is OK where the file is absent ("") or is not to be read by its name, its place or
 * model->no_external_data (the reason). ONV_ERR_MODEL: the file lies outside the folder or is too
 * short; ONV_ERR_IO: it cannot be read. */
onv_status onv_external_read(const onv_model *model, const onv_tensor *tensor, void *to,
                             size_t bytes, const char **unread, onv_error *err);

#endif
