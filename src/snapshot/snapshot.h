/* A memory snapshot of PyTorch, as torch.cuda.memory._dump_snapshot() writes it: what its caching allocator held, and
 * what happened before, where torch.cuda.memory._record_memory_history() was on.
 *
 * A snapshot has the segments of the moment when it was taken, with their blocks, and events up to then. The moments
 * before follow from the events backwards. Events tell what was asked for; how long a block was follows from what
 * stood behind it, by the allocator's rule: a block of more than 1 MiB keeps a rest of up to 1 MiB.
 */
#ifndef ONV_SNAPSHOT_SNAPSHOT_H
#define ONV_SNAPSHOT_SNAPSHOT_H

#include "base/file.h"
#include "snapshot/pickle.h"

#define ONV_NO_REQUEST UINT32_MAX

/* A tensor or a workspace. Bytes. */
typedef struct onv_snapshot_block {
    uint64_t bytes;            /* asked for */
    uint64_t counted;          /* of the block */
    uint32_t request;          /* that allocated it; ONV_NO_REQUEST: it was there before */
    const onv_pickled *frames; /* of the stack, the innermost first; may be NULL */
} onv_snapshot_block;

/* An allocation of the history. */
typedef struct onv_snapshot_request {
    uint64_t bytes; /* asked for */
    uint32_t freed; /* how many requests came before it was freed; ONV_NO_REQUEST: it was not */
    const onv_pickled *frames;
} onv_snapshot_request;

typedef struct onv_snapshot {
    onv_arena arena; /* of all that follows, with the text of frames in `file` */
    onv_file_bytes file;
    uint32_t device, n_devices; /* that it is of: the one with the largest peak */
    bool has_history;
    /* Since the history began, or at the moment of the snapshot without one. */
    uint64_t requested_peak, allocated_peak, reserved_peak;
    ONV_VEC(onv_snapshot_block) live; /* when the most was allocated, in the order of allocation */
    ONV_VEC(onv_snapshot_request) requests;
    uint32_t peak_requests; /* how many came up to the moment when the most was allocated */
} onv_snapshot;

/* `most`: bytes that the file may have. Errors begin with the path. The caller cleans up, also after a failure. */
onv_status onv_snapshot_read(onv_snapshot *snapshot, const char *path, size_t most, onv_error *err);

/* The same of bytes, which stay where they are as long as the snapshot. */
onv_status onv_snapshot_parse(onv_snapshot *snapshot, const char *data, size_t bytes,
                              onv_error *err);
void onv_snapshot_cleanup(onv_snapshot *snapshot);

/* A frame of a block or of a request, from 0 on: its function, file and line; false behind the last one. Texts are not
 * terminated. */
typedef struct onv_snapshot_frame {
    const onv_pickled *name, *file; /* texts */
    uint64_t line;
} onv_snapshot_frame;

bool onv_snapshot_frame_at(const onv_pickled *frames, uint32_t index, onv_snapshot_frame *frame);

#endif
