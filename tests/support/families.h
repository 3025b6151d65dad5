/* Families of models of any size, each the worst case of some loop: the same thing again and again. What
 * twice the file costs is at most a little more than twice the work (api.doubling). */
#ifndef ONV_TESTS_FAMILIES_H
#define ONV_TESTS_FAMILIES_H

#include "support/onnx_writer.h"

typedef struct family {
    const char *name;
    void (*make)(model *m, unsigned n);
    bool is_trained; /* training and its plans are asked for, too */
    unsigned most;   /* nodes, beyond which a model has the same again; 0: any */
    char *(*write)(
        unsigned n); /* a program of PyTorch instead of `make`: JSON, which the caller frees */
} family;

/* Ends with NULL. */
const family *family_at(unsigned index);

/* The parts of the list, each with a family without a name at its end. */
extern const family note_families[], graph_families[], export_families[], program_families[];

/* "PREFIX7": used before the next six are made. Two names as a list. "PREFIX0 PREFIX1 ...", to be freed. */
const char *family_name(const char *prefix, unsigned i);
const char *family_both(const char *a, const char *b);
char *family_list(const char *prefix, unsigned n);

#endif
