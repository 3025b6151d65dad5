/* A sweep as a table, CSV, JSON and a picture. Figures are those of the answers. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/sweep.h"

static const char *axis_name(const onv_cli_axis *axis)
{
    return axis->dim != NULL ? axis->dim : "batch";
}

/* The name as it may be shown. */
static const char *shown(const char *name, char room[static 96])
{
    onv_printable(name, room, 96);
    return room;
}

/* --- Text -------------------------------------------------------------------------------------- */

/* A dash of three bytes takes one column. */
static int padding(const char *text, int width)
{
    int columns = 0;
    for (; *text != '\0'; text++) columns += ((unsigned char)*text & 0xC0) != 0x80;
    return columns < width ? width - columns : 0;
}

/* Where each device ends, along the last axis. */
static void write_ends(const onv_sweep *sweep, FILE *out)
{
    const onv_cli_axis *last = &sweep->axes[sweep->n_axes - 1];
    char room[96];
    for (size_t d = 0; d < sweep->n_devices; d++)
        for (size_t k = 0; k < sweep->n_points; k += last->n_sizes) {
            int64_t most = 0;
            for (size_t i = 0; i < last->n_sizes; i++)
                if (sweep->points[k + i].fits[d] && last->sizes[i] > most) most = last->sizes[i];
            fprintf(out, "  %s: ", shown(sweep->devices[d], room));
            for (size_t i = 0; i + 1 < sweep->n_axes; i++)
                fprintf(out, "%s = %" PRId64 ", ", shown(axis_name(&sweep->axes[i]), room),
                        sweep->points[k].sizes[i]);
            if (most == 0)
                fprintf(out, "no %s of these fits\n", shown(axis_name(last), room));
            else
                fprintf(out, "%s = %" PRId64 " is the largest of these that fits\n",
                        shown(axis_name(last), room), most);
        }
}

static void write_text(const onv_sweep *sweep, bool unicode, FILE *out)
{
    enum { CELL = 18 };
    char room[96], model[512];
    onv_printable(sweep->model, model, sizeof model);
    fprintf(out, "%s%s%s\n\n ", model, sweep->gpu[0] != '\0' ? ", on " : "", sweep->gpu);
    for (size_t i = 0; i < sweep->n_axes; i++)
        fprintf(out, " %9s", shown(axis_name(&sweep->axes[i]), room));
    for (size_t i = 0; i < sweep->n_runtimes; i++) fprintf(out, " %*s", CELL, sweep->runtimes[i]);
    for (size_t i = 0; i < sweep->n_devices; i++)
        fprintf(out, "  %s", shown(sweep->devices[i], room));
    fputs("\n", out);
    for (size_t k = 0; k < sweep->n_points; k++) {
        const onv_sweep_point *p = &sweep->points[k];
        fputs(" ", out);
        for (size_t i = 0; i < sweep->n_axes; i++) {
            int name = (int)strlen(shown(axis_name(&sweep->axes[i]), room));
            fprintf(out, " %*" PRId64, name > 9 ? name : 9, p->sizes[i]);
        }
        if (!p->is_answered) fprintf(out, " %*s", CELL, "not sized");
        for (size_t i = 0; i < p->n_runtimes; i++) {
            char cell[64];
            onv_size_text(p->runtimes[i].low_bytes, p->runtimes[i].high_bytes, unicode, cell,
                          sizeof cell);
            fprintf(out, " %*s%s", padding(cell, CELL), "", cell);
        }
        for (size_t i = 0; i < sweep->n_devices && p->is_answered; i++) {
            bool is_last = i + 1 == sweep->n_devices;
            fprintf(out, "  %-*s", is_last ? 0 : (int)strlen(shown(sweep->devices[i], room)),
                    p->fits[i] ? "fits" : "no");
        }
        fputs("\n", out);
    }
    if (sweep->n_devices > 0) fputs("\n", out);
    write_ends(sweep, out);
}

/* --- CSV --------------------------------------------------------------------------------------- */

/* A name with a comma or a quote is quoted. */
static void put_field(FILE *out, const char *name)
{
    const char *quote = strpbrk(name, ",\"\n\r") != NULL ? "\"" : "";
    fputs(quote, out);
    for (; *name != '\0'; name++) fprintf(out, *name == '"' ? "\"\"" : "%c", *name);
    fputs(quote, out);
}

