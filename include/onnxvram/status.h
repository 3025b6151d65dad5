/* Statuses and errors. Nothing else is here, since nearly every file of the library includes it. */
#ifndef ONNXVRAM_STATUS_H
#define ONNXVRAM_STATUS_H

typedef enum onv_status {
    ONV_OK = 0,
    ONV_ERR_MEMORY,   /* an allocation failed */
    ONV_ERR_IO,       /* a file could not be opened, read or written */
    ONV_ERR_FORMAT,   /* not an ONNX file, or a damaged one */
    ONV_ERR_MODEL,    /* the model contradicts itself or the operators' definitions */
    ONV_ERR_LIMIT,    /* a limit of onv_limits was passed */
    ONV_ERR_OVERFLOW, /* a size does not fit 64 bits */
    ONV_ERR_USAGE,    /* an option that makes no sense, or not for this model */
    ONV_ERR_DEVICE,   /* a GPU, its driver or its memory */
    ONV_ERR_CANCELLED
} onv_status;

typedef struct onv_error {
    onv_status code;
    char message[512]; /* one line, without file name; may hold the model's own text */
    char node[160];    /* the node it is about, "" if none */
    char op_type[64];
} onv_error;

#endif
