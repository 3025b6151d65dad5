/* Notes are read by these: stretches of text that have a length and no end. Each function looks at a byte a fixed
 * number of times, and whatever moves a stretch forward looks at no byte again, so that loops over them are linear.
 * Arguments that are `const char *` are literals of the program. */
#ifndef ONV_LOAD_TEXT_H
#define ONV_LOAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct onv_text {
    const char *at;
    size_t length;
} onv_text;

onv_text onv_text_of(const char *text);

/* What is behind the first `n` bytes, of which there are so many. */
static inline onv_text onv_text_skip(onv_text t, size_t n)
{
    return n > 0 ? (onv_text){t.at + n, t.length - n} : t;
}

bool onv_text_same(onv_text a, onv_text b);
bool onv_text_is(onv_text t, const char *text);
bool onv_text_begins(onv_text t, const char *with);
bool onv_text_ends(onv_text t, const char *with);
bool onv_text_is_number(onv_text t); /* digits alone; also of nothing */

/* The stretch from the first `part` on; empty where it has none. */
onv_text onv_text_from(onv_text t, const char *part);
/* The same, but from behind it. */
onv_text onv_text_behind(onv_text t, const char *part);
bool onv_text_has(onv_text t, const char *part);

/* Up to the first of these bytes, or all of it. */
onv_text onv_text_until(onv_text t, const char *bytes);
/* The last bytes, of those that names are made of. */
onv_text onv_text_last_word(onv_text t);
/* Without blanks at both ends. */
onv_text onv_text_trim(onv_text t);

/* The first byte of it; 0 where it is empty. */
static inline char onv_text_first(onv_text t)
{
    return (char)(t.length > 0 ? t.at[0] : '\0');
}

static inline bool onv_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool onv_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || onv_is_digit(c) || c == '_';
}

/* The bytes of a word that are first in it. */
onv_text onv_text_word(onv_text t);

/* What follows moves `rest`; false at its end. */

/* A part up to a byte, a line, say, or up to the end: "a,,b," has three. */
bool onv_next_part(onv_text *rest, char byte, onv_text *part);
/* The next element of a list that Python wrote, without its quotation marks. */
bool onv_next_quoted(onv_text *rest, onv_text *element);
/* A token of Python: a word, or any other byte. */
bool onv_next_token(onv_text *rest, onv_text *token);
/* How often the code calls what is called so, with these bytes behind its name. */
uint32_t onv_text_count_calls(onv_text code, onv_text callee, const char *behind);

/* The next name behind a `%`, as calls name tensors. */
bool onv_next_tensor(onv_text *rest, onv_text *name);

/* One of the calls of Python that were running, as traces have them: `File "PATH", line 213, in forward`, and the line of
 * code below it. */
typedef struct onv_trace_frame {
    onv_text path, line, function;
    onv_text code; /* trimmed; empty where the trace lacks it */
    onv_text rest; /* of the trace, from this frame on */
} onv_trace_frame;

bool onv_next_frame(onv_text *rest, onv_trace_frame *frame);

/* The length of the well-formed UTF-8 sequence at `text`, which has `room` bytes, 1 or more, or ends with NUL and has
 * ONV_UTF8_MOST; 0 if there is none. `*code` is its character. */
enum { ONV_UTF8_MOST = 4 };
size_t onv_utf8_decode(const void *text, size_t room, uint32_t *code);

#endif
