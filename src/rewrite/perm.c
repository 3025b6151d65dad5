/* Permutations of axes, as Transposes have them. */
#include <string.h>

#include "rewrite/fuse.h"
#include "rewrite/transpose.h"

static bool is_perm(const onv_perm *perm)
{
    bool taken[ONV_MAX_RANK] = {false};
    for (int i = 0; i < perm->rank; i++) {
        int64_t axis = perm->at[i];
        if (axis < 0 || axis >= perm->rank || taken[axis]) return false;
        taken[axis] = true;
    }
    return true;
}

bool onv_perm_of(const onv_edit *e, onv_node_id transpose, onv_perm *perm)
{
    const onv_attr *attr = onv_node_attr(onv_edit_node_at(e, transpose), "perm");
    int rank = onv_fuse_rank(e, onv_edit_in(e, transpose, 0));
    perm->rank = 0;
    if (attr != NULL && attr->kind == ONV_ATTR_INTS) {
        if (attr->count > ONV_MAX_RANK) return false;
        perm->rank = (int)attr->count;
        memcpy(perm->at, attr->ints, attr->count * sizeof *perm->at);
        return is_perm(perm);
    }
    if (rank < 0) return false;
    perm->rank = rank;
    for (int i = 0; i < rank; i++) perm->at[i] = rank - 1 - i;
    return true;
}

onv_perm onv_perm_inverse(const onv_perm *perm)
{
    onv_perm inverse = {.rank = perm->rank};
    for (int i = 0; i < perm->rank; i++) inverse.at[perm->at[i]] = i;
    return inverse;
}

onv_perm onv_perm_compose(const onv_perm *first, const onv_perm *second)
{
    onv_perm both = {.rank = second->rank};
    for (int i = 0; i < second->rank; i++) both.at[i] = first->at[second->at[i]];
    return both;
}

bool onv_perm_same(const onv_perm *a, const onv_perm *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, (size_t)a->rank * sizeof *a->at) == 0;
}

bool onv_perm_is_identity(const onv_perm *perm)
{
    for (int i = 0; i < perm->rank; i++)
        if (perm->at[i] != i) return false;
    return true;
}

static bool is_among(const onv_axes *axes, int64_t axis)
{
    for (uint32_t i = 0; i < axes->count; i++)
        if (axes->at[i] == axis) return true;
    return false;
}

onv_perm onv_perm_unsqueezed(const onv_perm *perm, const onv_axes *axes)
{
    onv_perm result = {.rank = perm->rank + (int)axes->count};
    int64_t kept[ONV_MAX_RANK];
    int n_kept = 0, next = 0;
    for (int i = 0; i < result.rank; i++)
        if (!is_among(axes, i)) kept[n_kept++] = i;
    for (int i = 0; i < result.rank; i++)
        result.at[i] = is_among(axes, i) ? i : kept[perm->at[next++]];
    return result;
}

onv_perm onv_perm_squeezed(const onv_perm *perm, const onv_axes *axes)
{
    onv_perm result = {.rank = 0};
    int64_t new_axis[ONV_MAX_RANK] = {0}, next = 0;
    for (int i = 0; i < perm->rank; i++)
        if (!is_among(axes, i)) new_axis[i] = next++;
    for (int i = 0; i < perm->rank; i++)
        if (!is_among(axes, perm->at[i])) result.at[result.rank++] = new_axis[perm->at[i]];
    return result;
}
