/* Scripts from an allocator model: what the model decides becomes segments and buffers.
 *
 * A request is a birth in the segment where the model puts its block; a segment that the model takes
 * from the device or gives back is an allocation of the script. A request may also be a container:
 * then only its place is of interest, and what lies in it is born by hand (onv_script_birth).
 */
#ifndef ONV_DEVICE_RECORDER_H
#define ONV_DEVICE_RECORDER_H

#include "device/script.h"

typedef struct onv_recorder {
    onv_script *script;
    onv_allocator allocator;
    uint32_t step;             /* of the event that is fed */
    ONV_VEC(uint64_t) starts;  /* by segment of the script: its address in the model */
    ONV_VEC(uint32_t) buffers; /* by id: the buffer of the script, UINT32_MAX: none */
    onv_status status;         /* of the hook */
    onv_error *err;
} onv_recorder;

/* The recorder must not move between init and cleanup. */
onv_status onv_recorder_init(onv_recorder *r, onv_script *script, const char *model,
                             const onv_alloc_options *options, onv_error *err);
void onv_recorder_cleanup(onv_recorder *r);

typedef struct onv_recorder_place {
    uint32_t segment;
    uint64_t offset;
} onv_recorder_place;

/* Memory for `id`, beside the model's pools with `reserve`; a container. */
onv_status onv_recorder_container(onv_recorder *r, uint32_t id, uint64_t bytes, uint32_t step,
                                  bool reserve, onv_recorder_place *place, onv_error *err);

/* Memory for a row, which is born there; nothing for 0 bytes. */
onv_status onv_recorder_alloc(onv_recorder *r, uint32_t id, const onv_buffer *row, uint32_t step,
                              onv_error *err);

/* Ends the buffer, if the id is no container, and frees its memory. */
onv_status onv_recorder_free(onv_recorder *r, uint32_t id, uint32_t step, onv_error *err);

/* Gives back the segments that the model keeps. */
onv_status onv_recorder_close(onv_recorder *r, uint32_t step, onv_error *err);

#endif
