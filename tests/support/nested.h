/* Models with If, Loop and Scan, as the writer writes them: small ones that are known, and random ones.
 *
 * The known ones are counted by hand in the tests that use them; each stands for a mistake that
 * programs make: adding branches up, forgetting what a loop stacks, counting one iteration of many.
 */
#ifndef ONV_TESTS_NESTED_H
#define ONV_TESTS_NESTED_H

#include "support/onnx_writer.h"

typedef struct nested_case {
    const char *name;
    int64_t opset;
    const char *text; /* of model_add_text */
} nested_case;

/* Ends with a row without a name. */
extern const nested_case nested_cases[];

model *nested_case_build(const nested_case *c);

/* One of them; fails the test where there is none of that name. */
model *nested_case_model(const char *name);

/* Nodes that read and write vectors, some with branches and bodies of such nodes, four graphs deep at
 * most; the same for the same seed. */
model *nested_random(uint64_t seed);

#endif
