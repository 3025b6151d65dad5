#include "replay/each_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "runtime/runtime.h"
#include "support/flow.h"

/* "NAME.batch1_past0.truth.json": the name, and "batch=1 past=0". False for other files. */
static bool read_name(const char *file, char *name, char *dims)
{
    const char *key = strchr(file, '.'), *end = strstr(file, ".truth.json");
    if (key == NULL || end == NULL || key == end) return false;
    sprintf(name, "%.*s.onnx", (int)(key - file), file);
    char *to = dims;
    if (strncmp(key, ".fixed.", 7) != 0) {
        for (const char *at = key + 1; at < end; at++) {
            if (isdigit((unsigned char)at[0]) && isalpha((unsigned char)at[-1])) *to++ = '=';
            *to++ = *at == '_' && isdigit((unsigned char)at[-1]) ? ' ' : *at;
        }
    }
    *to = '\0';
    return true;
}

static void use_runtimes(const char *file, const char *dims, each_use use, void *context)
{
    for (size_t k = 0; k < onv_n_runtimes; k++) {
        flow f;
        onv_script script;
        onv_error err = {0};
        flow_open(&f, flow_sample(file), dims, onv_runtimes[k]->order);
        onv_runtime_result result = flow_run(&f, onv_runtimes[k]->name, NULL);
        if (onv_runtime_script(&result, &f.model, &f.live, NULL, &script, &err) != ONV_OK)
            fail_msg("%s: %s", file, err.message);
        use(&script, file, context);
        onv_script_cleanup(&script);
        flow_close(&f);
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int each_sample(each_what what, each_use use, void *context)
{
    struct dirent **files;
    char last[256] = "", name[256], dims[256];
    int samples = 0, count = scandir(ONV_SOURCE_DIR "/tests/truth", &files, NULL, by_name);
    assert_true(count > 0);
    (void)what;
    for (int i = 0; i < count; i++) {
        if (read_name(files[i]->d_name, name, dims) && strcmp(name, last) != 0) {
            use_runtimes(name, dims, use, context);
            strcpy(last, name);
            samples++;
        }
        free(files[i]);
    }
    free(files);
    return samples;
}
