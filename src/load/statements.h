/* The statements of Python that were running when an operation was called, as a trace of the exporter
 * has them: one of each `forward` of the calls around it, outer first.
 *
 *     "213c:features;259c:input;122c:new_features;88l:output<input,mask;210h:;"
 *
 * The number of a line; how it calls what runs next; the names that it binds, with commas; where it calls a
 * member of a list, the names that it reads, with "(" at their end where the line is not whole. Empty where
 * the trace does not fit the calls; an exporter may note more calls than there are statements, and then
 * the inner ones are not the operation's.
 */
#ifndef ONV_LOAD_STATEMENTS_H
#define ONV_LOAD_STATEMENTS_H

#include "ir/notes.h"
#include "load/text.h"

enum {
    ONV_STATEMENT_CALLS = 'c', /* it is the one call in the line */
    ONV_STATEMENT_LOOPS = 'l', /* a member of a list, which stands for the others, too */
    ONV_STATEMENT_SHOWS = 's', /* it stands in the line, too */
    ONV_STATEMENT_HIDES =
        'h', /* it does not: another function may stand between, with its own names */
};

/* In place of a name: what a dictionary has. */
#define ONV_STATEMENT_MEMBER "*"

/* In place of the colon: a line that binds plain names, and hides the call or goes through a list, so that any of its results may be
 * what a name has; one that does not tell how long its results have names (it has several statements, sets a part of something, or is
 * a part of a longer one); and one whose results something outside of the call may keep. */
#define ONV_STATEMENT_MIXED '~'
#define ONV_STATEMENT_ONE                                                                          \
    '=' /* likewise, where one name, or one member, gets what one call or operator gives */
#define ONV_STATEMENT_OPEN   '!'
#define ONV_STATEMENT_LEAVES '^'

/* Behind a name that a line reads a member of, by a number: `outputs[0]`. */
#define ONV_STATEMENT_INDEXED '['

/* Before the name of a list that a line adds to: `features.append(self.layer(x))`, which binds no name. */
#define ONV_STATEMENT_ADDS '+'

/* Before the names that a line reads, and behind them where it goes on in the next one. */
#define ONV_STATEMENT_READS   '<'
#define ONV_STATEMENT_GOES_ON '('

/* Of notes with `calls` and `aten_op`, by a trace of Python. `folded`: the weight of an operation into which the exporter folded
 * the one that it notes, or NULL. Sets `statements`, and what else they tell. */
onv_status onv_statements_read(onv_model *model, onv_text trace, const char *folded,
                               onv_notes *notes, onv_error *err);

/* Given all frames of a trace from the outermost on, `own`, {0} at first, is the innermost one outside of PyTorch's files. */
void onv_statements_look_at(const onv_trace_frame *frame, onv_trace_frame *own);
/* Its line as "net/model.py:213". NULL: the trace has none. */
onv_status onv_statements_name_line(onv_model *model, const onv_trace_frame *own, const char **line,
                                    onv_error *err);

#endif
