/* The fuzz targets without a fuzzer.
 *
 *     fuzz-driver TARGET FILE|FOLDER...               every file once
 *     fuzz-driver -m N [-s SEED] [-k NOTE] TARGET FILE|FOLDER...
 *                                                     N mutations of them
 *     fuzz-driver -m N -p PROGRAM [-o FOLDER] ...     the same as runs of a program
 *     fuzz-driver -w OUT -s SEED ...                  writes the mutation of that seed
 *     fuzz-driver -m N -w FOLDER [-s SEED] ...        writes N of them, named by their seeds
 *
 * Mutations follow from the seed and the files given. -k: a file that always says which input is
 * running, so that after a crash -w can make it again. With -p each input is a file given to
 * PROGRAM, with options that the seed chooses, which has to end by itself with status 0, 1 or 2,
 * within 2 s of processor time (10 s under sanitizers) and 512 MiB, and to say why in one line where it fails; inputs that
 * make it do otherwise are kept in FOLDER.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/mutate.h"
#include "fuzz/targets.h"

extern char **environ;

/* Sanitizers make the same work several times as long, and a busy machine adds to it. */
#ifdef __SANITIZE_ADDRESS__
enum { MOST_SECONDS = 10 };
#else
enum { MOST_SECONDS = 2 };
#endif
enum { MOST_FILES = 4096, ROOM = 1 << 16, KILL_SECONDS = 60, MOST_MIB = 512 };

typedef struct seed_file {
    char *path;
    uint8_t *data;
    size_t size;
} seed_file;

typedef struct driver {
    const fuzz_target *target;
    const char *program, *out;
    int note; /* a file that names the current input, or -1 */
    seed_file files[MOST_FILES];
    size_t n_files;
    size_t exits[3], failures;
    double slowest;
    long largest_kib;
} driver;

static void die(const char *what, const char *path)
{
    fprintf(stderr, "fuzz-driver: %s: ", path);
    perror(what);
    exit(2);
}

/* --- Files ------------------------------------------------------------------------------------- */

static void add_file(driver *d, const char *path, size_t size)
{
    if (d->n_files == MOST_FILES) return;
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size + 1);
    if (file == NULL || data == NULL || fread(data, 1, size, file) != size) die("read", path);
    fclose(file);
    d->files[d->n_files++] = (seed_file){strdup(path), data, size};
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void add(driver *d, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) die("stat", path);
    if (!S_ISDIR(info.st_mode)) {
        add_file(d, path, (size_t)info.st_size);
        return;
    }
    struct dirent **names;
    int n = scandir(path, &names, NULL, by_name);
    if (n < 0) die("scandir", path);
    for (int i = 0; i < n; i++) {
        char inside[4096];
        if (names[i]->d_name[0] != '.' && (size_t)snprintf(inside, sizeof inside, "%s/%s", path,
                                                           names[i]->d_name) < sizeof inside)
            add(d, inside);
        free(names[i]);
    }
    free(names);
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        die("write", path);
}

