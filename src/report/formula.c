/* The formula of the peak: as text, as a Python function, as a C function. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "report/quoted.h"
#include "report/sections.h"

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

/* Text for people says in words what has no formula; a language of programs in comments. */
typedef struct formula_language {
    onv_dim_syntax syntax;
    const char *comment, *comment_end;
    const char *before;           /* the first lines: helpers; NULL: text for people */
    const char *head, *open;      /* of a function: before its name, before its parameters */
    const char *parameter, *none; /* before the name of a parameter; where there is none */
    const char *is, *close;       /* around the expression */
    const char *first, *next;     /* before an operand of the largest of several */
} formula_language;

static const formula_language people = {
    .comment = "# ",
    .comment_end = "",
    .is = " = ",
    .close = "\n",
    .first = "\n    ",
    .next = "\n    ",
};

static const formula_language python = {
    .syntax = {.floor = {"(", " // ", ")"}, .mod = {"(", " % ", ")"}, .min = "min(", .max = "max("},
    .comment = "# ",
    .comment_end = "",
    .before = "",
    .head = "\ndef ",
    .open = "(",
    .parameter = "",
    .none = "",
    .is = "):\n    return ",
    .close = "\n",
    .first = "",
    .next = "\n        ",
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
    .head = "\nstatic inline int64_t ",
    .open = "(",
    .parameter = "int64_t ",
    .none = "void",
    .is = ")\n{\n    return ",
    .close = ";\n}\n",
    .first = "",
    .next = "\n        ",
};

typedef struct maker {
    const onv_view *view;
    onv_page page; /* of ASCII alone */
    const formula_language *language;
    onv_dim_syntax syntax;
    names names; /* of a language of programs */
} maker;

static bool is_program(const maker *m)
{
    return m->language->before != NULL;
}

/* --- Functions --------------------------------------------------------------------------------- */

static void write_dim(const maker *m, onv_dim d)
{
    const onv_dims *dims = &m->view->model.dims;
    const char *text = onv_dim_text_in(dims, m->page.arena, d, &m->syntax);
    onv_page_put(&m->page, onv_page_kept(text));
}

/* Each free dim, in the order of the inputs. */
static void write_parameters(const maker *m, const char *before)
{
    const onv_dims *dims = &m->view->model.dims;
    for (size_t k = 0; k < m->view->infer.free_dims.count; k++) {
        onv_dim symbol = onv_dim_symbol_named(dims, m->view->infer.free_dims.at[k].name);
        bool is_known = onv_dim_is_known(symbol);
        onv_page_format(&m->page, "%s%s%s", k > 0 ? ", " : "", before,
                        is_known ? m->names.of[onv_dim_symbol_index(dims, symbol)] : "");
    }
}

static void write_head(const maker *m, const char *name)
{
    const formula_language *l = m->language;
    bool has_parameters = m->view->infer.free_dims.count > 0;
    if (is_program(m)) {
        onv_write_format(m->page.out, "%s%s%s", l->head, name, l->open);
        onv_write_text(m->page.out, has_parameters ? "" : l->none);
        write_parameters(m, l->parameter);
    } else {
        onv_write_text(m->page.out, name);
    }
    onv_write_text(m->page.out, l->is);
}

/* "  # up to sequence = 85" */
static const char *range_comment(const maker *m, const onv_piece *piece)
{
    const char *range = onv_page_kept(onv_range_text(m->view, m->page.arena, piece));
    return range[0] != '\0' ? onv_page_print(&m->page, "  # %s", range) : "";
}

/* The largest of some dims; `ranges`: where each of several is it, or NULL. */
static void write_largest(const maker *m, const char *name, const onv_dim *pieces, uint32_t n,
                          const onv_piece *ranges)
{
    onv_writer *out = m->page.out;
    uint32_t open = 0;
    if (n == 0) return;
    write_head(m, name);
    for (uint32_t i = 0; i < n; i++) {
        bool opens = n > 1 && (m->syntax.two_operands ? i + 1 < n : i == 0), is_last = i + 1 == n;
        if (opens) onv_write_format(out, "%s%s", m->syntax.max, m->language->first);
        open += opens;
        write_dim(m, pieces[i]);
        if (!is_last) onv_write_char(out, ',');
        for (; is_last && open > 0; open--) onv_write_char(out, ')');
        if (ranges != NULL && n > 1) onv_page_put(&m->page, range_comment(m, &ranges[i]));
        onv_write_text(out, is_last ? m->language->close : m->language->next);
    }
}

/* What is not known has no function; text says so. */
static void write_one(const maker *m, const char *name, onv_dim value)
{
    if (onv_dim_is_known(value) || !is_program(m)) write_largest(m, name, &value, 1, NULL);
}

static void write_peak(const maker *m)
{
    onv_dim pieces[ONV_MAX_PIECES];
    const onv_formula *f = m->view->formula;
    if (f->n_pieces == 0) return;
    for (uint32_t i = 0; i < f->n_pieces; i++) pieces[i] = f->pieces[i].bytes;
    write_largest(m, "peak_bytes", pieces, f->n_pieces, is_program(m) ? NULL : f->pieces);
    write_head(m, "total_bytes");
    if (is_program(m)) {
        onv_write_format(m->page.out, "%llu + peak_bytes(",
                         (unsigned long long)m->view->live.weight_bytes);
        write_parameters(m, "");
        onv_write_text(m->page.out, ")");
    } else {
        onv_write_text(m->page.out, "weight_bytes + peak_bytes");
    }
    onv_write_text(m->page.out, m->language->close);
}

