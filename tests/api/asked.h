/* What an analysis answers to calls, as the object of a model in the JSON report: with it the two are compared. */
#ifndef ONV_TESTS_API_ASKED_H
#define ONV_TESTS_API_ASKED_H

#include <jansson.h>

#include "onnxvram/onnxvram.h"

/* All of the object but "timelines". The caller releases it. */
json_t *asked_model(const onv_analysis *analysis);

/* Compares executions and modules with the object's "timelines", whose columns it reads. Fails the test. */
void asked_timelines(const onv_analysis *analysis, const json_t *model);

#endif
