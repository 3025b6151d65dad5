/* The parts of the text report, which stand in several files. */
#ifndef ONV_REPORT_TEXT_H
#define ONV_REPORT_TEXT_H

#include "base/checked.h"
#include "report/footprint.h"
#include "report/format.h"

/* The text report of a model; on a page of Markdown a summary for a pull request: what the model needs, whether it fits, what grew. */
void onv_write_view(const onv_view *view, const onv_page *page, const onv_report_options *options);

/* "4.09 G", ">= 1.20 M", "?". */
const char *onv_macs_text(const onv_view *view, const onv_page *page);

/* The file. */
void onv_write_title(const onv_view *view, const onv_page *page);

/* The symbols that are free and the options that bind them; where sizes follow from them, the formula of
 * the peak, and the command with sizes for all. */
void onv_write_open(const onv_view *view, const onv_page *page);

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

/* The sizes of an example. */
void onv_write_example_title(const onv_view *example, const onv_page *page);

/* The answer: a waterfall for each runtime that is judged, whether it fits, and why. Nothing while a size is unknown. */
void onv_write_answer(const onv_view *view, const onv_page *page);

/* The same in a line; while a size is unknown, the options that bind what is free. */
void onv_write_answer_line(const onv_view *view, const onv_page *page);

/* Whether it fits the budgets, where some were given, and the same in some words of a line. */
void onv_write_fit(const onv_answer *answer, const onv_page *page);
void onv_write_fit_line(const onv_answer *answer, const onv_page *page);

/* What the export leaves open of a runtime, a line each. */
void onv_write_runtime_remarks(const onv_runtime_result *r, const onv_page *page,
                               uint64_t alignment);

/* Figures that nothing is judged by: bounds, plans, runtimes that were not asked for. */
void onv_write_comparison_runtimes(const onv_view *view, const onv_page *page);

/* What training needs, where it was asked for. */
void onv_write_training(const onv_view *view, const onv_page *page, bool verbose);

/* The largest batch: a number, "none", "no limit found"; both figures where they differ: "602; 1,032". */
const char *onv_batches_text(const onv_page *page, int64_t batch, int64_t by_release);
const char *onv_plan_label(const onv_page *page, const onv_training_plan *plan);

/* What a replay on a device found, where it was asked for. */
void onv_write_replays(const onv_view *view, const onv_page *page, bool verbose);

/* The same in some words of a line, or nothing. */
void onv_write_replay_verdict(const onv_view *view, const onv_page *page);

/* What was measured, beside what is predicted (text_measured.c). */
void onv_write_measured(const onv_view *view, const onv_page *page);

/* Bytes over the steps in at most so many columns, each the largest of its steps as one of nine levels. NULL without
 * memory. */
const char *onv_levels_text(const onv_page *page, const uint64_t *bytes, uint32_t n,
                            uint32_t columns, uint64_t peak);

/* What would make it smaller. */
/* Weights in fewer bits, the key-value cache, changes that save memory: where there are any (text_what_if.c). */
void onv_write_quantized(const onv_view *view, const onv_page *page);
void onv_write_kv_cache(const onv_view *view, const onv_page *page);
void onv_write_savings(const onv_view *view, const onv_page *page);
void onv_write_global_savings(const onv_view *view, const onv_page *page);

/* ONNX Runtime's settings side by side, and how the best are written in Python and C++; what a sequence of requests leaves
 * behind; several sessions in one process (text_sessions.c). */
void onv_write_advice(const onv_view *view, const onv_page *page, bool verbose);
void onv_write_requests(const onv_view *view, const onv_page *page, bool verbose);
void onv_write_together(const onv_report_job *job);

static inline bool onv_fits_together(const onv_together_info *info, const onv_device_fit *device)
{
    return (info->is_sequential ? info->largest_high : info->total_high) <=
           device->fit.usable_bytes;
}

/* What is not exact, and the diagnostics. */
void onv_write_notes(const onv_view *view, const onv_page *page, bool verbose);

/* "+1.2 MiB", "-512 B"; "" where they are equal. */
const char *onv_change_text(const onv_page *page, uint64_t before, uint64_t now);

/* "+28%", "-3%", "x12.5", "=". NULL without memory. */
const char *onv_difference_text(const onv_page *page, uint64_t first, uint64_t now);

/* The figures beside those of a baseline, where one was given. */
void onv_write_gate(const onv_view *view, const onv_page *page);

/* The figure that grew most, in some words of a line, or nothing. */
void onv_write_growth_verdict(const onv_view *view, const onv_page *page);

/* Keeps the row of the model that is written, for the comparison. */
onv_status onv_compare(onv_report_job *job);

/* The models side by side. */
void onv_write_comparison(const onv_report_job *job);

#endif
