/* Families of models of any size, each the worst case of some loop: the same thing again and again. What
 * twice the file costs is at most a little more than twice the work (api.doubling). */
#ifndef ONV_TESTS_FAMILIES_H
#define ONV_TESTS_FAMILIES_H

#include "support/onnx_writer.h"

/* A model as text: lines before what comes again, what comes again, and lines behind it, with a ";" after each line but the last.
 * Lines are those of onnx_writer.h. In braces are numbers: i is how often it came before, n how often it comes in all, and what
 * follows is computed from left to right: {i+1}, {n-1}, {i%7}. {*x# } is "x0 x1 ... " of all n. With "|" between them, several
 * come again in turn. */
typedef struct family_text {
    const char *before, *each, *behind;
} family_text;

/* A note of a node, as long as it may be: how it begins, and what comes again in it. */
typedef struct family_note {
    const char *key, *begin, *pattern;
} family_note;

/* It has a text, or a note, or a function that makes it, or one that writes a program of PyTorch: JSON, which the caller frees. */
typedef struct family {
    const char *name;
    bool is_trained; /* training and its plans are asked for, too */
    unsigned most;   /* nodes, beyond which a model has the same again; 0: any */
    unsigned nodes;  /* of what comes again in the text; 0: 1 */
    family_text text;
    family_note note;
    void (*make)(model *m, unsigned n);
    char *(*write)(unsigned n);
} family;

/* Ends with NULL. */
const family *family_at(unsigned index);

/* The model of a family that does not write a program. */
model *family_model(const family *f, unsigned n);

/* The parts of the list, each with a family without a name at its end. */
extern const family note_families[], program_families[];

/* A note of a pattern in a note of nodes of the model, which has nothing else. */
void family_repeat(model *m, unsigned n, const family_note *note);

/* "PREFIX7": used before the next six are made. Two names as a list. */
const char *family_name(const char *prefix, unsigned i);
const char *family_both(const char *a, const char *b);

#endif
