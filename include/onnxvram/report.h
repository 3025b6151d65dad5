/* Reports: everything that leaves the program as text. */
#ifndef ONNXVRAM_REPORT_H
#define ONNXVRAM_REPORT_H

#include "analysis.h"
#include "planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sessions of ONNX Runtime in one process on one device: each has an arena and handles of its own, the
 * context is there once. */
typedef struct onv_together_info {
    uint64_t sessions;
    uint64_t arenas_low, arenas_high;
    uint64_t shared_arena; /* what one arena for all of them grows to, one run at a time */
    uint64_t driver_bytes;
    uint64_t context_low, context_high;
    uint64_t total_low, total_high; /* with an arena each */
    /* Of the session that needs most, with the context: all of it, where each ends before the next one is made. */
    uint64_t largest_low, largest_high;
    bool
        is_sequential; /* the caller sets it, for reports: they are made and ended one after the other */
} onv_together_info;

/* Each analysis `instances[i]` times. ONV_ERR_USAGE where one has no figure for the runtime ort. */
ONV_API onv_status onv_together_get(onv_analysis *const *analyses, const unsigned *instances,
                                    size_t count, onv_together_info *info, size_t size,
                                    onv_error *error);

static inline onv_status onv_together(onv_analysis *const *analyses, const unsigned *instances,
                                      size_t count, onv_together_info *info, onv_error *error)
{
    return onv_together_get(analyses, instances, count, info, sizeof *info, error);
}

/* A session of a process: it runs once in each request, before that event of what the process keeps outside its sessions. */
typedef struct onv_session_run {
    onv_analysis *analysis; /* with a figure for the runtime ort */
    size_t before;
} onv_session_run;

/* Whether a device of `bytes`, `taken` of them before all else, has room for a process that makes these sessions, each with an arena
 * of its own, and then serves two requests alike. `events` are allocations in one more arena, which end with their request. Arenas
 * that are refused a region ask for less, as ONNX Runtime does. Its initializers come in another order in each process: *fit is in how
 * many of the *tried ones. */
ONV_API onv_status onv_process_fits(const onv_session_run *sessions, size_t n_sessions,
                                    const onv_event *events, size_t n_events, uint64_t taken,
                                    uint64_t bytes, unsigned *fit, unsigned *tried,
                                    onv_error *error);

typedef enum onv_format {
    ONV_FORMAT_TEXT,
    ONV_FORMAT_JSON,
    ONV_FORMAT_CSV,    /* the tensors, one row each */
    ONV_FORMAT_LAYERS, /* a table per module, from the scopes in node names */
    ONV_FORMAT_DUMP_GRAPH,
    ONV_FORMAT_DUMP_INTERVALS,
    ONV_FORMAT_DUMP_PLAN,
    ONV_FORMAT_DUMP_TRACE,
    ONV_FORMAT_DUMP_REPLAY,
    ONV_FORMAT_CHECKPOINTS,        /* the chosen checkpointing plan, else the knee of them: JSON, */
    ONV_FORMAT_CHECKPOINTS_PYTHON, /* a module of Python */
    ONV_FORMAT_ORT_PARTITION,      /* bytes by node, for ONNX Runtime's partitioning by resources */
    ONV_FORMAT_FORMULA,            /* peak and totals as functions of the free dims: text, */
    ONV_FORMAT_FORMULA_PYTHON,     /* Python, */
    ONV_FORMAT_FORMULA_C,          /* C */
    ONV_FORMAT_MARKDOWN,           /* a summary for a pull request */
    ONV_FORMAT_DIFF,          /* of two models: what changed from the first to the second; text, */
    ONV_FORMAT_DIFF_MARKDOWN, /* Markdown, */
    ONV_FORMAT_DIFF_JSON,     /* JSON */
    ONV_FORMAT_ONNX, /* the model itself, with shapes, lifetimes and the nodes in that order */
    ONV_FORMAT_DUMP_HEADER, /* the plan of the runtime arena as a header of C */
    ONV_FORMAT_HTML, /* a page to look at, which asks for nothing else: needs onv_options.timelines */
    ONV_FORMAT_SVG, /* live memory over the steps as a picture: likewise */
    /* For viewers of other projects, of one model with all sizes; likewise. */
    ONV_FORMAT_MEMORY_VIZ,     /* PyTorch's: the pickle of torch.cuda.memory._dump_snapshot */
    ONV_FORMAT_PERFETTO,       /* trace events as JSON */
    ONV_FORMAT_MODEL_EXPLORER, /* Model Explorer's node data, JSON */
    ONV_FORMAT_DUMP_PROGRAM,   /* the calls of PyTorch's program, one per line */
    ONV_FORMAT_MEASURED, /* what was measured next to the prediction, onv_options.snapshot: text, */
    ONV_FORMAT_MEASURED_MARKDOWN /* Markdown */
} onv_format;

