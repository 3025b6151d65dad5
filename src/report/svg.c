/* Pictures of what was executed: live memory over the steps, and the front of checkpointing plans.
 * Attributes alone, no style sheet and no script, so that they stand in any page. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "report/clean.h"
#include "report/units.h"
#include "report/viewers.h"

enum {
    WIDTH = 960,
    LEFT = 84,
    RIGHT = 20,
    TOP = 58,
    PLOT = 260, /* its height */
    BELOW = 62, /* the axis and the legend */
    FRONT = 320,
    COLUMNS = 428, /* of the plot: every second pixel */
    N_TICKS = 4,
    DOT_ROOM = 14,
    NAME_COLUMNS = 60
};

/* What is stacked, from below; the last one is what stands in a step for a while alone. */
typedef enum layer {
    LAYER_WEIGHT,
    LAYER_STATE,
    LAYER_GRADIENT,
    LAYER_ACTIVATION,
    LAYER_POOL,
    LAYER_TEMPORARY,
    N_LAYERS
} layer;

static const struct {
    const char *name, *color;
} layers[N_LAYERS] = {
    [LAYER_WEIGHT] = {"weights", "#7f8c99"},      [LAYER_STATE] = {"optimizer", "#56b4e9"},
    [LAYER_GRADIENT] = {"gradients", "#009e73"},  [LAYER_ACTIVATION] = {"activations", "#0072b2"},
    [LAYER_POOL] = {"memory pattern", "#cc79a7"}, [LAYER_TEMPORARY] = {"temporary", "#e69f00"},
};

static layer layer_of(const onv_buffer *b)
{
    switch ((onv_buffer_kind)b->kind) {
    case ONV_BUFFER_WEIGHT:
    case ONV_BUFFER_STATISTIC: return LAYER_WEIGHT;
    case ONV_BUFFER_STATE: return LAYER_STATE;
    case ONV_BUFFER_GRADIENT: return LAYER_GRADIENT;
    case ONV_BUFFER_POOL: return b->bypasses_pool ? LAYER_WEIGHT : LAYER_POOL;
    case ONV_BUFFER_TEMPORARY:
    case ONV_BUFFER_WORKSPACE: return LAYER_TEMPORARY;
    default: return LAYER_ACTIVATION;
    }
}

/* --- The curves, sampled ----------------------------------------------------------------------- */

/* By column of the picture the step with the most, and what it holds. */
typedef struct samples {
    uint32_t count;
    uint64_t of[COLUMNS][N_LAYERS];
    bool has[N_LAYERS];
    uint64_t reserved[COLUMNS];
    uint64_t top;  /* of all curves, above `base` */
    uint64_t base; /* weights that would leave nothing to see of the rest: left out */
    onv_peak peak;
    uint32_t peak_column;
} samples;

static void sum_layers(const onv_timeline *t, uint64_t *steps)
{
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (b->within != ONV_NO_BUFFER || b->is_transient) continue;
        layer l = layer_of(b);
        steps[(size_t)b->first * N_LAYERS + l] += b->bytes;
        steps[((size_t)b->last + 1) * N_LAYERS + l] -= b->bytes; /* wraps back in the sums */
    }
    for (size_t i = N_LAYERS; i < t->steps.count * N_LAYERS; i++) steps[i] += steps[i - N_LAYERS];
}

/* What is drawn of a sum of bytes. */
static uint64_t above(const samples *s, uint64_t bytes)
{
    return bytes > s->base ? bytes - s->base : 0;
}

static void take_sample(samples *s, uint32_t column, const uint64_t *layers_at, uint64_t live)
{
    uint64_t sum = 0;
    for (int l = 0; l < N_LAYERS; l++) {
        s->of[column][l] = layers_at[l];
        sum += layers_at[l];
    }
    /* What is freed before the next buffer of its step is allocated. */
    s->of[column][LAYER_TEMPORARY] += live - sum;
    if (s->base > 0) s->of[column][LAYER_WEIGHT] = 0;
    for (int l = 0; l < N_LAYERS; l++) s->has[l] |= s->of[column][l] > 0;
}