/* --- Comments ---------------------------------------------------------------------------------- */

/* What a name of a model may hold ends no comment of a program. */
static const char *in_comment(const maker *m, const char *text)
{
    char *copy = onv_arena_printf(m->page.arena, "%s", text);
    for (char *c = copy; is_program(m) && c != NULL && *c != '\0'; c++)
        if (*c == '*' || *c == '\\') *c = '_';
    return onv_page_kept(copy);
}

static void write_comment(const maker *m, const char *text)
{
    onv_write_text(m->page.out, m->language->comment);
    onv_page_put(&m->page, text);
    onv_write_format(m->page.out, "%s\n", m->language->comment_end);
}

/* A line that says why the figure `name` has no formula; a comment in programs. */
static void write_lack(const maker *m, const char *name, const char *why)
{
    if (is_program(m)) {
        write_comment(m, onv_page_print(&m->page, "no %s: %s", name, in_comment(m, why)));
    } else {
        onv_page_format(&m->page, "%s: %s", name, why);
        onv_page_line(&m->page);
    }
}

static void write_comments(const maker *m)
{
    const onv_view *view = m->view;
    const char *path = view->model.path != NULL ? view->model.path : "model";
    write_comment(
        m, onv_page_print(&m->page, "%s: bytes, for sizes of at least 1", in_comment(m, path)));
    if (view->live.bounded > 0)
        write_comment(m, "sizes that depend on the data are counted at their upper bounds");
    if (view->formula->why_not != NULL)
        write_lack(m, "formula of the peak", view->formula->why_not);
    if (!onv_dim_is_known(view->formula->macs))
        write_comment(m, "the multiply-accumulates of some node are not known");
}

/* --- What runtimes hold ------------------------------------------------------------------------ */

/* What the formulas of runtimes are of, and where that was seen. */
static const char *seen_where(const maker *m, const onv_sampled *s)
{
    const char *text = onv_page_print(
        &m->page, "tensors at their peak, before the allocator; the same as %u analyses, for",
        (unsigned)s->n_points);
    for (uint32_t i = 0; i < s->n_dims; i++) {
        const onv_sampled_dim *d = &s->dims[i];
        text = onv_page_print(&m->page, "%s%s %s from %" PRId64 " to %" PRId64, text,
                              i > 0 ? "," : "", d->name, d->unit * d->low, d->unit * d->high);
        if (d->unit > 1) text = onv_page_print(&m->page, "%s in steps of %" PRId64, text, d->unit);
    }
    return text;
}

static void write_sampled(const maker *m)
{
    const onv_sampled *s = &m->view->sampled;
    if (s->n_figures == 0) return;
    if (is_program(m)) onv_page_line(&m->page);
    write_comment(m, in_comment(m, s->why_not != NULL ? s->why_not : seen_where(m, s)));
    for (uint32_t i = 0; i < s->n_figures && (is_program(m) || s->why_not == NULL); i++) {
        const onv_sampled_figure *of = &s->figures[i];
        const char *name = onv_page_print(&m->page, "%s_tensors_%s_bytes", of->name,
                                          of->is_upper ? "high" : "low");
        write_largest(m, name, of->pieces, of->n_pieces, NULL);
        if (of->why_not != NULL)
            write_lack(m, name, of->why_not);
        else if (of->n_pieces == 0 && !is_program(m))
            write_lack(m, name, "no point has a figure");
    }
}

static onv_status write_formula(const onv_report_job *job, const formula_language *language)
{
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "a formula is of one model at a time");
    maker m = {
        .view = job->views[0], .page = job->page, .language = language, .syntax = language->syntax};
    const onv_formula *f = m.view->formula;
    m.page.mode = ONV_CLEAN_ASCII;
    if (is_program(&m)) {
        if (!make_names(&m.names, m.view, job->arena)) return onv_fail_memory(job->err);
        m.syntax.name = name_of;
        m.syntax.context = &m.names;
        write_comments(&m);
        onv_write_text(job->out, language->before);
    } else {
        m.syntax = onv_dim_syntax_text;
        onv_write_format(job->out, "weight_bytes = %llu\n",
                         (unsigned long long)m.view->live.weight_bytes);
        if (f->why_not != NULL) write_lack(&m, "peak_bytes", f->why_not);
    }
    write_peak(&m);
    write_one(&m, "input_bytes", f->input_bytes);
    write_one(&m, "output_bytes", f->output_bytes);
    write_one(&m, "activation_bytes", f->activation_bytes);
    write_one(&m, "macs", f->macs);
    write_sampled(&m);
    return ONV_OK;
}

onv_status onv_format_formula_write(onv_report_job *job)
{
    return write_formula(job, &people);
}

onv_status onv_format_formula_python_write(onv_report_job *job)
{
    return write_formula(job, &python);
}

onv_status onv_format_formula_c_write(onv_report_job *job)
{
    return write_formula(job, &c_language);
}

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
