#include "cli/program.h"
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

void program_write(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void program_write_model(const char *name, model *m)
{
    size_t size;
    const unsigned char *bytes = model_bytes(m, &size);
    program_write(name, bytes, size);
    model_free(m);
}

int program_run(const char *arguments, char *text)
{
    char command[1024];
    /* The search for leaks reads /proc, which a confined process cannot. */
    const char *sanitizer =
        strstr(arguments, "--untrusted") != NULL ? "ASAN_OPTIONS=detect_leaks=0 " : "";
    snprintf(command, sizeof command, "exec 2>&1; %s'%s/onnxvram' %s", sanitizer, ONV_BUILD_DIR,
             arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(text, 1, PROGRAM_TEXT - 1, pipe);
    text[length] = '\0';
    while (fgetc(pipe) != EOF) continue;
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void program_expect(const char *arguments, int status, const char *part)
{
    char text[PROGRAM_TEXT];
    int got = program_run(arguments, text);
    if (got != status) fail_msg("'%s' gave %d, not %d: %s", arguments, got, status, text);
    if (strstr(text, part) == NULL) fail_msg("'%s' does not say '%s': %s", arguments, part, text);
    /* A mistake is told in one line. */
    if (status == 1 || status == 2) assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

void program_expect_parts(const char *arguments, int status, const char *const *parts, char *text)
{
    int got = program_run(arguments, text);
    if (got != status) fail_msg("'%s' ends with %d, not %d:\n%s", arguments, got, status, text);
    for (; *parts != NULL; parts++)
        if (strstr(text, *parts) == NULL)
            fail_msg("'%s' has no '%s':\n%s", arguments, *parts, text);
}
