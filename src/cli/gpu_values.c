/* The values of options that take GPUs of the list, by names that need not be whole. */
#include <stdio.h>
#include <string.h>

#include "cli/values.h"

onv_cli_verdict onv_cli_list_gpus(onv_cli *cli, const char *text)
{
    (void)cli, (void)text;
    onv_gpu_info gpu;
    printf("%-28s %10s  %4s  %s\n", "GPU", "usable MiB", "cc", "source");
    for (size_t i = 0; onv_gpu_at(i, &gpu); i++)
        printf("%-28s %10llu  %2u.%u  %s\n", gpu.name, (unsigned long long)(gpu.usable_bytes >> 20),
               gpu.cc_major, gpu.cc_minor, gpu.source);
    return ONV_CLI_DONE;
}

enum { MAX_CANDIDATES = 8, MOST_GPUS = 256 };

static const char *nearest_gpu(const char *text)
{
    const char *names[MOST_GPUS + 1] = {NULL};
    onv_gpu_info gpu;
    for (size_t i = 0; i < MOST_GPUS && onv_gpu_at(i, &gpu); i++) names[i] = gpu.name;
    return onv_nearest_name(text, names);
}

const char *onv_cli_gpu_word(const char *name, char room[static 64])
{
    snprintf(room, 64, "%s", name);
    for (char *at = room; (at = strchr(at, ' ')) != NULL;) *at = '-';
    return room;
}

/* The GPU of that name; false: it is not one, and the message says why. */
static bool find_gpu(const char *option, const char *wanted, const char *text, onv_gpu_info *gpu)
{
    char room[64];
    onv_gpu_info found[MAX_CANDIDATES];
    size_t count = onv_gpu_by_name(text, found, MAX_CANDIDATES), length = 0;
    if (count == 1) {
        *gpu = found[0];
        return true;
    }
    if (count == 0) {
        const char *near = nearest_gpu(text);
        (void)onv_cli_reject("--%s takes %s of --list-gpus, not '%s'%s%s%s", option, wanted, text,
                             near != NULL ? ": did you mean '" : "",
                             near != NULL ? onv_cli_gpu_word(near, room) : "",
                             near != NULL ? "'?" : "");
        return false;
    }
    char names[256] = "";
    for (size_t i = 0; i < count && i < MAX_CANDIDATES && length < sizeof names; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "",
                                   onv_cli_gpu_word(found[i].name, room));
    (void)onv_cli_reject("--%s takes one GPU, and '%s' may be %s%s: write one of them out", option,
                         text, names, count > MAX_CANDIDATES ? " and more" : "");
    return false;
}

/* One device of --budget: a size with its unit, or a GPU. */
static onv_cli_verdict add_budget(onv_cli *cli, const char *text)
{
    onv_gpu_info gpu;
    onv_budget *budget = &cli->budgets[cli->analysis.n_budgets++];
    size_t digits = strspn(text, "0123456789.");
    if (text[0] == '-' || strcmp(text, "0") == 0 || text[0] == '\0')
        return onv_cli_reject("--budget takes a size above 0 like 16GiB, or a GPU of --list-gpus, "
                              "not '%s'",
                              text);
    /* "3090" is a GPU, and no size without its unit. */
    bool has_unit = text[digits] != '\0';
    if (!has_unit && onv_gpu_by_name(text, &gpu, 1) == 0)
        return onv_cli_reject("--budget takes a size with its unit, not '%s': %sGiB, %sGB or %sB",
                              text, text, text, text);
    if (has_unit && onv_size_parse(text, &budget->bytes) && budget->bytes > 0) return ONV_CLI_RUN;
    if (!find_gpu("budget", "a size like 16GiB or a GPU", text, &gpu)) return ONV_CLI_USAGE;
    *budget = (onv_budget){gpu.name, gpu.usable_bytes, 10 * gpu.cc_major + gpu.cc_minor};
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_budget(onv_cli *cli, const char *text)
{
    cli->analysis.n_budgets = 0; /* the last one given counts */
    onv_cli_verdict verdict = ONV_CLI_RUN;
    for (const char *at = text; verdict == ONV_CLI_RUN; at++) {
        size_t length = strcspn(at, ",");
        char one[128];
        if (length >= sizeof one || cli->analysis.n_budgets == ONV_CLI_MAX_BUDGETS)
            return onv_cli_reject("--budget takes up to %d sizes or GPUs with commas between them",
                                  ONV_CLI_MAX_BUDGETS);
        memcpy(one, at, length);
        one[length] = '\0';
        verdict = add_budget(cli, one);
        at += length;
        if (*at == '\0') break;
    }
    return verdict;
}

onv_cli_verdict onv_cli_set_gpu(onv_cli *cli, const char *text)
{
    onv_gpu_info gpu;
    if (!find_gpu("gpu", "a GPU", text, &gpu)) return ONV_CLI_USAGE;
    cli->analysis.compute_capability = 10 * gpu.cc_major + gpu.cc_minor;
    cli->analysis.gpu = gpu.name;
    return ONV_CLI_RUN;
}