static void write_csv(const onv_sweep *sweep, FILE *out)
{
    for (size_t i = 0; i < sweep->n_axes; i++) {
        put_field(out, axis_name(&sweep->axes[i]));
        fputs(",", out);
    }
    fprintf(out, "runtime,low_bytes,high_bytes");
    for (size_t i = 0; i < sweep->n_devices; i++) {
        fputs(",", out);
        put_field(out, sweep->devices[i]);
    }
    fputs("\n", out);
    for (size_t k = 0; k < sweep->n_points; k++) {
        const onv_sweep_point *p = &sweep->points[k];
        for (size_t r = 0; r < p->n_runtimes; r++) {
            for (size_t i = 0; i < sweep->n_axes; i++) fprintf(out, "%" PRId64 ",", p->sizes[i]);
            fprintf(out, "%s,%" PRIu64 ",%" PRIu64, sweep->runtimes[r], p->runtimes[r].low_bytes,
                    p->runtimes[r].high_bytes);
            for (size_t i = 0; i < sweep->n_devices; i++)
                fprintf(out, ",%s", p->fits[i] ? "true" : "false");
            fputs("\n", out);
        }
    }
}

/* --- JSON -------------------------------------------------------------------------------------- */

static json_t *integer(uint64_t number)
{
    return json_integer((json_int_t)number);
}

static json_t *json_of_point(const onv_sweep *sweep, const onv_sweep_point *p)
{
    json_t *bindings = json_object(), *runtimes = json_object(), *fits = json_object();
    const onv_answer_runtime_info *most = &p->runtimes[p->largest];
    for (size_t i = 0; i < sweep->n_axes; i++)
        json_object_set_new(bindings, axis_name(&sweep->axes[i]), json_integer(p->sizes[i]));
    for (size_t i = 0; i < p->n_runtimes; i++) {
        const onv_answer_runtime_info *r = &p->runtimes[i];
        json_object_set_new(
            runtimes, sweep->runtimes[i],
            ONV_CLI_JSON("low_bytes", integer(r->low_bytes), "high_bytes", integer(r->high_bytes)));
    }
    for (size_t i = 0; i < sweep->n_devices; i++)
        json_object_set_new(fits, sweep->devices[i], json_boolean(p->fits[i]));
    if (!p->is_answered) {
        json_decref(runtimes);
        json_decref(fits);
        return ONV_CLI_JSON("bindings", bindings, "answer", json_null());
    }
    json_t *answer = ONV_CLI_JSON("runtime", json_string(sweep->runtimes[p->largest]), "low_bytes",
                                  integer(most->low_bytes), "high_bytes", integer(most->high_bytes),
                                  "runtimes", runtimes, "fits", fits);
    return ONV_CLI_JSON("bindings", bindings, "answer", answer);
}

