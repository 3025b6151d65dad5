/* Node data for Model Explorer: the bytes that are there while a node runs, as colors of its graph. */
#include <string.h>

#include "base/fail.h"
#include "report/json.h"
#include "report/viewers.h"

/* Of a node's steps the one with the most: a body has many, training a forward and a backward. */
static void take_most(const onv_kept_execution *kept, const uint64_t *live, uint64_t *most)
{
    const onv_timeline *t = &kept->made.timeline;
    for (size_t i = t->measured_from; i < t->steps.count; i++) {
        onv_node_id node = t->steps.at[i].node;
        if (onv_is_node(node) && live[i] >= most[node.index]) most[node.index] = live[i];
    }
}

/* From light to dark: what color-blind people tell apart, too. */
static void write_gradient(onv_json *json)
{
    static const struct {
        uint64_t part; /* of 2 */
        const char *color, *text;
    } stops[] = {{0, "#fff7ec", "#000000"}, {1, "#fdbb84", "#000000"}, {2, "#b30000", "#ffffff"}};
    ONV_JSON_ROWS(json, "gradient", i, sizeof stops / sizeof stops[0], INLINE) {
        onv_json_put_ratio(json, "stop", stops[i].part, 2);
        onv_json_put_string(json, "bgColor", stops[i].color);
        onv_json_put_string(json, "textColor", stops[i].text);
    }
}

static onv_status write_results(onv_json *json, const onv_report_job *job,
                                const onv_kept_execution *kept)
{
    const onv_model *model = kept->model;
    onv_strings taken; /* a key stands once */
    onv_peak peak;
    onv_status status = ONV_OK;
    uint64_t *live, *most = ONV_ARENA_ARRAY(job->arena, uint64_t, model->nodes.count + 1);
    if (most == NULL) return onv_fail_memory(job->err);
    ONV_TRY(onv_viewer_live(job, kept, &peak, &live));
    take_most(kept, live, most);
    onv_strings_init(&taken, job->arena);
    for (uint32_t i = 0; status == ONV_OK && i < model->nodes.count && !json->out->failed; i++) {
        const onv_step of = {.node = {i}};
        const char *key = onv_kept_node(kept, &of);
        if (most[i] == 0 || key[0] == '\0' || onv_interned(&taken, key) != NULL) continue;
        if (onv_intern(&taken, key) == NULL) status = onv_fail_memory(job->err);
        onv_json_put_open(json, key, '{', ONV_JSON_INLINE);
        onv_json_put_u64(json, "value", most[i]);
        onv_json_close(json);
    }
    onv_strings_cleanup(&taken);
    return status;
}

onv_status onv_format_model_explorer_write(onv_report_job *job)
{
    const onv_kept_execution *kept;
    onv_viewer_name title;
    onv_json *json = &job->json;
    ONV_TRY(onv_viewer_execution(job, "node data", &kept));
    onv_viewer_title(&title, job->views[0], kept);
    onv_json_open(json, '{', ONV_JSON_LINES);
    onv_json_put_string(json, "name",
                        onv_arena_printf(job->arena, "bytes while it runs: %s", title.text));
    onv_json_put_open(json, "results", '{', ONV_JSON_LINES);
    ONV_TRY(write_results(json, job, kept));
    onv_json_close(json);
    write_gradient(json);
    onv_json_close(json);
    onv_write_char(job->out, '\n');
    return ONV_OK;
}
