/* protobuf-c over messages that the scan has checked, with an arena in the place of malloc. */
#ifndef ONV_LOAD_UNPACK_H
#define ONV_LOAD_UNPACK_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/status.h"

/* The message lives in the arena and goes with it; strings are copies. */
onv_status onv_unpack(const unsigned char *data, size_t bytes,
                      const ProtobufCMessageDescriptor *type, onv_arena *arena,
                      const ProtobufCMessage **message, onv_error *err);

#endif
