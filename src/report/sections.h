/* The sections of a report of a model, one file each: as text on a page, and as JSON.
 *
 * A section that was not asked for writes nothing. JSON is written as members into the object that is open; its texts use the
 * writer's `scratch`, which is emptied after each tensor, node or region, so that a large model needs no more memory than a
 * small one. */
#ifndef ONV_REPORT_SECTIONS_H
#define ONV_REPORT_SECTIONS_H

#include "report/footprint.h"
#include "report/format.h"

typedef void onv_text_fn(const onv_view *view, const onv_page *page);
typedef void onv_json_fn(onv_json *json, const onv_view *view);

/* The text report of a model; on a page of Markdown a summary for a pull request: what the model needs, whether it fits, what grew.
 * `top`: how many of the largest tensors. */
void onv_write_view(const onv_view *view, const onv_page *page, unsigned top);
onv_text_fn onv_write_title; /* the file */

/* The whole report. */
void onv_json_write_document(const onv_report_job *job, onv_json *json);
onv_json_fn onv_json_write_bindings, onv_json_write_peak;

/* "timelines": what was kept to be drawn; nothing where nothing was. `named` has the names of tensors and nodes; the
 * view may be its example. */
void onv_json_write_timelines(onv_json *json, const onv_view *view, const onv_view *named);

/* What is not exact, and the diagnostics. */
onv_text_fn onv_write_notes;
onv_json_fn onv_json_write_diagnostics;

/* --- The answer -------------------------------------------------------------------------------- */

/* A waterfall for each runtime that is judged, whether it fits, and why. The same in a line; while a size is unknown, the
 * options that bind what is free. */
onv_text_fn onv_write_answer, onv_write_answer_line;
onv_json_fn onv_json_write_answer;

/* Whether it fits the budgets, where some were given, and the same in some words of a line. */
onv_text_fn onv_write_fit, onv_write_fit_line;
onv_json_fn onv_json_write_fit;

/* "fits", and the largest size where it was searched, with the second figures where they differ. */
void onv_json_write_fit_of(onv_json *json, const onv_fit *fit, const onv_fit_of *of);

/* The largest batch: a number, "none", "no limit found"; both figures where they differ: "602; 1,032". */
const char *onv_batches_text(const onv_page *page, int64_t batch, int64_t by_release);

/* What the export leaves open of a runtime, a line each. */
void onv_write_runtime_remarks(const onv_runtime_result *r, const onv_page *page,
                               uint64_t alignment);

/* Figures that nothing is judged by: bounds, plans, runtimes that were not asked for. In JSON all. */
onv_text_fn onv_write_comparison_runtimes;
onv_json_fn onv_json_write_runtimes;

void onv_json_put_range(onv_json *json, const char *key, onv_range range);        /* a pair */
void onv_json_put_ort_settings(onv_json *json, const onv_ort_settings *settings); /* "options" */
void onv_json_put_total(onv_json *json, onv_range total); /* "low_bytes" and "high_bytes" */

/* --- Free dims --------------------------------------------------------------------------------- */

/* The symbols that are free and the options that bind them; where sizes follow from them, the formula of
 * the peak, and the command with sizes for all. */
onv_text_fn onv_write_open;
onv_json_fn onv_json_write_open;

onv_text_fn onv_write_example_title; /* the sizes of an example */

/* "4.09 G", ">= 1.20 M", "?". */
const char *onv_macs_text(const onv_view *view, const onv_page *page);

/* "12.0 KiB x batch x sequence + 46.0 KiB": products of more dims first. Empty where it is not known; NULL
 * without memory. */
const char *onv_formula_text(const onv_view *view, const onv_page *page, onv_dim amount,
                             onv_label (*label)(uint64_t number));

/* "from sequence = 86 on", "up to sequence = 85": for which sizes the piece is the peak. Empty where no
 * single dim decides. NULL without memory. */
const char *onv_range_text(const onv_view *view, onv_arena *arena, const onv_piece *piece);

/* "--batch 8", "--dim sequence=128" as a shell takes it; N where `size` is below 0. Empty without memory. */
const char *onv_binding_option(const onv_page *page, const onv_free_dim *dim, int64_t size);

/* ", batch = 1, sequence = 128": what is bound. NULL without memory. */
const char *onv_sizes_text(const onv_view *example, const onv_page *page);

/* --- Training ---------------------------------------------------------------------------------- */

onv_text_fn onv_write_training;
onv_json_fn onv_json_write_training;

const char *onv_plan_label(const onv_page *page, const onv_training_plan *plan);

/* "time": an estimate, or the reason why there is none; no member if no time was asked for. A plan's has its overhead, too. */
void onv_json_put_time(onv_json *json, const onv_time *time, bool is_plan);

/* The object that recompute.apply() takes, as the member `key`; NULL: alone. */
void onv_json_put_plan(onv_json *json, const char *key, const onv_training_plan *plan);

/* Parts of a plan. `are_places`: segments from place to place, not from node to node. */
void onv_json_put_segments(onv_json *json, const onv_training_plan *plan, bool are_places);
void onv_json_put_memory_budget(onv_json *json, double budget);

/* --- What was asked for beside it -------------------------------------------------------------- */

/* What a replay on a device found. The same in some words of a line. */
onv_text_fn onv_write_replays, onv_write_replay_verdict;
onv_json_fn onv_json_write_replays;

/* What was measured, beside what is predicted. */
onv_text_fn onv_write_measured;
onv_json_fn onv_json_write_measured;

/* Weights in fewer bits, the key-value cache, changes that save memory. */
onv_text_fn onv_write_quantized, onv_write_kv_cache, onv_write_savings, onv_write_global_savings;
onv_json_fn onv_json_write_quantized, onv_json_write_kv_cache, onv_json_write_savings;

/* ONNX Runtime's settings side by side, and how the best are written in Python and C++; what a sequence of requests leaves
 * behind; several sessions in one process. */
onv_text_fn onv_write_advice, onv_write_requests;
onv_json_fn onv_json_write_sessions;
void onv_write_together(const onv_report_job *job);
void onv_json_write_together(const onv_report_job *job, onv_json *json);

/* The figures beside those of a baseline. The one that grew most, in some words of a line. */
onv_text_fn onv_write_gate, onv_write_growth_verdict;
onv_json_fn onv_json_write_gate;

/* --- Several models ---------------------------------------------------------------------------- */

/* Keeps the row of the model that is written, for the comparison. */
onv_status onv_compare(onv_report_job *job);

/* The models side by side. */
void onv_write_comparison(const onv_report_job *job);

/* "+1.2 MiB", "-512 B"; "" where they are equal. */
const char *onv_change_text(const onv_page *page, uint64_t before, uint64_t now);

/* "+28%", "-3%", "x12.5", "=". NULL without memory. */
const char *onv_difference_text(const onv_page *page, uint64_t first, uint64_t now);

/* Bytes over the steps in at most so many columns, each the largest of its steps as one of nine levels. NULL without
 * memory. */
const char *onv_levels_text(const onv_page *page, const uint64_t *bytes, uint32_t n,
                            uint32_t columns, uint64_t peak);

#endif