/* --- In this process --------------------------------------------------------------------------- */

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run_here(driver *d, const char *name, const uint8_t *data, size_t size)
{
    char line[512];
    int length = snprintf(line, sizeof line, "%-500.500s\n", name);
    if (d->note >= 0 && pwrite(d->note, line, (size_t)length, 0) != length) die("write", name);
    /* A copy of just this size, so that a sanitizer sees what reads beyond it. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL) die("malloc", name);
    if (size > 0) memcpy(exact, data, size);
    double before = processor_seconds();
    d->target->run(exact, size);
    double seconds = processor_seconds() - before;
    free(exact);
    if (seconds > d->slowest) d->slowest = seconds;
    if (seconds <= MOST_SECONDS) return;
    fprintf(stderr, "fuzz-driver: %s: takes %.1f s\n", name, seconds);
    d->failures++;
}

/* --- As a program ------------------------------------------------------------------------------ */

typedef struct outcome {
    int status;
    double seconds;
    long kib;
    size_t bytes, lines;
    char said[4096];
} outcome;

static void read_said(outcome *o, int from)
{
    for (ssize_t n; (n = read(from, o->said + o->bytes, sizeof o->said - 1 - o->bytes)) > 0;) {
        o->bytes += (size_t)n;
        if (o->bytes == sizeof o->said - 1) break;
    }
    for (size_t i = 0; i < o->bytes; i++) o->lines += o->said[i] == '\n';
}

/* What the program is asked for beside --batch=2 and JSON. */
static const char *const questions[][3] = {
    {"-q"},
    {"-q", "--train=adamw"},
    {"-q", "--train=sgd", "--checkpoint=sqrt,blocks"},
    {"-q", "--precision=fp16", "--order=greedy"},
};
enum { N_QUESTIONS = sizeof questions / sizeof questions[0] };

static char *plain(const char *text)
{
    return (char *)(uintptr_t)text; /* posix_spawn does not change it */
}

static void spawn(const driver *d, const char *path, size_t question, outcome *o)
{
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    char *arguments[8] = {plain(d->program), plain(path), plain("--batch=2"),
                          plain("--json=/dev/null")};
    for (size_t i = 0; i < 3 && questions[question][i] != NULL; i++)
        arguments[4 + i] = plain(questions[question][i]);
    *o = (outcome){0};
    if (pipe2(ends, O_CLOEXEC) != 0) die("pipe", path);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    if (posix_spawn(&child, d->program, &actions, NULL, arguments, environ) != 0)
        die("spawn", d->program);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    struct rlimit limit = {KILL_SECONDS, KILL_SECONDS}; /* ends what would never end */
    prlimit(child, RLIMIT_CPU, &limit, NULL);
    read_said(o, ends[0]);
    close(ends[0]);
    struct rusage usage;
    if (wait4(child, &o->status, 0, &usage) != child) die("wait", path);
    o->seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    o->kib = usage.ru_maxrss;
}

static const char *what_is_wrong(const outcome *o)
{
    if (!WIFEXITED(o->status)) return "ended by a signal";
    int status = WEXITSTATUS(o->status);
    if (status > 2) return "exit status beyond 2";
    if (strstr(o->said, "Sanitizer") != NULL || strstr(o->said, "runtime error") != NULL)
        return "a sanitizer's report";
    if (status != 0 && (o->lines != 1 || strncmp(o->said, "onnxvram: ", 10) != 0))
        return "a failure that is not one line";
    if (o->seconds > MOST_SECONDS) return "too slow";
    if (o->kib > MOST_MIB * 1024L) return "too much memory";
    return NULL;
}

static void run_program(driver *d, const char *name, size_t question, const uint8_t *data,
                        size_t size)
{
    outcome o;
    char path[4096];
    snprintf(path, sizeof path, "%s/current.onnx", d->out);
    write_file(path, data, size);
    spawn(d, path, question, &o);
    if (o.seconds > d->slowest) d->slowest = o.seconds;
    if (o.kib > d->largest_kib) d->largest_kib = o.kib;
    const char *wrong = what_is_wrong(&o);
    if (wrong == NULL) {
        d->exits[WEXITSTATUS(o.status)]++;
        return;
    }
    snprintf(path, sizeof path, "%s/found-%zu.onnx", d->out, d->failures++);
    write_file(path, data, size);
    fprintf(stderr,
            "fuzz-driver: %s: %s (question %zu, status %x, %.1f s, %ld KiB), kept as %s\n%.2000s\n",
            name, wrong, question, (unsigned)o.status, o.seconds, o.kib, path, o.said);
}

/* --- Mutations --------------------------------------------------------------------------------- */

static void run_one(driver *d, const char *name, uint64_t seed, const uint8_t *data, size_t size)
{
    if (d->program != NULL)
        run_program(d, name, seed / d->n_files % N_QUESTIONS, data, size);
    else
        run_here(d, name, data, size);
}

/* The input of a seed, in data[capacity]. Its name goes to name[size]. */
static size_t make_input(const driver *d, uint64_t seed, uint8_t *data, size_t capacity, char *name,
                         size_t name_size)
{
    fuzz_random random = {seed};
    const seed_file *from = &d->files[seed % d->n_files];
    const seed_file *donor = &d->files[fuzz_below(&random, d->n_files)];
    size_t size = from->size;
    memcpy(data, from->data, size);
    for (size_t n = 1 + fuzz_below(&random, 4); n > 0; n--)
        size = d->target->mutate(data, size, capacity, donor->data, donor->size, &random);
    snprintf(name, name_size, "seed %llu of %s", (unsigned long long)seed, from->path);
    return size;
}

static void run_mutations(driver *d, size_t count, uint64_t seed, const char *write_to)
{
    char name[4200];
    size_t capacity = 0;
    for (size_t i = 0; i < d->n_files; i++)
        if (d->files[i].size > capacity) capacity = d->files[i].size;
    capacity += ROOM;
    uint8_t *data = malloc(capacity);
    if (data == NULL) die("malloc", "mutations");
    for (size_t i = 0; i < count; i++) {
        size_t size = make_input(d, seed + i, data, capacity, name, sizeof name);
        if (write_to != NULL && count > 1)
            snprintf(name, sizeof name, "%s/%llu.onnx", write_to, (unsigned long long)(seed + i));
        if (write_to != NULL)
            write_file(count > 1 ? name : write_to, data, size);
        else
            run_one(d, name, seed + i, data, size);
    }
    free(data);
}

static int usage(void)
{
    fputs("usage: fuzz-driver [-m N] [-w OUT] [-s SEED] [-k NOTE] [-p PROGRAM] [-o FOLDER] "
          "TARGET FILE...\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    driver *d = calloc(1, sizeof *d);
    unsigned long long mutations = 0, seed = 1;
    const char *write_to = NULL;
    if (d == NULL) return 2;
    d->out = ".";
    d->note = -1;
    for (int code; (code = getopt(argc, argv, "m:s:k:p:o:w:")) != -1;) {
        switch (code) {
        case 'm': mutations = strtoull(optarg, NULL, 10); break;
        case 's': seed = strtoull(optarg, NULL, 10); break;
        case 'k': d->note = open(optarg, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); break;
        case 'w': write_to = optarg; break;
        case 'p': d->program = optarg; break;
        case 'o': d->out = optarg; break;
        default: return usage();
        }
    }
    if (optind + 2 > argc || (d->target = fuzz_target_find(argv[optind])) == NULL) return usage();
    for (int i = optind + 1; i < argc; i++) add(d, argv[i]);
    if (d->n_files == 0) die("no files", argv[optind + 1]);
    if (write_to != NULL && mutations == 0) mutations = 1;
    if (mutations > 0)
        run_mutations(d, mutations, seed, write_to);
    else
        for (size_t i = 0; i < d->n_files; i++)
            run_one(d, d->files[i].path, 0, d->files[i].data, d->files[i].size);
    if (write_to != NULL) return 0;
    printf("%s: %zu files, %llu mutations, slowest %.2f s of processor time", d->target->name,
           d->n_files, mutations, d->slowest);
    if (d->program != NULL)
        printf(", largest %ld MiB, exit status 0: %zu, 1: %zu, 2: %zu", d->largest_kib / 1024,
               d->exits[0], d->exits[1], d->exits[2]);
    printf(", %zu failures\n", d->failures);
    int status = d->failures > 0;
    for (size_t i = 0; i < d->n_files; i++) {
        free(d->files[i].path);
        free(d->files[i].data);
    }
    free(d);
    return status;
}
