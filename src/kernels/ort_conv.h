/* What ONNX Runtime's CUDA provider asks its arena for while a convolution runs. */
#ifndef ONV_KERNELS_ORT_CONV_H
#define ONV_KERNELS_ORT_CONV_H

#include "kernels/cudnn.h"

/* The provider's option cudnn_conv_algo_search. In 1.31 none of them runs an engine to measure it: they
 * differ in which of cuDNN's heuristics names it. */
typedef enum onv_ort_conv_search {
    ONV_ORT_CONV_EXHAUSTIVE, /* the default */
    ONV_ORT_CONV_HEURISTIC,
    ONV_ORT_CONV_DEFAULT,
} onv_ort_conv_search;

/* The plan is made at the first run with a shape, and each run takes its workspace from the arena and gives it back:
 * the first run and later ones take the same. cudnn_conv_use_max_workspace changes nothing. Of `settings` it
 * wants the compute capability and `tf32` (the option use_tf32, on by default). */
onv_conv_workspace onv_ort_conv_workspace(const onv_conv_problem *problem,
                                          onv_ort_conv_search search,
                                          const onv_cuda_library_settings *settings);

#endif
