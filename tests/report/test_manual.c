/* The manual page and the completions know every long option of the program and its commands, and no
 * other. */
#include <ctype.h>
#include <unistd.h>

#include "onnxvram/onnxvram.h"
#include "support/test.h"

static const char *const files[] = {"man/onnxvram.1", "completions/onnxvram.bash",
                                    "completions/_onnxvram", "completions/onnxvram.fish"};

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

/* Whether `text` has that option, "--name" or fish's "-l name". */
static bool has_option(const char *text, const char *name)
{
    char found[64], fish[80];
    while (next_option(&text, found, sizeof found))
        if (strcmp(found, name) == 0) return true;
    snprintf(fish, sizeof fish, "-l %s ", name);
    return strstr(text, fish) != NULL;
}

static void the_manual_is_complete(void **state)
{
    char command[1024], name[64];
    if (access(ONV_BUILD_DIR "/onnxvram", X_OK) != 0) skip();
    snprintf(command, sizeof command, "for c in '' plan simulate; do %s/onnxvram $c --help; done",
             ONV_BUILD_DIR);
    FILE *program = popen(command, "r");
    char *help = slurp(program);
    assert_int_equal(pclose(program), 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = read_source(files[i]);
        unescape(text);
        const char *at = help;
        size_t options = 0;
        for (; next_option(&at, name, sizeof name); options++)
            if (!has_option(text, name)) fail_msg("%s lacks --%s", files[i], name);
        assert_true(options >= 10);
        for (at = text; next_option(&at, name, sizeof name);)
            if (!has_option(help, name)) fail_msg("%s has --%s, --help does not", files[i], name);
        free(text);
    }
    free(help);
}

/* Every limit stands in each of them. */
static void limits_are_named(void **state)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = read_source(files[i]);
        unescape(text);
        for (size_t k = 0; onv_limit_name(k, NULL, NULL) != NULL; k++)
            if (strstr(text, onv_limit_name(k, NULL, NULL)) == NULL)
                fail_msg("%s lacks the limit %s", files[i], onv_limit_name(k, NULL, NULL));
        free(text);
    }
}

static void expect_name(const char *name)
{
    for (size_t i = 1; i < sizeof files / sizeof files[0]; i++) {
        char *text = read_source(files[i]);
        if (strstr(text, name) == NULL) fail_msg("%s lacks '%s'", files[i], name);
        free(text);
    }
}

/* The names that values are chosen from. */
static void values_are_completed(void **state)
{
    const char *name;
    for (int list = 0; list <= ONV_NAMES_REPLAY_DEVICES; list++)
        for (size_t k = 0; (name = onv_name_at((onv_names)list, k, NULL)) != NULL; k++)
            if (list != ONV_NAMES_ORT_SETTINGS) expect_name(name);
    for (size_t k = 0; (name = onv_checkpoint_name(k, NULL, NULL)) != NULL; k++) expect_name(name);
}

/* What bash makes of the last word. */
static void expect_completion(const char *words, const char *expected)
{
    char command[1024];
    snprintf(command, sizeof command,
             "bash -c 'PATH=%s:$PATH; source %s/completions/onnxvram.bash; compopt() { :; }; "
             "COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _onnxvram; "
             "echo ${COMPREPLY[*]}'",
             ONV_BUILD_DIR, ONV_SOURCE_DIR, words);
    FILE *shell = popen(command, "r");
    char *text = slurp(shell);
    assert_int_equal(pclose(shell), 0);
    if (strncmp(text, expected, strlen(expected)) != 0) fail_msg("'%s' becomes '%s'", words, text);
    free(text);
}

static void bash_completes_values(void **state)
{
    if (access(ONV_BUILD_DIR "/onnxvram", X_OK) != 0 || system("bash -c true") != 0) skip();
    expect_completion("onnxvram --gpu A10", "A10 A10G A100-40GB A100-80GB\n");
    expect_completion("onnxvram --budget T4,L4", "T4,L4 T4,L40 T4,L40S\n");
    expect_completion("onnxvram --budget RTX-4060-T", "RTX-4060-Ti-8GB RTX-4060-Ti-16GB\n");
    expect_completion("onnxvram --runtime torch,i", "torch,ideal\n");
    expect_completion("onnxvram --train ada", "adam adamw adam8bit adagrad adafactor\n");
    expect_completion("onnxvram --checkpoint sqrt,e", "sqrt,every=\n");
    expect_completion("onnxvram --orde", "--order\n");
    expect_completion("onnxvram d", "diff");
    expect_completion("onnxvram simulate --runtime bfc", "bfc bfc-same\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_completed),
        cmocka_unit_test(bash_completes_values),
        cmocka_unit_test(the_manual_is_complete),
        cmocka_unit_test(limits_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
