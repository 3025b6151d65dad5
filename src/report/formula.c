/* The formula of the peak: as text, as a Python function, as a C function. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "report/quoted.h"
#include "report/text.h"
#include "report/value.h"

/* --- Names ------------------------------------------------------------------------------------- */

/* Free dims as identifiers of a programming language; in the order of the pool's symbols. */
typedef struct names {
    const onv_dims *dims;
    const char **of; /* by symbol index */
} names;

/* Words of both languages, and the functions that the formulas call. */
static bool take_reserved(onv_strings *taken)
{
    static const char *const words[] = {
        "and",     "as",       "assert",     "async",    "auto",     "await",    "bool",
        "break",   "case",     "char",       "class",    "const",    "continue", "def",
        "default", "del",      "do",         "double",   "elif",     "else",     "enum",
        "except",  "extern",   "finally",    "float",    "for",      "from",     "global",
        "goto",    "if",       "import",     "in",       "inline",   "int",      "is",
        "lambda",  "long",     "match",      "max",      "min",      "modulo",   "not",
        "or",      "pass",     "raise",      "register", "restrict", "return",   "short",
        "signed",  "sizeof",   "static",     "struct",   "switch",   "try",      "type",
        "typedef", "union",    "unsigned",   "void",     "volatile", "while",    "with",
        "yield",   "int64_t",  "floordiv",   "min2",     "max2",     "None",     "True",
        "False",   "nonlocal", "peak_bytes",
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (onv_intern(taken, words[i]) == NULL) return false;
    return true;
}

static bool make_names(names *n, const onv_view *view, onv_arena *arena)
{
    enum { MOST_CHARS = 60 };
    onv_strings taken;
    onv_strings_init(&taken, arena);
    n->dims = &view->model.dims;
    n->of = ONV_ARENA_ARRAY(arena, const char *, n->dims->n_symbols);
    bool done = n->of != NULL && take_reserved(&taken);
    for (uint32_t i = 0; done && i < n->dims->n_symbols; i++) {
        const char *name = onv_dim_symbol_name(n->dims, onv_dim_symbol_at(n->dims, i));
        const char *prefix = isalpha((unsigned char)name[0]) ? "" : "dim_";
        n->of[i] = onv_identifier(&taken, arena, prefix, name, MOST_CHARS, i);
        done = n->of[i] != NULL;
    }
    onv_strings_cleanup(&taken);
    return done;
}

static const char *name_of(const void *context, onv_dim symbol)
{
    const names *n = context;
    return n->of[onv_dim_symbol_index(n->dims, symbol)];
}

/* --- Languages ------------------------------------------------------------- */

typedef struct formula_language {
    onv_dim_syntax syntax;
    const char *comment, *comment_end;
    const char *before;        /* the first lines: helpers */
    const char *head, *middle; /* of a function: before its name, between name and parameters */
    const char *parameter;     /* before the name of a parameter */
    const char *none;          /* where there is no parameter */
    const char *open, *close;  /* around the expression */
} formula_language;

static const formula_language python = {
    .syntax = {.floor = {"(", " // ", ")"}, .mod = {"(", " % ", ")"}, .min = "min(", .max = "max("},
    .comment = "# ",
    .comment_end = "",
    .before = "",
    .head = "def ",
    .parameter = "",
    .none = "",
    .open = "):\n    return ",
    .close = "\n",
};

static const formula_language c_language = {
    .syntax = {.floor = {"floordiv(", ", ", ")"},
               .mod = {"modulo(", ", ", ")"},
               .min = "min2(",
               .max = "max2(",
               .two_operands = true},
    .comment = "/* ",
    .comment_end = " */",
    .before =
        "#include <stdint.h>\n\n"
        "static inline int64_t floordiv(int64_t a, int64_t b)\n"
        "{\n    return a / b - (a % b != 0 && (a < 0) != (b < 0));\n}\n"
        "static inline int64_t modulo(int64_t a, int64_t b) { return a - b * floordiv(a, b); }\n"
        "static inline int64_t min2(int64_t a, int64_t b) { return a < b ? a : b; }\n"
        "static inline int64_t max2(int64_t a, int64_t b) { return a > b ? a : b; }\n",
    .head = "static inline int64_t ",
    .parameter = "int64_t ",
    .none = "void",
    .open = ")\n{\n    return ",
    .close = ";\n}\n",
};

typedef struct maker {
    const onv_view *view;
    onv_writer *out;
    onv_arena *arena;
    const formula_language *language;
    onv_dim_syntax syntax;
    names names;
} maker;

static void write_dim(const maker *m, onv_dim d)
{
    const char *text = onv_dim_text_in(&m->view->model.dims, m->arena, d, &m->syntax);
    if (text != NULL) onv_write_text(m->out, text); /* names are identifiers */
}

/* Each free dim, in the order of the inputs. */
static void write_parameters(const maker *m, const char *before)
{
    size_t n = m->view->infer.free_dims.count;
    const onv_dims *dims = &m->view->model.dims;
    for (size_t k = 0; k < n; k++) {
        if (k > 0) onv_write_text(m->out, ", ");
        onv_write_text(m->out, before);
        onv_dim symbol = onv_dim_symbol_named(dims, m->view->infer.free_dims.at[k].name);
        if (onv_dim_is_known(symbol))
            onv_write_text(m->out, m->names.of[onv_dim_symbol_index(dims, symbol)]);
    }
}

static void write_function_head(const maker *m, const char *name)
{
    bool none = m->view->infer.free_dims.count == 0;
    onv_write_format(m->out, "\n%s%s(", m->language->head, name);
    onv_write_text(m->out, none ? m->language->none : "");
    write_parameters(m, m->language->parameter);
    onv_write_text(m->out, m->language->open);
}

static void write_function(const maker *m, const char *name, onv_dim value)
{
    if (!onv_dim_is_known(value)) return;
    write_function_head(m, name);
    write_dim(m, value);
    onv_write_text(m->out, m->language->close);
}

static void write_largest(const maker *m, const char *name, const onv_dim *pieces, uint32_t n)
{
    const char *max = m->syntax.max;
    if (n == 0 || name == NULL) return;
    write_function_head(m, name);
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool opens = n > 1 && (m->syntax.two_operands ? i + 1 < n : i == 0);
        if (i > 0) onv_write_text(m->out, ",\n        ");
        if (opens) onv_write_text(m->out, max);
        open += opens;
        write_dim(m, pieces[i]);
    }
    while (open-- > 0) onv_write_text(m->out, ")");
    onv_write_text(m->out, m->language->close);
}

