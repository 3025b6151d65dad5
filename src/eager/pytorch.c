#include "eager/pytorch.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

static const char *const releases[] = {"2.15", "2.14", "2.13", "2.12", "2.11", "2.10", "2.9",
                                       "2.8",  "2.7",  "2.6",  "2.5",  "2.4",  "2.3",  "2.2",
                                       "2.1",  "2.0",  "1.13", "1.12", "1.11", "1.10", "1.9"};

enum { N_RELEASES = sizeof releases / sizeof releases[0] };

const char *onv_pytorch_release(size_t index)
{
    return index < N_RELEASES ? releases[index] : NULL;
}

bool onv_pytorch_keeps_input(const onv_lower_options *options, const onv_eager_op *op)
{
    static const struct {
        uint16_t op;          /* onv_aten_id */
        uint32_t from, until; /* releases: from the first, before the second */
    } rows[] = {
        {ONV_ATEN_softmax, 0, ONV_PYTORCH_RELEASE(1, 11)},
        {ONV_ATEN_log_softmax, 0, ONV_PYTORCH_RELEASE(1, 11)},
        {ONV_ATEN_relu, 0, ONV_PYTORCH_RELEASE(1, 10)},
        {ONV_ATEN_mean, ONV_PYTORCH_RELEASE(1, 13), ONV_PYTORCH_RELEASE(2, 2)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !op->in_place; i++)
        if (op->aten == rows[i].op && onv_before_pytorch(options, rows[i].until) &&
            !onv_before_pytorch(options, rows[i].from))
            return true;
    return false;
}

static const char *release_name(const void *unused, size_t index)
{
    (void)unused;
    return onv_pytorch_release(index);
}

onv_status onv_pytorch_find(const char *name, uint32_t *version, onv_error *err)
{
    if (name == NULL) name = releases[0];
    for (size_t i = 0; i < N_RELEASES; i++) {
        char *end;
        size_t length = strlen(releases[i]);
        if (strncmp(name, releases[i], length) != 0) continue;
        if (strchr(".+", name[length]) == NULL) continue; /* the end of the text, too */
        uint32_t major = (uint32_t)strtoul(releases[i], &end, 10);
        *version = ONV_PYTORCH_RELEASE(major, (uint32_t)strtoul(end + 1, NULL, 10));
        return ONV_OK;
    }
    return onv_fail_choice(err, "--pytorch", name, strlen(name), release_name, NULL);
}
