/* Messages of the protobuf wire format, as they are made. */
#ifndef ONV_REPORT_WIRE_MADE_H
#define ONV_REPORT_WIRE_MADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* The bytes of a message; without memory it has failed, and stays as it is. */
typedef struct onv_made {
    ONV_VEC(unsigned char) bytes;
    bool failed;
} onv_made;

void onv_made_bytes(onv_made *to, const void *data, size_t n); /* as they are */
void onv_made_number(onv_made *to, uint32_t field, uint64_t value);
void onv_made_field(onv_made *to, uint32_t field, const void *data, size_t n);

/* Puts `part` into `to`, and empties it. */
void onv_made_message(onv_made *to, uint32_t field, onv_made *part);

/* A StringStringEntryProto. */
void onv_made_pair(onv_made *to, uint32_t field, const char *key, const char *value);

#endif
