/* A model with one initializer, for tests of its contents. */
#ifndef ONV_TESTS_LOAD_ONE_TENSOR_H
#define ONV_TESTS_LOAD_ONE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "load/bytes.h"
#include "load/load.h"

typedef struct one_tensor {
    msg *file;
    onv_model model;
    const onv_known *known; /* its contents */
    onv_status status;      /* of reading them */
    onv_error err;
} one_tensor;

/* A model that is not loaded yet. */
one_tensor one_tensor_model(msg *tensor);
/* Loads it and reads the contents. */
void one_tensor_read(one_tensor *o);
void one_tensor_done(one_tensor *o);
/* The model cannot be loaded, as this text says. */
void tensor_refuse(msg *tensor, onv_status status, const char *text);

/* "t" of one dim, and an element of what is known. */
msg *tensor_of(onv_dtype dtype, int64_t elems);
double number(const onv_known *known, uint32_t i);

#endif