static onv_status sample(const onv_report_job *job, const onv_kept_execution *kept, samples *s)
{
    const onv_timeline *t = &kept->made.timeline;
    size_t n = t->steps.count;
    *s = (samples){.count = n < COLUMNS ? (uint32_t)n : COLUMNS};
    uint64_t *live, *steps = ONV_ARENA_ARRAY(job->arena, uint64_t, (n + 1) * N_LAYERS);
    if (steps == NULL) return onv_fail_memory(job->err);
    ONV_TRY(onv_viewer_live(job, kept, &s->peak, &live));
    sum_layers(t, steps);
    uint64_t weights = steps[(size_t)s->peak.step * N_LAYERS + LAYER_WEIGHT];
    if (weights > s->peak.bytes / 2) s->base = weights;
    for (uint32_t c = 0; c < s->count; c++) {
        size_t from = (size_t)c * n / s->count, end = ((size_t)c + 1) * n / s->count, most = from;
        for (size_t i = from; i < end; i++) {
            if (live[i] > live[most]) most = i;
            if (kept->made.placement.reserved_at[i] > s->reserved[c])
                s->reserved[c] = kept->made.placement.reserved_at[i];
        }
        if (from <= s->peak.step && s->peak.step < end) {
            s->peak_column = c;
            most = s->peak.step;
        }
        take_sample(s, c, &steps[most * N_LAYERS], live[most]);
        s->reserved[c] = above(s, s->reserved[c]);
        if (above(s, live[most]) > s->top) s->top = above(s, live[most]);
        if (s->reserved[c] > s->top) s->top = s->reserved[c];
    }
    return ONV_OK;
}

/* --- Drawing ----------------------------------------------------------------------------------- */

static void text_at(onv_writer *out, double x, double y, const char *anchor, const char *fill,
                    unsigned size)
{
    onv_write_format(out,
                     "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" "
                     "font-size=\"%u\">",
                     x, y, anchor, fill, size);
}

static void put_text(onv_writer *out, const char *text)
{
    onv_write_fitted(out, text, NAME_COLUMNS, ONV_CLEAN_MARKDOWN, ONV_CUT_MIDDLE);
    onv_write_text(out, "</text>\n");
}

static void put_label(onv_writer *out, double x, double y, const char *anchor, const char *fill,
                      unsigned size, const char *text)
{
    text_at(out, x, y, anchor, fill, size);
    put_text(out, text);
}

static double x_of(const samples *s, double column)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * column / (s->count > 0 ? s->count : 1);
}

static double y_of(double top, uint64_t bytes, double at)
{
    return at + PLOT - (top > 0 ? PLOT * (double)bytes / top : 0);
}

static void draw_axis(onv_writer *out, uint64_t top, double at)
{
    for (int i = 0; i <= N_TICKS; i++) {
        uint64_t bytes = top / N_TICKS * (uint64_t)i;
        double y = y_of((double)top, bytes, at);
        onv_write_format(out, "<path d=\"M%d %.1fH%d\" stroke=\"#d5dae0\" stroke-width=\"1\"/>\n",
                         LEFT, y, WIDTH - RIGHT);
        put_label(out, LEFT - 8, y + 4, "end", "#57606a", 11, onv_label_bytes(bytes).text);
    }
}

/* The band between what lies below a layer and that with the layer. */
static void draw_layer(onv_writer *out, const samples *s, layer l, double at)
{
    if (!s->has[l]) return;
    onv_write_text(out, "<path d=\"");
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < s->count; i++) {
            uint32_t c = side == 0 ? i : s->count - 1 - i;
            uint64_t bytes = 0;
            for (int below = 0; below < (int)l + (side == 0); below++) bytes += s->of[c][below];
            double y = y_of((double)s->top, bytes, at);
            double from = x_of(s, side == 0 ? c : c + 1.0), to = x_of(s, side == 0 ? c + 1.0 : c);
            onv_write_format(out, "%s%.1f %.1fH%.1f", side == 0 && i == 0 ? "M" : "L", from, y, to);
        }
    onv_write_format(out, "Z\" fill=\"%s\"/>\n", layers[l].color);
}

static void draw_reserved(onv_writer *out, const samples *s, double at)
{
    onv_write_text(out, "<path d=\"");
    for (uint32_t c = 0; c < s->count; c++)
        onv_write_format(out, "%s%.1f %.1fH%.1f", c == 0 ? "M" : "L", x_of(s, c),
                         y_of((double)s->top, s->reserved[c], at), x_of(s, c + 1.0));
    onv_write_text(out, "\" fill=\"none\" stroke=\"#24292f\" stroke-width=\"1.5\" "
                        "stroke-dasharray=\"5 3\"/>\n");
}