static void write_peak(const maker *m)
{
    onv_dim pieces[ONV_MAX_PIECES];
    const onv_formula *f = m->view->formula;
    for (uint32_t i = 0; i < f->n_pieces; i++) pieces[i] = f->pieces[i].bytes;
    write_largest(m, "peak_bytes", pieces, f->n_pieces);
}

static void write_total(const maker *m)
{
    if (m->view->formula->n_pieces == 0) return;
    write_function_head(m, "total_bytes");
    onv_write_format(m->out, "%llu + peak_bytes(", (unsigned long long)m->view->live.weight_bytes);
    write_parameters(m, "");
    onv_write_text(m->out, ")");
    onv_write_text(m->out, m->language->close);
}

/* "torch_tensors_low_bytes" */
static const char *figure_name(onv_arena *arena, const onv_sampled_figure *of)
{
    return onv_arena_printf(arena, "%s_tensors_%s_bytes", of->name, of->is_upper ? "high" : "low");
}

/* What the formulas of runtimes are of, and where that was seen. NULL without memory. */
static const char *seen_where(const onv_sampled *s, onv_arena *arena)
{
    const char *text = onv_arena_printf(
        arena, "tensors at their peak, before the allocator; the same as %u analyses, for",
        (unsigned)s->n_points);
    for (uint32_t i = 0; i < s->n_dims && text != NULL; i++) {
        const onv_sampled_dim *d = &s->dims[i];
        text = onv_arena_printf(arena, "%s%s %s from %" PRId64 " to %" PRId64, text,
                                i > 0 ? "," : "", d->name, d->unit * d->low, d->unit * d->high);
        if (text != NULL && d->unit > 1)
            text = onv_arena_printf(arena, "%s in steps of %" PRId64, text, d->unit);
    }
    return text;
}

