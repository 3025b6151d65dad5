/* The program as its users call it, for tests: in a folder of its own, with one line per mistake. */
#ifndef ONV_TESTS_PROGRAM_H
#define ONV_TESTS_PROGRAM_H

#include <stddef.h>

#include "support/folder.h"
#include "support/onnx_writer.h"

void program_write(const char *name, const void *data, size_t size);

/* Writes the model's file and frees the model. */
void program_write_model(const char *name, model *m);

enum { PROGRAM_TEXT = 1 << 16 };

/* Runs `onnxvram ARGUMENTS` in a shell; both outputs land in text[PROGRAM_TEXT]. Returns the exit
 * status. */
int program_run(const char *arguments, char *text);

/* The same, where the status has to be this one and `part` has to be in the text. */
void program_expect(const char *arguments, int status, const char *part);

/* The same for all parts, a list that ends with NULL, of a text that may have many lines, and stays in `text`. */
void program_expect_parts(const char *arguments, int status, const char *const *parts, char *text);

#endif
