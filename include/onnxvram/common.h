/* What all parts of the interface share: the version, names of statuses, safe text. */
#ifndef ONNXVRAM_COMMON_H
#define ONNXVRAM_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; that of the library is onv_version(). One can be older than the other: structs
 * grow at their end alone, and say how large they are. Those that say nothing, because they stand in arrays or pass
 * errors (onv_error, onv_interval, onv_event, onv_graph_value, onv_graph_read, onv_dim_binding, onv_shape_binding, onv_input_value, onv_budget, onv_figure, onv_baseline), never
 * change. */
#define ONV_VERSION_MAJOR 0
#define ONV_VERSION_MINOR 2
#define ONV_VERSION_PATCH 0
#define ONV_VERSION_NUMBER                                                                         \
    (ONV_VERSION_MAJOR * 1000000 + ONV_VERSION_MINOR * 1000 + ONV_VERSION_PATCH)

#ifdef __cplusplus
static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "onnxvram needs a 64-bit platform");
#elif !defined(__wasm__) /* the page of docs/packaging.md, where the program is the only caller */
_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "onnxvram needs a 64-bit platform");
#endif

#if defined(__GNUC__)
#define ONV_API __attribute__((visibility("default")))
#else
#define ONV_API
#endif

/* --- Status and errors ------------------------------------------------------------------------ */

ONV_API const char *onv_status_name(onv_status status);
ONV_API const char *onv_version(void); /* "0.2.0" */

/* Copies `text`, which may come from a model, into out[size] so that it is safe to show on a
 * terminal: control characters, bidirectional overrides and ill-formed UTF-8 become escapes like
 * \x1b. Cut to what fits; always NUL-terminated if size > 0. Returns the length written. */
ONV_API size_t onv_printable(const char *text, char *out, size_t size);

/* Bytes of a size: digits with an optional unit (B, KB, MB, GB, TB: powers of 1000; KiB, MiB, GiB, TiB, and K, M, G, T: powers
 * of 1024). False where the text is none. */
ONV_API bool onv_size_parse(const char *text, uint64_t *bytes);

/* Writes bytes as reports do, at most `size` bytes with their end: "97.3 MiB", "2.30 GiB", or both ends of a range in one
 * unit, "3.78-9.29 GiB", with a dash of Unicode if `unicode`. */
ONV_API void onv_size_text(uint64_t low, uint64_t high, bool unicode, char *text, size_t size);

/* Of a budget what may be used: its bytes less a margin in percent, of at most 100. */
static inline uint64_t onv_budget_usable(uint64_t bytes, unsigned margin_percent)
{
    return bytes / 100 * (100 - margin_percent) + bytes % 100 * (100 - margin_percent) / 100;
}

/* The name of a list (NULL after the last one) that a mistyped word was likely meant to be; NULL where none is
 * near. */
ONV_API const char *onv_nearest_name(const char *word, const char *const *names);

/* Whether a word means that name, in any case of letters, or as other programs call it: "pytorch" is "torch". */
ONV_API bool onv_is_called(const char *word, const char *name);

/* Where there is no row to refer to, and no size. */
#define ONV_NO_INDEX     SIZE_MAX
#define ONV_SIZE_UNKNOWN UINT64_MAX

/* Takes `bytes` bytes at `text`; returns false to stop (the report then fails with ONV_ERR_IO). */
typedef bool (*onv_write_fn)(void *context, const char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
