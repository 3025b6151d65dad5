/* ONNX Runtime's arena for who tries many orders of what stays in it: blocks without ids, no statistics but of what the
 * device gave, no record. */
#ifndef ONV_ALLOC_BFC_H
#define ONV_ALLOC_BFC_H

#include "alloc/alloc.h"

/* A free chunk between what stays. `least` to `most`: sizes with which what was taken and given since the arena resumed
 * would have found the same chunks, each other hole within its own bounds. */
typedef struct onv_bfc_hole {
    uint64_t bytes, least, most;
} onv_bfc_hole;

typedef struct onv_bfc_extent {
    uint64_t reserved_bytes; /* UINT64_MAX: the device had not enough */
    uint64_t region_bytes;   /* how much it would ask for next */
    size_t n_holes;
} onv_bfc_extent;

/* An arena in which nothing lies but what stays. */
typedef struct onv_bfc_image {
    onv_bfc_extent now, before;  /* it was resumed, or grew as another one */
    ONV_VEC(onv_bfc_hole) holes; /* by address */
} onv_bfc_image;

/* What blocks of these sizes (0: none) leave that are taken in that order and stay. `image` is of zeros and the caller's,
 * also after a failure. Cost: the logarithm of the holes for each, and the holes that are smaller than what is cut off. */
onv_status onv_bfc_load(onv_allocator *a, const uint64_t *bytes, const uint32_t *order,
                        uint32_t count, onv_bfc_image *image, onv_error *err);

/* Starts again with that image, whose bounds are found from then on: it lives as long as blocks are taken. */
onv_status onv_bfc_resume(onv_allocator *a, onv_bfc_image *image, onv_error *err);

/* The image that the arena resumed with gets the regions behind its holes: all that was taken is given back. */
onv_status onv_bfc_leave(const onv_allocator *a, onv_bfc_image *image, onv_error *err);

/* Whether requests that find the same chunks in both from now on would add as much. */
bool onv_bfc_begins_alike(const onv_allocator *a, const onv_bfc_image *image,
                          const onv_bfc_image *other);

/* Whether the requests since the arena resumed with `served` find the same chunks in the other image, which began alike. */
static inline bool onv_bfc_is_alike(const onv_bfc_image *served, const onv_bfc_image *other)
{
    bool is_alike = true;
    for (size_t i = 0; i < other->holes.count && is_alike; i++)
        is_alike = other->holes.at[i].bytes >= served->holes.at[i].least &&
                   other->holes.at[i].bytes <= served->holes.at[i].most;
    return is_alike;
}

/* Adds what they added. */
onv_status onv_bfc_grow(onv_bfc_image *image, const onv_bfc_image *served, onv_error *err);

/* Whether the same requests once more would add nothing: none bypassed the arena, and all was given back. A region is added
 * when no free chunk is large enough, and best fit takes the smallest, then the oldest. So they find the same chunks again, in
 * the regions that were added, too, if each of these is at least as large as the holes and regions before it. */
bool onv_bfc_serves_again(const onv_bfc_image *image);

/* Goes on as if the arena had resumed with the other image and not with `image`, which is alike so far. */
void onv_bfc_turn_to(onv_allocator *a, const onv_bfc_image *image, onv_bfc_image *other);

/* The chunk that `bytes` (1 to ONV_ALLOC_MAX_BYTES) on a->stream find, or ONV_NO_BLOCK; whether bounds of the image that the
 * arena resumed with are closer by that. */
uint32_t onv_bfc_find(onv_allocator *a, onv_bfc_image *image, uint64_t bytes, bool *bounds);

/* A block of it; *block is ONV_NO_BLOCK where the device has not enough. onv_allocator_give gives it back. */
onv_status onv_bfc_take(onv_allocator *a, uint64_t bytes, uint32_t found, uint32_t *block,
                        onv_error *err);

#endif