static void write_comment(const maker *m, const char *text)
{
    if (text == NULL) return;
    onv_write_text(m->out, m->language->comment);
    onv_write_clean(m->out, text, ONV_CLEAN_ASCII);
    onv_write_format(m->out, "%s\n", m->language->comment_end);
}

/* What a name of a model may hold ends no comment. */
static const char *in_comment(onv_arena *arena, const char *text)
{
    char *copy = onv_arena_printf(arena, "%s", text);
    for (char *c = copy; c != NULL && *c != '\0'; c++)
        if (*c == '*' || *c == '\\') *c = '_';
    return copy;
}

static void write_comments(const maker *m)
{
    const onv_view *view = m->view;
    write_comment(m,
                  onv_arena_printf(
                      m->arena, "%s: bytes, for sizes of at least 1",
                      in_comment(m->arena, view->model.path != NULL ? view->model.path : "model")));
    if (view->live.bounded > 0)
        write_comment(m, "sizes that depend on the data are counted at their upper bounds");
    if (view->formula->why_not != NULL)
        write_comment(m, onv_arena_printf(m->arena, "no formula of the peak: %s",
                                          in_comment(m->arena, view->formula->why_not)));
    if (!onv_dim_is_known(view->formula->macs))
        write_comment(m, "the multiply-accumulates of some node are not known");
}

static onv_status write_code(const onv_report_job *job, const formula_language *language)
{
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "a formula is of one model at a time");
    maker m = {.view = job->views[0],
               .out = job->out,
               .arena = job->arena,
               .language = language,
               .syntax = language->syntax};
    if (!make_names(&m.names, m.view, m.arena)) return onv_fail_memory(job->err);
    m.syntax.name = name_of;
    m.syntax.context = &m.names;
    write_comments(&m);
    onv_write_text(m.out, language->before);
    const onv_formula *f = m.view->formula;
    write_peak(&m);
    write_total(&m);
    write_function(&m, "input_bytes", f->input_bytes);
    write_function(&m, "output_bytes", f->output_bytes);
    write_function(&m, "activation_bytes", f->activation_bytes);
    write_function(&m, "macs", f->macs);
    const onv_sampled *s = &m.view->sampled;
    if (s->n_figures > 0) {
        onv_write_text(m.out, "\n");
        write_comment(
            &m, in_comment(m.arena, s->why_not != NULL ? s->why_not : seen_where(s, m.arena)));
    }
    for (uint32_t i = 0; i < s->n_figures; i++)
        if (s->figures[i].why_not == NULL)
            write_largest(&m, figure_name(m.arena, &s->figures[i]), s->figures[i].pieces,
                          s->figures[i].n_pieces);
        else
            write_comment(&m, onv_arena_printf(m.arena, "no %s: %s",
                                               figure_name(m.arena, &s->figures[i]),
                                               in_comment(m.arena, s->figures[i].why_not)));
    return ONV_OK;
}

onv_status onv_format_formula_python_write(onv_report_job *job)
{
    return write_code(job, &python);
}

onv_status onv_format_formula_c_write(onv_report_job *job)
{
    return write_code(job, &c_language);
}

/* --- Text -------------------------------------------------------------------------------------- */