/* To be freed; NULL without memory. */
static char *json_of(const onv_sweep *sweep, size_t flags)
{
    char model[4096];
    onv_printable(sweep->model, model, sizeof model); /* a path need not be UTF-8 */
    json_t *points = json_array(), *axes = json_array(), *devices = json_array();
    for (size_t k = 0; k < sweep->n_points; k++)
        json_array_append_new(points, json_of_point(sweep, &sweep->points[k]));
    for (size_t i = 0; i < sweep->n_axes; i++)
        json_array_append_new(axes, json_string(axis_name(&sweep->axes[i])));
    for (size_t i = 0; i < sweep->n_devices; i++)
        json_array_append_new(devices, ONV_CLI_JSON("name", json_string(sweep->devices[i]),
                                                    "usable_bytes", integer(sweep->usable[i])));
    json_t *part = ONV_CLI_JSON("path", json_string(model), "gpu", json_string(sweep->gpu), "axes",
                                axes, "devices", devices, "points", points);
    json_t *all = onv_cli_json_output("sweep", part);
    char *text = all != NULL ? json_dumps(all, flags | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(all);
    return text;
}

static bool write_json(const onv_sweep *sweep, onv_cli_sink *sink)
{
    char *text = json_of(sweep, JSON_INDENT(2));
    bool good = text != NULL && onv_cli_write(sink, text, strlen(text));
    fputs("\n", sink->stream);
    free(text);
    return good;
}

/* --- SVG --------------------------------------------------------------------------------------- */

enum { LEFT = 80, TOP = 40, WIDTH = 720, HEIGHT = 320, BELOW = 60 };

static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"};

/* What XML would read is left out of names: these are labels. */
static const char *label(const char *name, char room[static 96])
{
    onv_printable(name, room, 96);
    for (char *at = room; *at != '\0'; at++)
        if (strchr("<>&\"'", *at) != NULL) *at = '_';
    return room;
}

/* The upper end of the answer; 0: there is none. */
static uint64_t high_of(const onv_sweep_point *p)
{
    return p->runtimes[p->largest].high_bytes;
}

static uint64_t largest_of(const onv_sweep *sweep)
{
    uint64_t most = 1;
    for (size_t k = 0; k < sweep->n_points; k++)
        if (high_of(&sweep->points[k]) > most) most = high_of(&sweep->points[k]);
    return most;
}

static double height_of(uint64_t bytes, uint64_t most)
{
    return TOP + HEIGHT - (double)bytes / (double)most * HEIGHT;
}

/* Columns are even: sizes mostly double. */
static double column_of(const onv_sweep *sweep, size_t i)
{
    size_t n = sweep->axes[0].n_sizes;
    return LEFT + (n > 1 ? (double)i / (double)(n - 1) * WIDTH : WIDTH / 2.0);
}

/* The points of a runtime's upper or lower end, in their order or backwards. */
static void put_points(const onv_sweep *sweep, size_t r, uint64_t most, bool is_low, FILE *out)
{
    for (size_t i = 0; i < sweep->n_points; i++) {
        size_t k = is_low ? sweep->n_points - 1 - i : i;
        const onv_answer_runtime_info *at = &sweep->points[k].runtimes[r];
        if (sweep->points[k].is_answered)
            fprintf(out, "%.1f,%.1f ", column_of(sweep, k),
                    height_of(is_low ? at->low_bytes : at->high_bytes, most));
    }
}

static void draw_curve(const onv_sweep *sweep, size_t r, uint64_t most, FILE *out)
{
    const char *color = colors[r % (sizeof colors / sizeof colors[0])];
    fprintf(out, "<polygon fill='%s' fill-opacity='0.2' points='", color);
    put_points(sweep, r, most, false, out);
    put_points(sweep, r, most, true, out);
    fprintf(out, "'/>\n<polyline fill='none' stroke='%s' stroke-width='2' points='", color);
    put_points(sweep, r, most, false, out);
    fprintf(out, "'/>\n<text x='%d' y='%d' fill='%s'>%s</text>\n", LEFT + 90 * (int)r, TOP - 16,
            color, sweep->runtimes[r]);
}

static void draw_curves(const onv_sweep *sweep, FILE *out)
{
    char room[96];
    uint64_t most = largest_of(sweep);
    for (size_t d = 0; d < sweep->n_devices; d++) /* a budget that is far above would flatten all */
        if (sweep->usable[d] > most && sweep->usable[d] < 2 * most) most = sweep->usable[d];
    for (int i = 0; i <= 4; i++) {
        uint64_t bytes = most / 4 * (uint64_t)i;
        fprintf(out,
                "<path d='M%d %.1fh%d' stroke='#dddddd'/><text x='%d' y='%.1f' "
                "text-anchor='end'>%.2f GiB</text>\n",
                LEFT, height_of(bytes, most), WIDTH, LEFT - 6, height_of(bytes, most) + 4,
                (double)bytes / (1 << 30));
    }
    for (size_t r = 0; r < sweep->n_runtimes; r++) draw_curve(sweep, r, most, out);
    for (size_t d = 0; d < sweep->n_devices; d++)
        if (sweep->usable[d] <= most)
            fprintf(out,
                    "<path d='M%d %.1fh%d' stroke='#cc0000' stroke-dasharray='6 4'/><text "
                    "x='%d' y='%.1f' text-anchor='end' fill='#cc0000'>%s</text>\n",
                    LEFT, height_of(sweep->usable[d], most), WIDTH, LEFT + WIDTH,
                    height_of(sweep->usable[d], most) - 4, label(sweep->devices[d], room));
    size_t n = sweep->axes[0].n_sizes, every = n / 16 + 1;
    for (size_t i = 0; i < n; i += every)
        fprintf(out, "<text x='%.1f' y='%d' text-anchor='middle'>%" PRId64 "</text>\n",
                column_of(sweep, i), TOP + HEIGHT + 18, sweep->axes[0].sizes[i]);
    fprintf(out, "<text x='%d' y='%d' text-anchor='middle'>%s</text>\n", LEFT + WIDTH / 2,
            TOP + HEIGHT + 42, label(axis_name(&sweep->axes[0]), room));
}

/* Whether a point fits the first budget. */
static bool fits(const onv_sweep *sweep, size_t k)
{
    return sweep->n_devices == 0 || sweep->points[k].fits[0];
}

/* Where it stops fitting the first budget, a line between cells. */
static void draw_end(const onv_sweep *sweep, size_t k, double x, double y, double width,
                     double height, FILE *out)
{
    size_t columns = sweep->axes[1].n_sizes;
    if (k % columns + 1 < columns && fits(sweep, k) != fits(sweep, k + 1))
        fprintf(out, "<path d='M%.1f %.1fv%.1f' stroke='#cc0000' stroke-width='3'/>\n", x + width,
                y, height);
    if (k + columns < sweep->n_points && fits(sweep, k) != fits(sweep, k + columns))
        fprintf(out, "<path d='M%.1f %.1fh%.1f' stroke='#cc0000' stroke-width='3'/>\n", x,
                y + height, width);
}

/* The largest upper end at two sizes. */
static void draw_cell(const onv_sweep *sweep, size_t k, uint64_t most, FILE *out)
{
    const onv_sweep_point *p = &sweep->points[k];
    size_t rows = sweep->axes[0].n_sizes, columns = sweep->axes[1].n_sizes;
    double width = (double)WIDTH / (double)columns, height = (double)HEIGHT / (double)rows;
    size_t row = k / columns, column = k % columns;
    double x = LEFT + (double)column * width, y = TOP + (double)row * height;
    uint64_t high = high_of(p);
    fprintf(out,
            "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='#0072b2' "
            "fill-opacity='%.2f'/>\n",
            x + 1, y + 1, width - 2, height - 2, (double)high / (double)most);
    draw_end(sweep, k, x, y, width, height, out);
    if (width < 60 || height < 14) return;
    if (!p->is_answered)
        return (void)fprintf(out, "<text x='%.1f' y='%.1f' text-anchor='middle'>not sized</text>\n",
                             x + width / 2, y + height / 2 + 4);
    return (void)fprintf(out, "<text x='%.1f' y='%.1f' text-anchor='middle'>%.2f</text>\n",
                         x + width / 2, y + height / 2 + 4, (double)high / (1 << 30));
}

static void draw_map(const onv_sweep *sweep, FILE *out)
{
    char room[96];
    uint64_t most = largest_of(sweep);
    const onv_cli_axis *down = &sweep->axes[0], *across = &sweep->axes[1];
    for (size_t k = 0; k < sweep->n_points; k++) draw_cell(sweep, k, most, out);
    for (size_t i = 0; i < down->n_sizes; i++)
        fprintf(out, "<text x='%d' y='%.1f' text-anchor='end'>%" PRId64 "</text>\n", LEFT - 6,
                TOP + ((double)i + 0.5) * HEIGHT / (double)down->n_sizes + 4, down->sizes[i]);
    for (size_t i = 0; i < across->n_sizes; i++)
        fprintf(out, "<text x='%.1f' y='%d' text-anchor='middle'>%" PRId64 "</text>\n",
                LEFT + ((double)i + 0.5) * WIDTH / (double)across->n_sizes, TOP + HEIGHT + 18,
                across->sizes[i]);
    fprintf(out, "<text x='%d' y='%d'>%s, GiB at most</text>\n", 4, TOP - 16,
            label(axis_name(down), room));
    fprintf(out, "<text x='%d' y='%d' text-anchor='middle'>%s</text>\n", LEFT + WIDTH / 2,
            TOP + HEIGHT + 42, label(axis_name(across), room));
}

static void write_svg(const onv_sweep *sweep, FILE *out)
{
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' "
            "font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' "
            "fill='#ffffff'/>\n",
            LEFT + WIDTH + 30, TOP + HEIGHT + BELOW);
    if (sweep->n_axes == 1)
        draw_curves(sweep, out);
    else
        draw_map(sweep, out);
    fputs("</svg>\n", out);
}

/* --- A page ------------------------------------------------------------------------------------ */

static bool write_html(const onv_sweep *sweep, onv_cli_sink *sink)
{
    char *picture = NULL, *json = json_of(sweep, JSON_COMPACT | JSON_ENSURE_ASCII);
    size_t bytes = 0;
    onv_error error;
    FILE *out = open_memstream(&picture, &bytes);
    if (out != NULL && sweep->n_axes <= 2) write_svg(sweep, out);
    bool good = out != NULL && fclose(out) == 0 && json != NULL &&
                onv_page_write(sweep->model, json, picture, onv_cli_write, sink, &error) == ONV_OK;
    free(picture);
    free(json);
    return good;
}

bool onv_sweep_write(const onv_sweep *sweep, onv_format format, bool unicode, onv_cli_sink *sink)
{
    switch (format) {
    case ONV_FORMAT_JSON: return write_json(sweep, sink);
    case ONV_FORMAT_HTML: return write_html(sweep, sink);
    case ONV_FORMAT_CSV: write_csv(sweep, sink->stream); break;
    case ONV_FORMAT_SVG: write_svg(sweep, sink->stream); break;
    default: write_text(sweep, unicode, sink->stream);
    }
    return true;
}
