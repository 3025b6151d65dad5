/* Whose libraries are assumed: what decides how much cuBLAS and cuDNN take beside the tensors.
 *
 * This folder holds pure functions from a problem to bytes; it knows no runtime. */
#ifndef ONV_KERNELS_DEVICE_H
#define ONV_KERNELS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* Which of the workspaces that cuDNN may take for a convolution. */
typedef enum onv_workspace_choice {
    ONV_WORKSPACE_LIKELY,
    ONV_WORKSPACE_LEAST,
    ONV_WORKSPACE_MOST,
} onv_workspace_choice;

typedef struct onv_cuda_library_settings {
    uint32_t
        compute_capability; /* 10 * major + minor: 90, 89, 86, 80, 75; 0: no device, and no bytes */
    uint32_t pytorch;       /* 1000 * major + minor: 2015, 1011; 0: not PyTorch */
    uint64_t
        device_bytes; /* of its memory, where workspaces have to fit beside tensors; 0: no limit */
    bool tf32;        /* convolutions of float32 may use TF32 */
    bool channels_last; /* tensors of convolutions are NHWC */
    bool benchmark;     /* cuDNN measures engines, not its heuristics decide */
    bool first;         /* with `benchmark`: the call that tries them */
    onv_workspace_choice choice;
    /* Convolutions that were asked for lately, of this device with these settings but for `channels_last` and `first`
     * (cudnn.h); NULL: none are kept. */
    struct onv_conv_answers *answers;
} onv_cuda_library_settings;

/* H100, PyTorch 2.15 as it is without settings. */
onv_cuda_library_settings onv_cuda_library_defaults(void);

#endif
