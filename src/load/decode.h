/* Elements of a tensor's payload, as numbers. */
#ifndef ONV_LOAD_DECODE_H
#define ONV_LOAD_DECODE_H

#include "ir/model.h"

/* Whether contents of this type can be tracked: integers, bool and floating point. */
bool onv_decode_knows(onv_dtype dtype);

/* Fill `count` elements; false where the bytes end before. */
bool onv_decode_raw(onv_dtype dtype, const unsigned char *data, uint64_t bytes, onv_scalar *elems,
                    uint32_t count);
bool onv_decode_packed(onv_dtype dtype, const unsigned char *data, uint64_t bytes,
                       onv_scalar *elems, uint32_t count);

#endif