static void draw_legend(onv_writer *out, const samples *s, double y)
{
    double x = LEFT;
    for (int l = 0; l < N_LAYERS; l++) {
        if (!s->has[l]) continue;
        onv_write_format(out,
                         "<rect x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\" fill=\"%s\"/>\n",
                         x, y - 10, layers[l].color);
        put_label(out, x + 16, y, "start", "#24292f", 12, layers[l].name);
        x += 34 + 7.0 * (double)strlen(layers[l].name);
    }
    onv_write_format(out,
                     "<path d=\"M%.1f %.1fh18\" stroke=\"#24292f\" stroke-width=\"1.5\" "
                     "stroke-dasharray=\"5 3\"/>\n",
                     x, y - 4);
    put_label(out, x + 24, y, "start", "#24292f", 12, "reserved");
}

static void draw_peak(onv_writer *out, const onv_kept_execution *kept, const samples *s, double at)
{
    const onv_step *step = &kept->made.timeline.steps.at[s->peak.step];
    double x = x_of(s, s->peak_column + 0.5), y = y_of((double)s->top, above(s, s->peak.bytes), at);
    bool is_right = x > WIDTH / 2.0;
    onv_write_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#d55e00\"/>\n", x, y);
    text_at(out, is_right ? x - 8 : x + 8, y - 6, is_right ? "end" : "start", "#24292f", 12);
    const char *name = step->label;
    if (onv_is_node(step->node)) {
        const onv_node *node = onv_model_node(kept->model, step->node);
        name = node->name != NULL && node->name[0] != '\0' ? node->name : node->op_type;
    }
    onv_write_format(out, "peak %s, step %" PRIu32 ": ", onv_label_bytes(s->peak.bytes).text,
                     s->peak.step);
    put_text(out, name != NULL ? name : "");
}

static onv_status draw_model(const onv_report_job *job, const onv_view *view,
                             const onv_kept_execution *kept, double at)
{
    samples *s = ONV_ARENA_ARRAY(job->arena, samples, 1);
    onv_writer *out = job->out;
    if (s == NULL) return onv_fail_memory(job->err);
    ONV_TRY(sample(job, kept, s));
    put_label(out, LEFT, at + 22, "start", "#24292f", 15, onv_view_file(view));
    text_at(out, LEFT, at + 40, "start", "#57606a", 12);
    onv_write_format(out, "%s", strcmp(kept->runtime, "train") == 0 ? "training" : kept->runtime);
    if (kept->plan != ONV_NO_PLAN) {
        onv_write_text(out, ", checkpoints ");
        onv_write_clean(out, view->training.plans[kept->plan].does.name, ONV_CLEAN_MARKDOWN);
    }
    onv_write_format(out, ": live memory over %zu steps, allocated at most %s, reserved %s",
                     kept->made.timeline.steps.count,
                     onv_label_bytes(kept->made.placement.figures.allocated_peak).text,
                     onv_label_bytes(kept->made.placement.figures.reserved_peak).text);
    if (s->base > 0)
        onv_write_format(out, "; drawn above %s of weights", onv_label_bytes(s->base).text);
    onv_write_text(out, "</text>\n");
    draw_axis(out, s->top, at + TOP);
    for (int l = 0; l < N_LAYERS; l++) draw_layer(out, s, (layer)l, at + TOP);
    draw_reserved(out, s, at + TOP);
    draw_peak(out, kept, s, at + TOP);
    draw_legend(out, s, at + TOP + PLOT + 36);
    return ONV_OK;
}

/* --- The front of plans ------------------------------------------------------------------------ */

typedef struct front {
    const onv_training *training;
    uint64_t least, top; /* of the axis, which begins below the least: plans are to be told apart */
    double most;         /* of what runs again */
    double at;
} front;

static double again(const onv_training_plan *p)
{
    return p->pass_macs > 0 ? (double)p->does.recomputed_macs / (double)p->pass_macs : 0;
}

static front measure_front(const onv_training *t, double at)
{
    front f = {t, UINT64_MAX, 0, 0.01, at};
    for (uint32_t i = 0; i < t->n_plans; i++) {
        const onv_training_plan *p = &t->plans[i];
        if (p->figures.peak_bytes > f.top) f.top = p->figures.peak_bytes;
        if (p->figures.peak_bytes < f.least) f.least = p->figures.peak_bytes;
        if (again(p) > f.most) f.most = again(p);
    }
    f.least -= f.least / 10;
    return f;
}

static double front_y(const front *f, uint64_t bytes)
{
    return y_of((double)(f->top - f->least), bytes - f->least, f->at);
}

