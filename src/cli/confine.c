#include "cli/confine.h"

#ifndef __linux__
/* In a page the browser confines: what runs there has no files and no network. */
bool onv_cli_confine_files(const onv_cli *cli)
{
    (void)cli;
    return true;
}
#else

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/output.h"

/* The sanitizers' own runtime maps terabytes and starts a process at the end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

static void lacks(const char *what)
{
    fprintf(stderr, "onnxvram: --untrusted: this kernel has no %s\n", what);
}

static bool failed(const char *what)
{
    fprintf(stderr, "onnxvram: --untrusted: %s: %s\n", what, strerror(errno));
    return false;
}

/* --- Resources --------------------------------------------------------------------------------- */

#ifndef HAS_SANITIZER
/* `beyond` it the process is killed, where a signal comes first. */
static bool limit(int resource, uint64_t value, uint64_t beyond)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)resource, &now) != 0) return false;
    uint64_t most = value + beyond;
    if (now.rlim_max != RLIM_INFINITY && most > now.rlim_max) most = now.rlim_max;
    now = (struct rlimit){.rlim_cur = value < most ? value : most, .rlim_max = most};
    return setrlimit((__rlimit_resource_t)resource, &now) == 0;
}

/* Twice what the analyses limit themselves to: these are for their mistakes. */
static bool limit_resources(const onv_cli *cli, size_t first, size_t count)
{
    enum { PROGRAM_BYTES = 256 << 20, FILES = 64, SECONDS_TO_KILL = 5 };
    uint64_t space;
    if (__builtin_mul_overflow(2 * cli->limits.arena_bytes, count, &space) || space >> 62 != 0)
        space = (uint64_t)1 << 62;
    space += PROGRAM_BYTES + 2 * cli->input.bytes;
    for (size_t i = first; i < first + count; i++) {
        struct stat info;
        if (stat(cli->models[i], &info) == 0 && S_ISREG(info.st_mode))
            space += (uint64_t)info.st_size; /* mapped */
    }
    return limit(RLIMIT_CORE, 0, 0) && limit(RLIMIT_NOFILE, FILES, 0) &&
           limit(RLIMIT_AS, space, 0) &&
           limit(RLIMIT_CPU, onv_cli_confined_seconds(cli, count), SECONDS_TO_KILL);
}
#endif

/* --- Files ------------------------------------------------------------------------------------- */

static bool allow(int rules, const char *path, uint64_t access)
{
    int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) return true; /* the one who needs it will say so */
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = place};
    bool done = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(place);
    return done;
}

/* A report is written beside its file and renamed; devices and pipes are written in place. */
static bool allow_output(int rules, const char *file, uint64_t handled)
{
    char folder[PATH_MAX];
    struct stat info;
    if (strcmp(file, "-") == 0) return true;
    uint64_t writing = LANDLOCK_ACCESS_FS_WRITE_FILE | (handled & 1u << 14 /* truncate */);
    if (stat(file, &info) == 0 && !S_ISREG(info.st_mode)) return allow(rules, file, writing);
    if (!onv_cli_folder_of(file, folder)) return true;
    return allow(rules, folder,
                 writing | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE);
}

typedef struct rules {
    int set;
    uint64_t handled;
} rules;

static bool allow_input(void *context, const char *file)
{
    struct stat info;
    bool is_folder = stat(file, &info) == 0 && S_ISDIR(info.st_mode);
    return allow(((const rules *)context)->set, file,
                 LANDLOCK_ACCESS_FS_READ_FILE | (is_folder ? LANDLOCK_ACCESS_FS_READ_DIR : 0));
}

/* The models `first` to `first` + `count` - 1, and what the options name. */
static bool allow_files(rules *r, const onv_cli *cli, size_t first, size_t count, bool writes)
{
    if (!onv_cli_each_input(cli, first, count, allow_input, r)) return false;
    for (size_t i = 0; i < cli->n_outputs && writes; i++)
        if (!allow_output(r->set, cli->outputs[i].file, r->handled)) return false;
    return true;
}

static bool limit_files(const onv_cli *cli, size_t first, size_t count, bool writes)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) {
        if (writes) lacks("Landlock: files are not confined");
        return true;
    }
    /* Rights by version: 13 in the first, then to link elsewhere, to truncate. */
    unsigned n_rights = version == 1 ? 13 : version == 2 ? 14 : 15;
    struct landlock_ruleset_attr attr = {.handled_access_fs = ((uint64_t)1 << n_rights) - 1};
    rules r = {(int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0),
               attr.handled_access_fs};
    if (r.set < 0) return false;
    bool done = allow_files(&r, cli, first, count, writes) &&
                syscall(SYS_landlock_restrict_self, r.set, 0) == 0;
    close(r.set);
    return done;
}

/* --- System calls ------------------------------------------------------------------------------ */

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#endif

#if defined ARCH && !defined HAS_SANITIZER
/* What reading, working and writing take; all else fails with EPERM. */
static const int calls[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_openat,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_fstatfs,
    SYS_statfs,
    SYS_lseek,
    SYS_fcntl,
    SYS_ioctl,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_dup,
    SYS_fchmod,
    SYS_umask,
    SYS_renameat,
    SYS_renameat2,
    SYS_linkat,
    SYS_unlinkat,
    SYS_ftruncate,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_sigaltstack,
    SYS_getpid,
    SYS_gettid,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
    SYS_gettimeofday,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getrlimit,
#ifdef __x86_64__
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_rename,
    SYS_link,
    SYS_unlink,
    SYS_time,
#endif
};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

/* abort() and raise() signal the process itself; no other one can be signalled. */
static unsigned short allow_own_signals(struct sock_filter *filter)
{
    const unsigned place = offsetof(struct seccomp_data, args[0]);
    unsigned short n = 0;
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place);
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)getpid(), 1, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return n;
}

static bool limit_calls(bool says)
{
    struct sock_filter filter[N_CALLS + 16];
    unsigned short n = 0;
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    n += allow_own_signals(filter + n);
    for (int i = 0; i < N_CALLS; i++)
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
                                                   (unsigned char)(N_CALLS - i), 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = n, .filter = filter};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    if (says) lacks("seccomp filters: system calls are not confined");
    return true;
}
#endif

uint64_t onv_cli_confined_seconds(const onv_cli *cli, size_t count)
{
    enum { SPARE_SECONDS = 10 };
    uint64_t seconds, times = 2 + (uint64_t)cli->n_outputs;
    if (__builtin_mul_overflow(cli->limits.seconds, times * count, &seconds) || seconds >> 32 != 0)
        seconds = UINT32_MAX;
    return seconds + SPARE_SECONDS;
}

bool onv_cli_confine_files(const onv_cli *cli)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no new privileges");
    return limit_files(cli, 0, cli->n_models, true) || failed("Landlock");
}

bool onv_cli_confine(const onv_cli *cli, size_t first, size_t count)
{
    if (!limit_files(cli, first, count, false)) return failed("Landlock");
#ifndef HAS_SANITIZER
    if (!limit_resources(cli, first, count)) return failed("setrlimit");
#ifdef ARCH
    if (!limit_calls(first == 0)) return failed("seccomp");
#else
    if (first == 0) lacks("list of system calls of ours: they are not confined");
#endif
#endif
    return true;
}

#endif
