/* The other half of -finstrument-functions: writes each entry and exit of a function to the file $TREE_LOG,
 * one line a write, so that the log is whole up to the instant a program dies.
 *
 *     E TID FRAME THREAD-NAME FUNCTION    entered; FRAME is its frame pointer
 *     X TID FRAME THREAD-NAME FUNCTION    left
 *     N TID 0 THREAD-NAME -               a program began (after exec, in the same thread)
 *     S TID BASE BYTES NAME               a stack of its own, see OWN_STACK in tree.h; "-": for signal
 * handlers
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Only in C++ programs. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *bytes, int *status) __attribute__((weak));

void __cyg_profile_func_enter(void *function, void *call_site);
void __cyg_profile_func_exit(void *function, void *call_site);
void tree_log_stack(const char *name, const void *base, unsigned long bytes);

static int log_fd = -1;

static void write_log(const char *line, int length)
{
    if (log_fd >= 0 && length > 0 && write(log_fd, line, (size_t)length) != length)
        _exit(126);
}

/* The function's name without its parameters. */
static void name_of(void *function, char *name, size_t room)
{
    Dl_info info = {0};
    char *demangled = NULL;

    dladdr(function, &info);
    if (info.dli_sname && __cxa_demangle)
        demangled = __cxa_demangle(info.dli_sname, NULL, NULL, NULL);
    const char *found = demangled ? demangled : info.dli_sname ? info.dli_sname : "?";
    snprintf(name, room, "%.*s", (int)strcspn(found, "("), found);
    free(demangled);
}

static void log_event(char kind, void *function, uintptr_t frame)
{
    char name[256], thread[32] = "?", line[512];
    int error = errno;

    if (log_fd < 0)
        return;
    prctl(PR_GET_NAME, thread);
    name_of(function, name, sizeof(name));
    write_log(line, snprintf(line, sizeof(line), "%c %d %lx %s %s\n", kind, gettid(), (unsigned long)frame,
                             thread, name));
    errno = error;
}

void __cyg_profile_func_enter(void *function, void *call_site)
{
    (void)call_site;
    log_event('E', function, *(uintptr_t *)__builtin_frame_address(0));
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
    (void)call_site;
    log_event('X', function, *(uintptr_t *)__builtin_frame_address(0));
}

void tree_log_stack(const char *name, const void *base, unsigned long bytes)
{
    char line[256];

    write_log(line, snprintf(line, sizeof(line), "S %d %lx %lx %s\n", gettid(),
                             (unsigned long)(uintptr_t)base, bytes, *name ? name : "-"));
}

__attribute__((constructor(101))) static void open_log(void)
{
    const char *path = getenv("TREE_LOG");
    char thread[32] = "?", line[128];

    if (!path)
        return;
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd < 0) {
        perror(path);
        _exit(126);
    }
    prctl(PR_GET_NAME, thread);
    write_log(line, snprintf(line, sizeof(line), "N %d 0 %s -\n", gettid(), thread));
}
