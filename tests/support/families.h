/* Families of models of any size, each the worst case of some loop: the same thing again and again. What
 * twice the file costs is at most a little more than twice the work (api.doubling). */
#ifndef ONV_TESTS_FAMILIES_H
#define ONV_TESTS_FAMILIES_H

#include "support/onnx_writer.h"

typedef struct family {
    const char *name;
    void (*make)(model *m, unsigned n);
    bool is_trained; /* training and its plans are asked for, too */
} family;

extern const family families[];
extern const unsigned n_families;

#endif
