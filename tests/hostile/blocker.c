/* blocker code|stack: a target with memory that a userfaultfd covers and nobody serves: whoever touches it
 * waits for ever.
 *
 * code: it is executable. stack: after 2 s the main thread sleeps for ever with its frame pointer in it.
 * Prints "ready". */
#include <err.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 8 };

static unsigned char *unserved(int prot)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_MISSING};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    unsigned char *m = mmap(NULL, PAGES * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) {
        printf("ready without userfaultfd\n");
        exit(77);
    }
    m[0] = 0xc3;
    r.range.start = (unsigned long)m + PAGE;
    r.range.len = (PAGES - 1) * PAGE;
    if (ioctl(fd, UFFDIO_REGISTER, &r))
        err(1, "UFFDIO_REGISTER");
    return m;
}

static void ready(void)
{
    printf("ready\n");
    fflush(stdout);
}

/* The registers that the recorder walks from, and nothing else. */
static void sleep_with_frame(unsigned long frame)
{
    static const struct timespec years = {1 << 30, 0};
    register unsigned long rbx __asm__("rbx") = frame;
    long rc;

    /* nanosleep; the stack pointer is put below the frame, as a stack's is. */
    __asm__ volatile(
        "push %%rbp\n\tmov %%rsp, %%r12\n\tmov %%rbx, %%rbp\n\tlea -64(%%rbx), %%rsp\n\tsyscall\n\t"
        "mov %%r12, %%rsp\n\tpop %%rbp"
        : "=a"(rc)
        : "a"(SYS_nanosleep), "D"(&years), "S"(0), "r"(rbx)
        : "rcx", "r11", "r12", "memory");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    unsigned long frame = 0;

    if (!strcmp(mode, "code"))
        unserved(PROT_READ | PROT_WRITE | PROT_EXEC);
    else if (!strcmp(mode, "stack"))
        frame = (unsigned long)unserved(PROT_READ | PROT_WRITE) + 4 * PAGE;
    ready();
    for (int i = 0; !frame || i < 100; i++)
        usleep(20000);
    sleep_with_frame(frame);
    return 0;
}
