/* An ONNX file becomes a model.
 *
 * The file is read where something is looked for (source.h). A scan of the wire format makes records
 * of graphs, nodes, values and tensors, whose weights are never read, and hands protobuf-c attributes and types,
 * one at a time. The scan also bounds nesting and counts before protobuf-c recurses or allocates.
 *
 * Names: values and nodes of the main graph are called as in the file; those of subgraphs and of the
 * bodies of functions carry the way there: "If_3/then_branch/x", "call/inner". A node without a name
 * stands in such a path as its operator and its place.
 *
 * Requires: a path. Gives: a model whose names are resolved, functions expanded, graphs not yet
 * checked (onv_graph_check). The model owns the open file (released by onv_model_cleanup).
 * Errors: ONV_ERR_IO (cannot be opened), ONV_ERR_FORMAT (not protobuf, truncated, no graph),
 * ONV_ERR_MODEL (undefined or doubly defined names ...), ONV_ERR_LIMIT.
 */
#ifndef ONV_LOAD_LOAD_H
#define ONV_LOAD_LOAD_H

#include "ir/model.h"
#include "load/source.h"
#include "onnxvram/options.h"

/* Initialises `model` and fills it. On failure the model is already cleaned up. */
onv_status onv_load(const char *path, const onv_limits *limits, onv_model *model, onv_error *err);

/* The same, and how the file is to be read. */
onv_status onv_load_from(const char *path, onv_source_how how, const onv_limits *limits,
                         onv_model *model, onv_error *err);

/* The file of a model once more, which outlives the new one. */
onv_status onv_load_again(const onv_model *from, const onv_limits *limits, onv_model *model,
                          onv_error *err);

/* The same from memory that outlives the model; `path` is used in messages and to find external
 * data, and may be NULL. */
onv_status onv_load_memory(const void *data, size_t bytes, const char *path,
                           const onv_limits *limits, onv_model *model, onv_error *err);

/* Reads the contents of a small tensor into `model`'s arena: integer, bool and float types of at
 * most ONV_KNOWN_MAX_ELEMS elements. *known is NULL (and the status OK) where the contents are not
 * there: too large, strings, an external file that is absent. Malformed payloads (shorter than the
 * dims ask) are ONV_ERR_MODEL. */
onv_status onv_load_known(onv_model *model, const onv_tensor *tensor, const onv_known **known,
                          onv_error *err);

/* The first `bytes` bytes of the tensor's elements, at most tensor->bytes, in external data too: then in *buffer, which the
 * caller frees with onv_heap_free. *data is NULL (and the status OK) where they are not at hand. */
onv_status onv_load_head(const onv_model *model, const onv_tensor *tensor, size_t bytes,
                         const unsigned char **data, unsigned char **buffer, onv_error *err);

/* A TensorProto file (.pb), as --input-value NAME=@FILE.pb gives it. */
onv_status onv_load_tensor_file(onv_model *model, const char *path, const onv_known **known,
                                onv_error *err);

/* Tensor data in other files.
 *
 * What such a file holds can decide shapes, and shapes are shown: a model must not be able to spell
 * files that are not its own. So the file is called as exporters call weights, lies in the model's
 * folder (which is not the root, nor on procfs, sysfs and the like), is reached without links but the
 * ones of download caches, and is known to be a regular file before it is opened. */

/* Reads the first `bytes` bytes of the tensor's external data. *unread is NULL where they were read;
 * else the status is OK where the file is absent ("") or is not to be read by its name, its place or
 * model->no_external_data (the reason). ONV_ERR_MODEL: the file lies outside the folder or is too
 * short; ONV_ERR_IO: it cannot be read. */
onv_status onv_external_read(const onv_model *model, const onv_tensor *tensor, void *to,
                             size_t bytes, const char **unread, onv_error *err);

#endif
