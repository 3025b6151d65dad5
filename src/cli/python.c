/* Commands that run networks are Python's: the package `onnxvram` has them, and the program starts them. */
#include "cli/commands.h"
#include "cli/message.h"

#ifndef __linux__
int onv_cli_become_python(int argc, char **argv)
{
    (void)argc;
    return onv_cli_usage("%s runs networks, and there is no Python to start here", argv[0]);
}
#else

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LACKS_PACKAGE = 3 };

/* The path of this program; "" where the system does not tell. */
static void find_self(char *self)
{
    ssize_t n = readlink("/proc/self/exe", self, PATH_BYTES - 1);
    self[n > 0 ? n : 0] = '\0';
}

/* A virtual environment has both in one folder. */
static void find_interpreter(const char *self, char *interpreter)
{
    const char *named = getenv("ONNXVRAM_PYTHON"), *slash = strrchr(self, '/');
    int n = slash == NULL
                ? -1
                : snprintf(interpreter, PATH_BYTES, "%.*s/python3", (int)(slash - self), self);
    bool is_next_to_it = n > 0 && n < PATH_BYTES && access(interpreter, X_OK) == 0;
    if (named != NULL && named[0] != '\0')
        snprintf(interpreter, PATH_BYTES, "%s", named);
    else if (!is_next_to_it)
        snprintf(interpreter, PATH_BYTES, "python3");
}

/* What an interpreter says of the package: an exit status, or -1 where there is none to ask. */
static int ask_for_package(char *interpreter)
{
    char option[] = "-c", question[] = "import importlib.util as u, sys; "
                                       "sys.exit(3 if u.find_spec('onnxvram') is None else 0)";
    char *const words[] = {interpreter, option, question, NULL};
    pid_t child;
    int status;
    if (posix_spawnp(&child, interpreter, NULL, NULL, words, environ) != 0) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_UNUSABLE;
}

static int refuse(const char *command, const char *interpreter, int answer)
{
    if (answer == LACKS_PACKAGE)
        fprintf(stderr,
                "onnxvram: %s needs Python's package onnxvram, and '%s' has none: in the folder of "
                "the source, '%s -m pip install .'\n",
                command, interpreter, interpreter);
    else
        fprintf(stderr,
                "onnxvram: %s needs Python 3.9 or later, and '%s' cannot be run: install it, or "
                "name one with ONNXVRAM_PYTHON\n",
                command, interpreter);
    return EXIT_UNUSABLE;
}

int onv_cli_become_python(int argc, char **argv)
{
    char self[PATH_BYTES], interpreter[PATH_BYTES], module[64];
    char run[] = "-m", program[] = "--program";
    find_self(self);
    find_interpreter(self, interpreter);
    int answer = ask_for_package(interpreter), n = 0;
    if (answer != 0) return refuse(argv[0], interpreter, answer);
    snprintf(module, sizeof module, "onnxvram.%s", argv[0]);
    char **words = calloc((size_t)argc + 6, sizeof *words);
    if (words == NULL) return EXIT_UNUSABLE;
    words[n++] = interpreter;
    words[n++] = run;
    words[n++] = module;
    if (self[0] != '\0') {
        words[n++] = program;
        words[n++] = self;
    }
    for (int i = 1; i < argc; i++) words[n++] = argv[i];
    execvp(interpreter, words);
    free(words);
    return refuse(argv[0], interpreter, -1);
}
#endif
