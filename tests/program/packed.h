/* Programs as files, for tests: a document in small, and what packs it. */
#ifndef ONV_TESTS_PACKED_H
#define ONV_TESTS_PACKED_H

#include <stdbool.h>
#include <stddef.h>

#include "onnxvram/status.h"

typedef struct packed {
    char *at; /* freed by packed_free */
    size_t bytes;
} packed;

/* An archive of one network: x of [s, 4] goes through relu. `nodes` are more calls, as JSON with a comma before each; `tensors` likewise
 * what tensor_values has of their results. */
packed document(const char *nodes, const char *tensors);

/* A file of the tree. */
packed packed_file(const char *name);

packed packed_copy(const char *text);
packed packed_gzip(packed text);

/* A zip archive of one entry, compressed or not, behind another one; and before what says where weights are, unless that is NULL. */
packed packed_zip(packed text, const char *name, bool compresses);
packed packed_zip_with(packed text, const char *name, bool compresses, const char *weights);

void packed_free(packed *p);

/* Reads it, and forgets what was read. */
onv_status packed_read(packed p, onv_error *err);

#endif
