#include "infer/infer.h"

#include <ctype.h>
#include <string.h>

bool onv_infer_name_holds(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (; *name != '\0'; name++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)name[i]) == word[i]) i++;
        if (i == n) return true;
    }
    return false;
}

static bool is_past(const char *name)
{
    return onv_infer_name_holds(name, "past") || onv_infer_name_holds(name, "cache");
}

static bool names_a_total(const char *name)
{
    bool is_both = onv_infer_name_holds(name, "past") &&
                   (strchr(name, '+') != NULL || onv_infer_name_holds(name, "plus"));
    return onv_infer_name_holds(name, "total") || is_both;
}

/* The first ones of either kind, bound ones before free ones. */
static void find_parts(const char *name, const char **past, const char **sequence)
{
    if (names_a_total(name)) return;
    if (*past == NULL && is_past(name))
        *past = name;
    else if (*sequence == NULL && !is_past(name) && onv_infer_name_holds(name, "seq"))
        *sequence = name;
}

bool onv_infer_is_total(const onv_infer_info *info, const char *name, const char **past,
                        const char **sequence)
{
    *past = *sequence = NULL;
    if (!names_a_total(name)) return false;
    for (size_t i = 0; i < info->bounds.count; i++)
        if (info->bounds.at[i].size >= 0) find_parts(info->bounds.at[i].name, past, sequence);
    for (size_t i = 0; i < info->free_dims.count; i++)
        find_parts(info->free_dims.at[i].name, past, sequence);
    return *past != NULL && *sequence != NULL;
}

static int64_t size_of(const onv_infer_info *info, const char *name)
{
    for (size_t i = 0; i < info->bounds.count; i++)
        if (strcmp(info->bounds.at[i].name, name) == 0) return info->bounds.at[i].size;
    return -1;
}

void onv_infer_check_totals(onv_model *model, const onv_infer_info *info)
{
    for (size_t i = 0; i < info->bounds.count; i++) {
        const onv_bound *bound = &info->bounds.at[i];
        const char *past, *sequence;
        if (bound->size < 0 || !onv_infer_is_total(info, bound->name, &past, &sequence)) continue;
        long long of_past = size_of(info, past), of_sequence = size_of(info, sequence);
        if (of_past < 0 || of_sequence < 0 || bound->size - of_past == of_sequence) continue;
        onv_model_diag(
            model, ONV_WARNING, "contradicting-dims", NULL,
            "'%s' is bound to %lld, but '%s' and '%s' are %lld and %lld: a mask over the "
            "cache is as long as both together; bind --dim '%s=%lld'",
            bound->name, (long long)bound->size, past, sequence, of_past, of_sequence, bound->name,
            of_past + of_sequence);
    }
}
