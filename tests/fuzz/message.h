/* Messages of ONNX files that targets write around their input. */
#ifndef ONV_TESTS_FUZZ_MESSAGE_H
#define ONV_TESTS_FUZZ_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum { MESSAGE_BYTES = 1 << 17, FUZZ_PATH = 40 };

typedef struct message {
    uint8_t at[MESSAGE_BYTES];
    size_t size;
} message;

void put_number(message *m, unsigned field, uint64_t value);
void put_bytes(message *m, unsigned field, const void *data, size_t size);
void put_text(message *m, unsigned field, const char *text);
/* Takes `part` and leaves it empty. */
void put_part(message *m, unsigned field, message *part);
/* A key and its value. */
void put_note(message *m, unsigned field, const char *key, const void *value, size_t size);

/* The bytes as a file that has no name but *path; its descriptor, which the caller closes. */
int fuzz_as_file(const uint8_t *data, size_t size, char path[FUZZ_PATH]);

#endif
