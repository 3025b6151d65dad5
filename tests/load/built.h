/* Models built from messages and loaded, for tests. */
#ifndef ONV_TESTS_BUILT_H
#define ONV_TESTS_BUILT_H

#include "load/bytes.h"

/* A graph of nodes written as "Op name inputs outputs" with commas inside the lists. */
msg *built_graph(const char *inputs, const char *outputs, const char *const *nodes, size_t n);

#define GRAPH(inputs, outputs, ...)                                                                \
    built_graph(inputs, outputs, (const char *const[]){__VA_ARGS__},                               \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* The model as text (m_describe); its error, and the node that it names, unless that is NULL. These two free the file. */
void built_expect(msg *file, const char *text);
void built_refuse(msg *file, onv_status status, const char *text, const char *node);

/* Fails the test where the file cannot be loaded. */
onv_model *built_load(const msg *file);
void built_done(onv_model *model, msg *file);

const onv_value *built_value(const onv_model *model, const char *name);
size_t built_diags(const onv_model *model, const char *code);
const char *built_shape(onv_model *model, const onv_type *type);

#endif
