/* Files that options name: a baseline, a tensor, a trace of requests, a snapshot of PyTorch. */
#include <string.h>
#include <unistd.h>

#include "api/requests_csv.h"
#include "cli/baseline.h"
#include "cli/genai.h"
#include "cli/triton.h"
#include "fuzz/hold.h"
#include "fuzz/message.h"
#include "ir/model.h"
#include "load/load.h"
#include "snapshot/snapshot.h"

/* Messages of the program: what is wrong with a file is one line. */
int onv_cli_complain(const char *path, const onv_error *error)
{
    hold(path != NULL && error->message[0] != '\0' && strchr(error->message, '\n') == NULL);
    return EXIT_UNUSABLE;
}

void fuzz_run_baseline(const uint8_t *data, size_t size)
{
    static const char *const models[] = {"folder/net.onnx", "none", NULL};
    char path[FUZZ_PATH];
    int fd = fuzz_as_file(data, size, path);
    onv_cli_baseline *baseline = onv_cli_open_baseline(path);
    for (size_t i = 0; baseline != NULL && i < sizeof models / sizeof models[0]; i++) {
        onv_cli_figures figures;
        onv_error error = {0};
        if (onv_cli_baseline_of(baseline, models[i], i == 0, &figures, &error)) {
            hold(figures.baseline.n_figures <= ONV_CLI_MOST_FIGURES);
            for (size_t k = 0; k < figures.baseline.n_figures; k++)
                hold(strlen(figures.baseline.figures[k].what) < size);
            for (size_t k = 0; k < figures.baseline.n_bindings; k++)
                hold(strlen(figures.bindings[k].name) < size);
        } else {
            check_failure(error.code, &error);
        }
        free(figures.bindings);
    }
    onv_cli_close_baseline(baseline);
    close(fd);
}

void fuzz_run_genai(const uint8_t *data, size_t size)
{
    onv_genai g;
    onv_error error = {0};
    if (onv_genai_parse((const char *)data, size, "folder", &g, &error)) {
        hold(g.n_models > 0 && g.n_models <= ONV_GENAI_MODELS && g.max_length > 0);
        for (size_t i = 0; i < g.n_models; i++) {
            hold(strncmp(g.models[i].path, "folder/", 7) == 0);
            hold(strchr(g.models[i].path + 7, '/') == NULL);
        }
    } else {
        check_failure(error.code, &error);
    }
    onv_genai_cleanup(&g);
}

void fuzz_run_triton(const uint8_t *data, size_t size)
{
    onv_triton t;
    onv_error error = {0};
    if (!onv_triton_parse((const char *)data, size, &t, &error)) {
        check_failure(error.code, &error);
        return;
    }
    hold(t.instances + t.on_cpu > 0 && t.max_batch >= 0 && strchr(t.file, '/') == NULL);
    hold(t.n_versions <= ONV_TRITON_VERSIONS && t.n_ort <= ONV_TRITON_ORT);
}

void fuzz_run_tensor(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH];
    onv_model model;
    onv_error error = {0};
    const onv_known *known;
    int fd = fuzz_as_file(data, size, path);
    onv_model_init(&model, (size_t)64 << 20);
    onv_status status = onv_load_tensor_file(&model, path, &known, &error);
    if (status == ONV_OK)
        hold(known != NULL);
    else
        check_failure(status, &error);
    onv_model_cleanup(&model);
    close(fd);
}

void fuzz_run_requests(const uint8_t *data, size_t size)
{
    onv_arena arena;
    onv_error error = {0};
    onv_request_table table;
    char *text = malloc(size + 1);
    hold(text != NULL);
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    onv_arena_init(&arena, (size_t)64 << 20);
    onv_status status = onv_requests_csv_parse(text, &arena, &table, &error);
    if (status != ONV_OK) {
        check_failure(status, &error);
    } else {
        int64_t sum = 0;
        for (size_t i = 0; i < (size_t)table.n_requests * table.n_names; i++) sum |= table.sizes[i];
        hold(sum >= 0);
        for (uint32_t i = 0; i < table.n_names; i++) hold(strlen(table.names[i]) <= size);
    }
    onv_arena_cleanup(&arena);
    free(text);
}

void fuzz_run_snapshot(const uint8_t *data, size_t size)
{
    onv_error error = {0};
    onv_snapshot s = {0};
    onv_status status = onv_snapshot_parse(&s, (const char *)data, size, &error);
    if (status == ONV_OK) {
        uint64_t requested = 0, counted = 0;
        onv_snapshot_frame frame;
        for (size_t i = 0; i < s.live.count; i++) {
            requested += s.live.at[i].bytes;
            counted += s.live.at[i].counted;
            for (uint32_t k = 0; k < 64 && onv_snapshot_frame_at(s.live.at[i].frames, k, &frame);
                 k++)
                hold(frame.name == NULL || frame.name->length < size);
        }
        hold(counted == s.allocated_peak);
        hold(requested <= s.requested_peak);
        hold(s.device < s.n_devices);
    } else {
        check_failure(status, &error);
    }
    onv_snapshot_cleanup(&s);
}
