/* The manual page has every long option of the program and its commands, and no other; help fits a screen; shells
 * complete what the program says. */
#include <ctype.h>
#include <unistd.h>

#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/test.h"

#define MANUAL "man/onnxvram.1"

static char *slurp(FILE *file)
{
    size_t length = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    assert_true(file != NULL && text != NULL);
    while ((length += fread(text + length, 1, capacity - length - 1, file)) == capacity - 1)
        assert_non_null(text = realloc(text, capacity *= 2));
    text[length] = '\0';
    return text;
}

static char *read_source(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", ONV_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("no %s", path);
    char *text = slurp(file);
    fclose(file);
    return text;
}

/* The page with its escaped hyphens as they are read. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text != '\0'; text++)
        if (text[0] != '\\' || text[1] != '-') *to++ = *text;
    *to = '\0';
}

/* The next long option at or behind *text, "name" without its dashes. */
static bool next_option(const char **text, char *name, size_t size)
{
    for (const char *at = *text; (at = strstr(at, "--")) != NULL; at += 2) {
        if (!islower((unsigned char)at[2]) || (at > *text && at[-1] == '-')) continue;
        size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
        assert_true(length < size);
        memcpy(name, at + 2, length);
        name[length] = '\0';
        *text = at + 2 + length;
        return true;
    }
    return false;
}

static bool has_option(const char *text, const char *name)
{
    char found[64];
    while (next_option(&text, found, sizeof found))
        if (strcmp(found, name) == 0) return true;
    return false;
}

static char *help_of(const char *arguments)
{
    char command[1024];
    snprintf(command, sizeof command, "for c in %s; do %s/onnxvram $c; done", arguments,
             ONV_BUILD_DIR);
    FILE *program = popen(command, "r");
    char *help = slurp(program);
    assert_int_equal(pclose(program), 0);
    return help;
}

TEST(the_manual_is_complete)
{
    char name[64];
    if (access(ONV_BUILD_DIR "/onnxvram", X_OK) != 0) skip();
    char *help = help_of("'help all' 'plan --help' 'simulate --help'"), *text = read_source(MANUAL);
    unescape(text);
    const char *at = help;
    size_t options = 0;
    for (; next_option(&at, name, sizeof name); options++)
        if (!has_option(text, name)) fail_msg("%s lacks --%s", MANUAL, name);
    assert_true(options >= 10);
    for (at = text; next_option(&at, name, sizeof name);)
        if (!has_option(help, name)) fail_msg("%s has --%s, help does not", MANUAL, name);
    free(text);
    free(help);
}

TEST(limits_are_named)
{
    OWNED_TEXT text = read_source(MANUAL);
    unescape(text);
    for (size_t k = 0; onv_limit_name(k, NULL, NULL) != NULL; k++)
        if (strstr(text, onv_limit_name(k, NULL, NULL)) == NULL)
            fail_msg("%s lacks the limit %s", MANUAL, onv_limit_name(k, NULL, NULL));
}

/* A screen each. */
TEST(help_fits_a_screen)
{
    static const struct {
        const char *arguments;
        size_t most_lines;
    } cases[] = {{"--help", 24},         {"'train --help'", 40},   {"'fit --help'", 40},
                 {"'plans --help'", 40}, {"'serve --help'", 40},   {"'diff --help'", 40},
                 {"'gate --help'", 40},  {"'compare --help'", 40}, {"'offsets --help'", 40},
                 {"'help hf'", 40},      {"'help verify'", 40},    {"'help report'", 40},
                 {"'help all'", 1000}};
    if (access(ONV_BUILD_DIR "/onnxvram", X_OK) != 0) skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *help = help_of(cases[i].arguments), *end;
        size_t lines = 0;
        for (char *at = help; (end = strchr(at, '\n')) != NULL; at = end + 1, lines++)
            if (end - at > 80) fail_msg("%s: %.*s", cases[i].arguments, (int)(end - at), at);
        if (lines < 3 || lines > cases[i].most_lines)
            fail_msg("%s has %zu lines", cases[i].arguments, lines);
        free(help);
    }
}

/* What bash makes of the last word. */
static void expect_completion(const char *words, const char *expected)
{
    char command[1024];
    snprintf(command, sizeof command,
             "bash -c 'PATH=%s:$PATH; source %s/completions/onnxvram.bash; compopt() { :; }; "
             "COMP_LINE=\"%s\"; COMP_POINT=${#COMP_LINE}; _onnxvram; echo ${COMPREPLY[*]}'",
             ONV_BUILD_DIR, ONV_SOURCE_DIR, words);
    FILE *shell = popen(command, "r");
    OWNED_TEXT text = slurp(shell);
    assert_int_equal(pclose(shell), 0);
    if (strncmp(text, expected, strlen(expected)) != 0) fail_msg("'%s' becomes '%s'", words, text);
}

TEST(bash_completes)
{
    if (access(ONV_BUILD_DIR "/onnxvram", X_OK) != 0 || system("bash -c true") != 0) skip();
    expect_completion("onnxvram --gpu A10", "A10 A10G A100-40GB A100-80GB\n");
    expect_completion("onnxvram --budget T4,L4", "T4,L4 T4,L40 T4,L40S\n");
    expect_completion("onnxvram --budget RTX-4060-T", "RTX-4060-Ti-8GB RTX-4060-Ti-16GB\n");
    expect_completion("onnxvram --runtime torch,i", "torch,ideal\n");
    expect_completion("onnxvram train --train ada", "adam adamw adam8bit adagrad adafactor\n");
    expect_completion("onnxvram --train=adag", "adagrad\n");
    expect_completion("onnxvram --amp b", "bf16\n");
    expect_completion("onnxvram --attention f", "flash\n");
    expect_completion("onnxvram --limit no", "nodes= node-runs=\n");
    expect_completion("onnxvram --ort cudnn_conv_alg", "cudnn_conv_algo_search=\n");
    expect_completion("onnxvram --checkpoint sqrt,e", "sqrt,every=\n");
    expect_completion("onnxvram --orde", "--order\n");
    expect_completion("onnxvram hf --orde", "--order\n");
    expect_completion("onnxvram offsets --cap", "--capacity\n");
    expect_completion("onnxvram d", "diff\n");
    expect_completion("onnxvram help lim", "limits\n");
    expect_completion("onnxvram simulate --runtime bfc", "bfc bfc-same\n");
    expect_completion("onnxvram --batch ", "\n");
    expect_completion("onnxvram model", "\n");
}
