/* A repository of models of the Triton Inference Server, read. */
#ifndef ONV_CLI_TRITON_H
#define ONV_CLI_TRITON_H

#include "onnxvram/onnxvram.h"

enum { ONV_TRITON_NAME = 256, ONV_TRITON_PATH = 4096, ONV_TRITON_VERSIONS = 8, ONV_TRITON_ORT = 8 };

/* config.pbtxt, as far as it concerns memory. */
typedef struct onv_triton {
    char file[ONV_TRITON_NAME]; /* default_model_filename */
    bool is_onnx;               /* platform or backend is ONNX Runtime, or neither is there */
    bool uses_tensorrt;
    int64_t max_batch; /* 0: the model has no batch of Triton's */
    int64_t instances; /* on one GPU */
    int64_t on_cpu;    /* in the host's memory */
    int64_t
        newest; /* so many of the newest versions are loaded; 0: those that are listed; -1: all */
    int64_t versions[ONV_TRITON_VERSIONS];
    size_t n_versions;
    char ort[ONV_TRITON_ORT]
            [2 * ONV_TRITON_NAME]; /* settings of ONNX Runtime, as --ort takes them */
    size_t n_ort;
} onv_triton;

/* False where the text is none: `error` says in which line. */
bool onv_triton_parse(const char *text, size_t bytes, onv_triton *t, onv_error *error);

#endif
