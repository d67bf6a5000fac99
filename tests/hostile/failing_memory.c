/* Preloaded: one allocation fails, the Nth of the command and all that it starts. FAILING_MEMORY names a file
 * of three numbers that all these processes map: how many there were, which one fails (0: none), and the
 * process in which it did. libseccomp's own are left out, since it bears none that fails: the program sees to
 * it that this memory is there. What is started without LD_PRELOAD gets it again. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static volatile long *shared;

static char *left_out[2]; /* the code of libseccomp */

static int look_for_seccomp(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (!strstr(info->dlpi_name, "libseccomp"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
            left_out[0] = (char *)(info->dlpi_addr + p->p_vaddr);
            left_out[1] = left_out[0] + p->p_memsz;
        }
    }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("FAILING_MEMORY");
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    if (getenv("FAILING_TRACE"))
        backtrace((void *[1]){NULL}, 1); /* its library is found now, or not at all */
    dl_iterate_phdr(look_for_seccomp, NULL);
    if (at != MAP_FAILED)
        shared = at;
}

static int fails(const char *caller)
{
    if (!shared || (caller >= left_out[0] && caller < left_out[1]) ||
        __atomic_add_fetch(&shared[0], 1, __ATOMIC_RELAXED) != shared[1])
        return 0;
    shared[2] = getpid();
    if (getenv("FAILING_TRACE")) { /* for who looks for the place */
        void *at[24];

        backtrace_symbols_fd(at, backtrace(at, 24), 2);
    }
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    if (size && n > PTRDIFF_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n * size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **p, size_t align, size_t size)
{
    if (fails(__builtin_return_address(0)))
        return ENOMEM;
    *p = __libc_memalign(align, size);
    return *p ? 0 : ENOMEM;
}

int execve(const char *path, char *const argv[], char *const old[])
{
    static const char *const names[] = {"LD_PRELOAD", "FAILING_MEMORY", "FAILING_TRACE"};
    static char words[3][4200];
    char *new[1024];
    size_t n = 0;

    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);

        if (!value)
            continue;
        snprintf(words[i], sizeof(words[i]), "%s=%s", names[i], value);
        new[n++] = words[i];
    }
    for (char *const *e = old; *e && n + 1 < sizeof(new) / sizeof(new[0]); e++)
        if (strncmp(*e, "LD_PRELOAD=", 11) != 0 && strncmp(*e, "FAILING_", 8) != 0)
            new[n++] = *e;
    new[n] = NULL;
    return (int)syscall(SYS_execve, path, argv, new);
}
