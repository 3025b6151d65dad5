/* Files that change under the program.
 *
 * Large files are mapped. Where one shrinks, or its disk fails, while it is read, the kernel sends
 * SIGBUS; the program then ends like after any other file that cannot be used: with one line on
 * standard error and EXIT_UNUSABLE.
 */
#ifndef ONV_CLI_GUARD_H
#define ONV_CLI_GUARD_H

/* Until the next call, `path` is the file that is read. */
void onv_cli_guard(const char *path);

#endif
