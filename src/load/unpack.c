#include "load/unpack.h"

#include "base/fail.h"

static void *take(void *arena, size_t bytes)
{
    return onv_arena_alloc(arena, bytes);
}

static void leave(void *arena, void *pointer)
{
    (void)arena; /* everything goes at once */
    (void)pointer;
}

onv_status onv_unpack(const unsigned char *data, size_t bytes,
                      const ProtobufCMessageDescriptor *type, onv_arena *arena,
                      const ProtobufCMessage **message, onv_error *err)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = arena};
    *message = protobuf_c_message_unpack(type, &allocator, bytes, data);
    if (*message != NULL) return ONV_OK;
    if (arena->failed) return onv_fail_memory(err);
    return onv_fail(err, ONV_ERR_FORMAT, "damaged: protobuf-c cannot read it");
}
