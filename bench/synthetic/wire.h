/* Protobuf by hand: small messages in fixed buffers, and a file that can also only be counted.
 *
 * A nested message stands behind its own length. Small ones are built in memory first; a graph of
 * gigabytes is produced twice, once into a sink that only counts. Payloads can be left as a hole,
 * so that a file of many gigabytes takes few blocks on the disk.
 */
#ifndef ONV_BENCH_WIRE_H
#define ONV_BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MESSAGE_BYTES = 1024 };

typedef struct message {
    size_t size;
    bool full; /* something did not fit and is missing */
    unsigned char at[MESSAGE_BYTES];
} message;

void put_number(message *m, unsigned field, uint64_t value);
void put_text(message *m, unsigned field, const char *text);
void put_message(message *m, unsigned field, const message *inner);

typedef struct sink {
    FILE *file;     /* NULL: only count */
    uint64_t bytes; /* so far */
    bool failed;    /* the file could not be written, or a message was full */
} sink;

/* A field with a message in it. */
void emit_message(sink *out, unsigned field, const message *m);

/* The beginning of a field whose `bytes` bytes follow. */
void emit_open(sink *out, unsigned field, uint64_t bytes);
void emit_body(sink *out, const message *m);
void emit_hole(sink *out, uint64_t bytes);
void emit_noise(sink *out, uint64_t bytes);

/* How many bytes emit_open writes. */
uint64_t open_bytes(unsigned field, uint64_t bytes);

#endif
