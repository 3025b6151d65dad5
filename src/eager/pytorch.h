/* Releases of PyTorch, as far as their memory differs.
 *
 * A release is a number, 1000 * major + minor, so that rules compare: onv_before_pytorch(options, 2010).
 * docs/runtimes.md says which rules changed when, and how that is known.
 */
#ifndef ONV_EAGER_PYTORCH_H
#define ONV_EAGER_PYTORCH_H

#include "eager/eager.h"

#define ONV_PYTORCH_RELEASE(major, minor) (1000 * (major) + (minor))

/* The newest one first, as text; NULL past the last. */
const char *onv_pytorch_release(size_t index);

/* "1.10", "2.6.0", "2.15.1+cu132": the number of the release; NULL: the newest. ONV_ERR_USAGE where it is
 * not one of the list. */
onv_status onv_pytorch_find(const char *name, uint32_t *version, onv_error *err);

/* Options without a version are those of the newest release. */
static inline bool onv_before_pytorch(const onv_lower_options *options, uint32_t version)
{
    return options->pytorch_version != 0 && options->pytorch_version < version;
}

/* Does the backward of the operation keep its first input, which it does not read? */
bool onv_pytorch_keeps_input(const onv_lower_options *options, const onv_eager_op *op);

#endif