/* A file that could not be analysed, and why. Texts are the caller's. */
typedef struct onv_failed_file {
    const char *file;
    onv_error why;
} onv_failed_file;

/* They may come until the end of a report is written. */
typedef struct onv_failed_files {
    const onv_failed_file *at;
    size_t count;
} onv_failed_files;

typedef struct onv_report_options {
    size_t struct_size;
    bool color;
    bool unicode;                      /* bars and lines in Unicode, else ASCII */
    unsigned width;                    /* columns; 0: 80 */
    unsigned top;                      /* how many of the largest tensors; 0: 10 */
    unsigned layer_depth;              /* scopes of ONV_FORMAT_LAYERS; 0: all */
    int verbosity;                     /* -1 quiet, 0, 1 verbose */
    const onv_together_info *together; /* said of all models; NULL: nothing */
    const onv_failed_files *failed;    /* "errors" of ONV_FORMAT_JSON; NULL: none */
    const char *const *command;        /* the program's words, which a page changes to ask on */
    size_t n_command;                  /* 0: not shown */
} onv_report_options;

ONV_API void onv_report_options_init(onv_report_options *options, size_t size);

static inline onv_report_options onv_report_options_default(void)
{
    onv_report_options options;
    onv_report_options_init(&options, sizeof options);
    return options;
}

ONV_API onv_status onv_report(const onv_analysis *const *analyses, size_t count, onv_format format,
                              const onv_report_options *options, onv_write_fn write, void *context,
                              onv_error *error);

/* The page of ONV_FORMAT_HTML around another document: what onnxvram sweep makes. `json`: an object that web/ knows; `still`: markup that
 * shows without JavaScript, made safe by the caller. */
ONV_API onv_status onv_page_write(const char *title, const char *json, const char *still,
                                  onv_write_fn write, void *context, onv_error *error);

/* A report of models that other processes analyse, one after another. Formats that compare or draw all models together
 * have none; onv_report writes those, as all that say something of `together`. */
typedef struct onv_report_stream onv_report_stream;

ONV_API bool onv_report_can_stream(onv_format format);

/* `expected`: how many models will come, at most. The text is that of onv_report for the models that came. */
ONV_API onv_status onv_report_begin(onv_format format, size_t expected,
                                    const onv_report_options *options, onv_write_fn write,
                                    void *context, onv_report_stream **stream, onv_error *error);

/* onv_report_part writes what that process hands to the one with the
 * stream, in a form of this release; `expected` and `options` are those of onv_report_begin. A part may come from a
 * process that is not trusted: one that is cut or changed is refused with ONV_ERR_FORMAT, or is text as it came. */
ONV_API onv_status onv_report_part(const onv_analysis *analysis, onv_format format, size_t expected,
                                   const onv_report_options *options, onv_write_fn write,
                                   void *context, onv_error *error);
ONV_API onv_status onv_report_add_part(onv_report_stream *stream, const void *part, size_t bytes,
                                       onv_error *error);

/* Writes the end, where everything else was written, and destroys the stream in any case. NULL: nothing. */
ONV_API onv_status onv_report_end(onv_report_stream *stream, onv_error *error);

/* Writes the file of a model once more, with PyTorch's program of it inside (onv_options.program): one entry of the metadata, which
 * replaces an earlier one. Weights are copied byte for byte. `limits` may be NULL. ONV_ERR_USAGE: the program is of another model. */
ONV_API onv_status onv_attach_program(const char *model, const char *program,
                                      const onv_limits *limits, onv_write_fn write, void *context,
                                      onv_error *error);

#ifdef __cplusplus
}
#endif

#endif
