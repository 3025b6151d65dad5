/* The scan: one walk over the wire format of a file that is mapped, not read.
 *
 * It makes a skeleton: the same messages without what the analysis never looks at (documentation,
 * metadata, training graphs) and without the payloads of tensors, whose pages it does not touch.
 * protobuf-c unpacks the skeleton. Before it recurses or allocates, the scan has bounded the
 * nesting, the number of nodes and values and the length of names, and has made sure of what
 * protobuf-c takes on trust: that strings are UTF-8 without NUL bytes, that repeated numbers end
 * where their field ends, and that no submessage stands twice where one belongs.
 *
 *     source    ... TensorProto{dims, data_type, raw_data = 400 MB} ...
 *     skeleton  ... TensorProto{dims, data_type, raw_data = mark}   ...
 *     chunks    [field 9, pointer into the source, 400 MB]
 *
 * What classical models have learnt stands in attributes: trees of millions of nodes, text for each of
 * them. No rule reads it, so of the lists of a node of ai.onnx.ml only the first elements are kept, and
 * how many there are is written into doc_string, which the scan drops from the source. Lists of all
 * other nodes are counted against their limit before anything is made of them.
 *
 * Every payload field of every tensor is moved to `chunks`, whatever its size, and raw_data in the
 * skeleton is written by the scan alone: a file cannot forge a mark. Lengths are 64 bits, so files
 * beyond protobuf's own 2 GiB work as long as their skeleton stays below it.
 * Cost: linear in what is kept, plus one step per field skipped.
 */
#ifndef ONV_LOAD_SCAN_H
#define ONV_LOAD_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "onnxvram/options.h"

/* The payload fields, by their numbers in TensorProto. */
typedef enum onv_payload_field {
    ONV_FIELD_FLOAT_DATA = 4,
    ONV_FIELD_INT32_DATA = 5,
    ONV_FIELD_INT64_DATA = 7,
    ONV_FIELD_RAW_DATA = 9,
    ONV_FIELD_DOUBLE_DATA = 10,
    ONV_FIELD_UINT64_DATA = 11,
} onv_payload_field;

/* Elements that are kept of a list in an attribute of ai.onnx.ml, and the field that then tells the counts
 * of all three lists, as text: AttributeProto.doc_string. */
enum { ONV_LEARNT_KEPT = 256, ONV_FIELD_LIST_COUNTS = 13 };

/* A stretch of payload in the source. `tagged`: elements one by one, each behind its tag (writers
 * that do not pack); otherwise the elements alone. */
typedef struct onv_chunk {
    const unsigned char *data;
    uint64_t bytes;
    uint8_t field;
    bool tagged;
} onv_chunk;

/* What stands in raw_data of a skeleton: the chunks of that tensor. */
typedef struct onv_chunk_mark {
    uint64_t first, count;
} onv_chunk_mark;

typedef struct onv_scan {
    ONV_VEC(unsigned char) skeleton;
    ONV_VEC(onv_chunk) chunks;
    uint64_t nodes;  /* NodeProtos, those of functions included */
    uint64_t values; /* inputs, initializers and node outputs */
} onv_scan;

typedef enum onv_scan_root { ONV_SCAN_MODEL, ONV_SCAN_TENSOR } onv_scan_root;

/* `limits` as resolved. On failure (ONV_ERR_FORMAT, _LIMIT, _MEMORY) the scan holds nothing. */
onv_status onv_scan_run(onv_scan *scan, onv_scan_root root, const void *data, uint64_t bytes,
                        const onv_limits *limits, onv_error *err);

void onv_scan_cleanup(onv_scan *scan);

#endif
