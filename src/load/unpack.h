/* protobuf-c over a skeleton, with an arena in the place of malloc. */
#ifndef ONV_LOAD_UNPACK_H
#define ONV_LOAD_UNPACK_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "load/scan.h"

/* The message lives in the arena and goes with it. The skeleton is given back at once: strings are
 * copies. */
onv_status onv_unpack(onv_scan *scan, const ProtobufCMessageDescriptor *type, onv_arena *arena,
                      const ProtobufCMessage **message, onv_error *err);

#endif
