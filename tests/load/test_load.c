/* Whole files: the samples, what cannot be opened, and every allocation failing in turn. */
#include <sys/mman.h>
#include <unistd.h>

#include <dirent.h>
#include <jansson.h>

#include "base/heap.h"
#include "ir/check.h"
#include "load/bytes.h"
#include "load/load.h"
#include "support/capture.h"
#include "support/test.h"

/* --- Samples ----------------------------------------------------------------------------------- */

static json_int_t truth(const char *file, const char *key)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/truth/%s", ONV_SOURCE_DIR, file);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_int_t number = json_integer_value(json_object_get(root, key));
    json_decref(root);
    return number;
}

static char *model_of_truth(const char *file)
{
    char path[4096], *sample = NULL;
    snprintf(path, sizeof path, "%s/tests/truth/%s", ONV_SOURCE_DIR, file);
    json_t *root = json_load_file(path, 0, NULL);
    const char *name = json_string_value(json_object_get(root, "model"));
    assert_non_null(name);
    assert_true(asprintf(&sample, "%s/samples/%s", ONV_SOURCE_DIR, name) > 0);
    json_decref(root);
    return sample;
}

/* What was counted in the same file, functions expanded. */
static void compare(const char *file)
{
    onv_model model;
    onv_error err = {0};
    OWNED_TEXT path = model_of_truth(file);
    if (onv_load(path, NULL, &model, &err) != ONV_OK) fail_msg("%s: %s", path, err.message);
    if (onv_graph_check(&model, &err) != ONV_OK) fail_msg("%s: %s", path, err.message);
    uint64_t elems = 0;
    for (size_t i = 0; i < model.values.count; i++) {
        const onv_value *value = &model.values.at[i];
        bool counts = onv_value_is_weight(value) && value->tensor != NULL;
        const onv_known *known;
        if (counts) elems += value->tensor->elems;
        if (value->tensor != NULL && onv_load_known(&model, value->tensor, &known, &err) != ONV_OK)
            fail_msg("%s: %s", path, err.message);
    }
    assert_int_equal(elems, truth(file, "weight_elems"));
    /* Of branches that cannot be taken the truth counts no node. */
    assert_true(model.nodes.count >= (size_t)truth(file, "nodes"));
    if (model.graphs.count == 1) assert_int_equal(model.nodes.count, truth(file, "nodes"));
    for (size_t i = 0; i < model.diags.count; i++)
        assert_int_equal(model.diags.at[i].severity, ONV_NOTE);
    onv_model_cleanup(&model);
}

TEST(samples_hold_what_was_counted)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/tests/truth", ONV_SOURCE_DIR);
    DIR *truths = opendir(folder);
    assert_non_null(truths);
    size_t seen = 0;
    for (const struct dirent *entry; (entry = readdir(truths)) != NULL;) {
        if (strstr(entry->d_name, ".truth.json") == NULL) continue;
        compare(entry->d_name);
        seen++;
    }
    closedir(truths);
    assert_true(seen > 20);
}

/* --- Files that are none ----------------------------------------------------------------------- */

static void refuse(const char *path, onv_status status, const char *text)
{
    onv_model model;
    onv_error err = {0};
    assert_int_equal(onv_load(path, NULL, &model, &err), status);
    if (strstr(err.message, text) == NULL) fail_msg("%s", err.message);
    assert_null(strchr(err.message, '\n'));
    assert_int_equal(onv_load(path, NULL, &model, NULL), status);
}

TEST(files_that_cannot_be_used)
{
    char path[64];
    refuse("no/such/file.onnx", ONV_ERR_IO, "cannot be opened: No such file or directory");
    refuse(ONV_SOURCE_DIR, ONV_ERR_IO, "is a directory");
    refuse("/dev/null", ONV_ERR_IO, "is not a regular file");
    refuse(ONV_SOURCE_DIR "/CMakeLists.txt", ONV_ERR_FORMAT, "plain text");
    int fd = memfd_create("empty", 0);
    assert_true(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    refuse(path, ONV_ERR_FORMAT, "is empty");
    close(fd);
}

/* --- Memory ------------------------------------------------------------------------------------ */

#ifdef ONV_FAULT_INJECTION
/* Whatever allocation fails, loading ends in that error and gives everything back (which the
 * sanitizer sees). Later ones are sampled: the arena's chunks make them alike. */
TEST(every_allocation_may_fail)
{
    static const char *const samples[] = {"functions", "control-flow", "bert-int8"};
    for (size_t s = 0; s < 3; s++) {
        char path[4096];
        onv_status status = ONV_ERR_MEMORY;
        snprintf(path, sizeof path, "%s/samples/%s.onnx", ONV_SOURCE_DIR, samples[s]);
        for (long n = 0; status == ONV_ERR_MEMORY; n += 1 + n / 64) {
            onv_model model;
            onv_error err = {0};
            onv_heap_fail_after(n);
            status = onv_load(path, NULL, &model, &err);
            if (status == ONV_OK) {
                status = onv_graph_check(&model, &err);
                onv_model_cleanup(&model);
            }
            onv_heap_fail_after(-1);
            assert_int_equal(err.code, status);
        }
        assert_int_equal(status, ONV_OK);
    }
}
#endif