const char *onv_range_text(const onv_view *view, onv_arena *arena, const onv_piece *piece)
{
    if (!onv_dim_is_known(piece->decided_by)) return "";
    const char *name = onv_dim_symbol_name(&view->model.dims, piece->decided_by);
    if (piece->until == INT64_MAX)
        return onv_arena_printf(arena, "from %s = %lld on", name, (long long)piece->from);
    if (piece->from == 1)
        return onv_arena_printf(arena, "up to %s = %lld", name, (long long)piece->until - 1);
    return onv_arena_printf(arena, "from %s = %lld to %lld", name, (long long)piece->from,
                            (long long)piece->until - 1);
}

static void put(const onv_report_job *job, const char *text)
{
    onv_write_clean(job->out, onv_page_kept(text), ONV_CLEAN_ASCII);
}

/* The largest of some dims; `ranges`: where each of several is it, or NULL. */
static void write_lines(const onv_report_job *job, const char *name, const onv_dim *pieces,
                        uint32_t n, const onv_piece *ranges)
{
    const onv_view *view = job->views[0];
    onv_write_format(job->out, n > 1 ? "%s = max(\n" : "%s = ", onv_page_kept(name));
    for (uint32_t i = 0; i < n; i++) {
        const char *where =
            ranges != NULL && n > 1 ? onv_range_text(view, job->arena, &ranges[i]) : "";
        onv_write_text(job->out, n > 1 ? "    " : "");
        put(job, onv_dim_text(&view->model.dims, job->arena, pieces[i]));
        onv_write_text(job->out, n == 1 ? "" : i + 1 < n ? "," : ")");
        onv_write_text(job->out, onv_page_kept(where)[0] != '\0' ? "  # " : "");
        put(job, where);
        onv_write_text(job->out, "\n");
    }
}

/* What runtimes hold, where that was asked for. */
static void write_sampled(const onv_report_job *job)
{
    const onv_sampled *s = &job->views[0]->sampled;
    if (s->n_figures == 0) return;
    onv_write_text(job->out, "# ");
    put(job, s->why_not != NULL ? s->why_not : seen_where(s, job->arena));
    onv_write_text(job->out, "\n");
    for (uint32_t i = 0; i < s->n_figures && s->why_not == NULL; i++) {
        const onv_sampled_figure *of = &s->figures[i];
        const char *name = figure_name(job->arena, of);
        if (of->n_pieces > 0) {
            write_lines(job, name, of->pieces, of->n_pieces, NULL);
            continue;
        }
        onv_write_format(job->out, "%s: ", onv_page_kept(name));
        put(job, of->why_not != NULL ? of->why_not : "no point has a figure");
        onv_write_text(job->out, "\n");
    }
}

onv_status onv_format_formula_write(onv_report_job *job)
{
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "a formula is of one model at a time");
    const onv_view *view = job->views[0];
    const onv_formula *f = view->formula;
    onv_dim pieces[ONV_MAX_PIECES];
    onv_write_format(job->out, "weight_bytes = %llu\n",
                     (unsigned long long)view->live.weight_bytes);
    if (f->why_not != NULL) {
        onv_write_text(job->out, "peak_bytes: ");
        put(job, f->why_not);
        onv_write_text(job->out, "\n");
    }
    for (uint32_t i = 0; i < f->n_pieces; i++) pieces[i] = f->pieces[i].bytes;
    if (f->n_pieces > 0) {
        write_lines(job, "peak_bytes", pieces, f->n_pieces, f->pieces);
        onv_write_text(job->out, "total_bytes = weight_bytes + peak_bytes\n");
    }
    write_lines(job, "input_bytes", &f->input_bytes, 1, NULL);
    write_lines(job, "output_bytes", &f->output_bytes, 1, NULL);
    write_lines(job, "activation_bytes", &f->activation_bytes, 1, NULL);
    write_lines(job, "macs", &f->macs, 1, NULL);
    write_sampled(job);
    return ONV_OK;
}
