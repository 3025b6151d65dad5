#include "graph/strides.h"

#include "base/checked.h"

bool onv_layout_new(onv_arena *arena, int rank, onv_layout *layout)
{
    layout->rank = rank;
    layout->dims = ONV_ARENA_ARRAY(arena, int64_t, (size_t)rank);
    layout->strides = ONV_ARENA_ARRAY(arena, int64_t, (size_t)rank);
    return layout->dims != NULL && layout->strides != NULL;
}

/* Products of dims and strides fit: the bytes of the tensor they belong to were checked. */
void onv_layout_set_dense(onv_layout *layout)
{
    int64_t step = 1;
    for (int i = layout->rank; i-- > 0;) {
        layout->strides[i] = step;
        step *= layout->dims[i];
    }
}

bool onv_layout_is_dense(const onv_layout *layout)
{
    int64_t step = 1;
    for (int i = layout->rank; i-- > 0;) {
        if (layout->dims[i] == 1) continue;
        if (layout->strides[i] != step) return false;
        step *= layout->dims[i];
    }
    return true;
}

/* The axes before `*end` that lie in memory like one axis: its size and step. Moves *end before
 * them; false where there are none left. */
static bool next_run(const onv_layout *from, int *end, int64_t *elems, int64_t *step)
{
    int i = *end;
    while (i > 0 && from->dims[i - 1] == 1) i--;
    *end = i;
    if (i == 0) return false;
    *elems = from->dims[i - 1];
    *step = from->strides[i - 1];
    for (i--; i > 0; i--) {
        if (from->dims[i - 1] == 1) continue;
        if (from->strides[i - 1] != *elems * *step) break;
        *elems *= from->dims[i - 1];
    }
    *end = i;
    return true;
}

bool onv_layout_view(const onv_layout *from, onv_layout *to)
{
    int64_t elems, step;
    int end = from->rank, axis = to->rank;
    while (next_run(from, &end, &elems, &step)) {
        /* Axes of the result must fill the run exactly. */
        int64_t filled = 1;
        for (; axis > 0 && (filled < elems || to->dims[axis - 1] == 1); axis--) {
            to->strides[axis - 1] = filled * step;
            if (!onv_i64_mul(filled, to->dims[axis - 1], &filled)) return false;
        }
        if (filled != elems) return false;
    }
    for (; axis > 0; axis--) to->strides[axis - 1] = 1; /* what is left has size 1 */
    return true;
}

void onv_layout_broadcast(const onv_layout *from, onv_layout *to)
{
    for (int i = 0; i < to->rank; i++) {
        int k = i - (to->rank - from->rank);
        bool repeated = k < 0 || (from->dims[k] == 1 && to->dims[i] != 1);
        to->strides[i] = repeated ? 0 : from->strides[k];
    }
}
