/* The program without processes of models, for scripts/fuzz-graphs: a start, and a look for leaks, are much dearer than an
 * analysis under sanitizers.
 *
 *     fuzz-program [--each N] OPTION... MODEL...
 *
 * --each: the last N arguments are models, each of which is a run of its own with these options; ends with the largest status. */
#include <stdlib.h>
#include <string.h>

int onv_program_main(int argc, char **argv); /* what main() is called in src/cli */

int main(int argc, char **argv)
{
    if (argc < 4 || strcmp(argv[1], "--each") != 0) return onv_program_main(argc, argv);
    int n = atoi(argv[2]), worst = 0;
    int n_options = argc - 2 - n; /* and the program's name */
    if (n < 1 || n_options < 1) return 125;
    char **words = calloc((size_t)n_options + 2, sizeof *words);
    if (words == NULL) return 125;
    for (int i = 0; i < n; i++) {
        memcpy(words, argv + 2, (size_t)n_options * sizeof *words);
        words[0] = argv[0];
        words[n_options] = argv[argc - n + i];
        int status = onv_program_main(n_options + 1, words);
        if (status > worst) worst = status;
    }
    free(words);
    return worst;
}
