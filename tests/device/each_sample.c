#include "device/each_sample.h"

#include <ctype.h>
#include <dirent.h>

#include "api/replay.h"
#include "ckpt/training.h"
#include "device/make_replay.h"
#include "runtime/runtime.h"
#include "support/test.h"

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

/* Counts replays; which of them are used. */
typedef struct visit {
    const char *file;
    each_use use;
    void *context;
    bool all;
    unsigned of;                /* replays there are */
    unsigned replays, programs; /* of the sample, so far */
    unsigned sample;
} visit;

static void offer(visit *v, const onv_replay *replay)
{
    if (v->all || (v->replays + 4 * v->sample) % v->of == 0) v->use(replay, v->file, v->context);
    v->replays++;
}

static void use_runtimes(visit *v, const char *dims)
{
    for (size_t k = 0; k < onv_n_runtimes; k++) {
        OWNED_FLOW f;
        onv_replay replay;
        onv_error err = {0};
        flow_open(&f, flow_sample(v->file), dims, onv_runtimes[k]->order);
        if (make_replay(&f, onv_runtimes[k]->name, &replay, &err) != ONV_OK)
            fail_msg("%s: %s", v->file, err.message);
        offer(v, &replay);
        onv_replay_cleanup(&replay);
    }
}

static onv_status take(void *context, const onv_timeline *t, const onv_placement *placement,
                       const char *plan, onv_error *err)
{
    visit *v = context;
    onv_replays replays = {0};
    onv_replay_training training = {.replays = &replays, .runtimes = "ideal,arena,torch,ort,async"};
    v->programs++;
    ONV_TRY(onv_replay_take_training(&training, t, placement, plan, err));
    assert_int_equal(replays.list.count, 5);
    for (size_t i = 0; i < replays.list.count; i++) offer(v, &replays.list.at[i]);
    onv_replays_cleanup(&replays);
    return ONV_OK;
}

/* Samples that nobody trains (quantised ones, whose weights are integers) have a program, too. */
static void use_training(visit *v, flow *f)
{
    onv_training result;
    onv_error err = {0};
    onv_training_options options = {
        .train = {.optimizer = onv_optimizer_find("momentum"), .iterations = 2},
        .checkpoint = "sqrt,every=2",
        .take = take,
        .take_context = v};
    onv_status status = onv_training_compute(&f->model, &f->live, &options, &result, &err);
    if (status == ONV_ERR_USAGE && strstr(err.message, "training through") != NULL) {
        assert_int_equal(v->programs, 0);
        return; /* a loop */
    }
    if (status != ONV_OK) fail_msg("%s: %s", v->file, err.message);
    assert_int_equal(v->programs, 3);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool use_sample(visit *v, each_what what, uint64_t most, uint64_t limit, const char *dims)
{
    flow f;
    bool is_thorough = getenv("ONV_ALL_REPLAYS") != NULL;
    flow_open(&f, flow_sample(v->file), dims, NULL);
    bool is_used = is_thorough || f.live.weight_bytes <= limit;
    v->all = is_thorough || f.live.weight_bytes <= most;
    v->of = what == EACH_TRAINING ? 15 : 5;
    if (is_used && what == EACH_TRAINING) use_training(v, &f);
    flow_close(&f);
    if (is_used && what == EACH_RUNTIME) use_runtimes(v, dims);
    return is_used;
}

int each_sample(each_what what, uint64_t most, uint64_t limit, each_use use, void *context)
{
    struct dirent **files;
    char last[256] = "", name[256], dims[256];
    int count = scandir(ONV_SOURCE_DIR "/tests/truth", &files, NULL, by_name);
    unsigned samples = 0;
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        if (read_name(files[i]->d_name, name, dims) && strcmp(name, last) != 0) {
            visit v = {.file = name, .use = use, .context = context, .sample = samples};
            samples += use_sample(&v, what, most, limit, dims);
            strcpy(last, name);
        }
        free(files[i]);
    }
    free(files);
    return (int)samples;
}