static void draw_front_axes(onv_writer *out, const front *f)
{
    for (int i = 0; i <= N_TICKS; i++) {
        uint64_t bytes = f->least + (f->top - f->least) / N_TICKS * (uint64_t)i;
        onv_write_format(out, "<path d=\"M%d %.1fH%d\" stroke=\"#d5dae0\"/>\n", LEFT,
                         front_y(f, bytes), WIDTH - RIGHT);
        put_label(out, LEFT - 8, front_y(f, bytes) + 4, "end", "#57606a", 11,
                  onv_label_bytes(bytes).text);
        text_at(out, LEFT + DOT_ROOM + (WIDTH - LEFT - RIGHT - 2 * DOT_ROOM) * i / (double)N_TICKS,
                f->at + PLOT + 18, "middle", "#57606a", 11);
        onv_write_format(out, "%.1f%%</text>\n", 100 * f->most * i / N_TICKS);
    }
}

/* Names of plans beside their dots, each below those that it would cover. */
static void draw_front(const onv_report_job *job, const onv_training *t, double at)
{
    enum { MOST_NAMES = 16, NAME_WIDTH = 190, NAME_HEIGHT = 14 };
    onv_writer *out = job->out;
    struct {
        double x, y;
    } names[MOST_NAMES];
    int n_names = 0;
    const front f = measure_front(t, at + 34);
    put_label(out, LEFT, at + 14, "start", "#24292f", 13,
              "Checkpointing plans: peak over what runs again");
    draw_front_axes(out, &f);
    for (uint32_t i = 0; i < t->n_plans; i++) {
        const onv_training_plan *p = &t->plans[i];
        double x = LEFT + DOT_ROOM + (WIDTH - LEFT - RIGHT - 2 * DOT_ROOM) * again(p) / f.most;
        double y = front_y(&f, p->figures.peak_bytes);
        bool is_front = strncmp(p->does.name, "optimal", 7) == 0,
             is_left = x > WIDTH - RIGHT - NAME_WIDTH;
        onv_write_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n", x, y,
                         is_front ? 3 : 5, is_front ? "#0072b2" : "#d55e00");
        if (is_front || n_names == MOST_NAMES) continue;
        double text_y = y + 4;
        for (int k = 0; k < n_names; k++)
            if (x - names[k].x < NAME_WIDTH && names[k].x - x < NAME_WIDTH &&
                text_y - names[k].y < NAME_HEIGHT && names[k].y - text_y < NAME_HEIGHT)
                text_y = names[k].y + NAME_HEIGHT;
        names[n_names].x = x;
        names[n_names++].y = text_y;
        text_at(out, is_left ? x - 9 : x + 9, text_y, is_left ? "end" : "start", "#24292f", 12);
        onv_write_clean(out, p->does.name, ONV_CLEAN_MARKDOWN);
        onv_write_format(out, " %s, %.1f%%</text>\n", onv_label_bytes(p->figures.peak_bytes).text,
                         again(p) * 100);
    }
}

/* --- All of it --------------------------------------------------------------------------------- */

static bool has_front(const onv_view *view)
{
    return view->training.n_plans > 0;
}

/* One SVG element with all models of the report, one below the other. */
onv_status onv_format_svg_write(onv_report_job *job)
{
    double height = 0, at = 0;
    for (size_t i = 0; i < job->count; i++) {
        const onv_view *view = onv_view_sized(job->views[i]);
        if (onv_main_execution(view) == NULL) continue;
        height += TOP + PLOT + BELOW + (has_front(view) ? FRONT + 24 : 0);
    }
    if (height == 0) height = BELOW;
    onv_write_format(job->out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
                     "width=\"%d\" height=\"%.0f\" role=\"img\" "
                     "aria-label=\"live memory over the steps\" "
                     "font-family=\"system-ui, sans-serif\">\n"
                     "<rect width=\"%d\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
                     WIDTH, height, WIDTH, height, WIDTH, height);
    for (size_t i = 0; i < job->count; i++) {
        const onv_view *view = onv_view_sized(job->views[i]);
        const onv_kept_execution *kept = onv_main_execution(view);
        if (kept == NULL) continue;
        ONV_TRY(draw_model(job, view, kept, at));
        at += TOP + PLOT + BELOW;
        if (!has_front(view)) continue;
        draw_front(job, &view->training, at);
        at += FRONT + 24;
    }
    if (at == 0) {
        put_label(job->out, LEFT, BELOW / 2.0, "start", "#24292f", 13,
                  "Nothing to draw: a size is not known (bind all dimensions).");
    }
    onv_write_text(job->out, "</svg>\n");
    return ONV_OK;
}
