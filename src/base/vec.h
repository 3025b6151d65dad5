/* A growing array on the heap: { T *at; size_t count, capacity; } of any element type.
 *
 *     ONV_VEC(uint64_t) sizes = {0};
 *     if (!onv_vec_push(&sizes, value)) return onv_fail_memory(err);
 *     onv_vec_cleanup(&sizes);
 */
#ifndef ONV_BASE_VEC_H
#define ONV_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#define ONV_VEC(type)                                                                              \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }

/* Makes room for `extra` more elements; false when memory is short (the vector is unchanged). */
#define onv_vec_reserve(vec, extra)                                                                \
    ((extra) <= (vec)->capacity - (vec)->count || onv_vec_grow((vec), (extra), sizeof *(vec)->at))

#define onv_vec_push(vec, value)                                                                   \
    (onv_vec_reserve((vec), 1) ? ((vec)->at[(vec)->count++] = (value), true) : false)

/* Gives back the room that is not used; false when memory is short (the vector is unchanged). */
#define onv_vec_fit(vec) onv_vec_shrink((vec), sizeof *(vec)->at)

#define onv_vec_cleanup(vec)                                                                       \
    (onv_vec_free((vec)->at), (vec)->at = NULL, (vec)->count = 0, (vec)->capacity = 0)

/* Of a vector of any element type, with elements of `size` bytes. */
bool onv_vec_grow(void *vec, size_t extra, size_t size);
bool onv_vec_shrink(void *vec, size_t size);
void onv_vec_free(void *data);

#endif
