/* A process with code that it made itself, and with files about it that are meant to hurt who reads them.
 *
 *   jit_target MAPPINGS sparse BYTES      a perf-PID.map that is a hole, with one name at its end
 *   jit_target MAPPINGS lines N LENGTH    one of N names of that length
 *   jit_target MAPPINGS fifo              a FIFO in its place
 *   jit_target MAPPINGS dump LOADS MOVES  a jitdump whose moves are of code that was never made
 *
 * The first mapping begins with a function of one byte, called `hot` in each of them. Prints "ready PID". */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned char *first;

/* Each between two that are no code: the kernel would make one of them all. */
static void make_code(int n)
{
    for (int i = 0; i < n; i++) {
        unsigned char *m =
            mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (m == MAP_FAILED)
            exit(1);
        memset(m, 0xc3, 64);
        mprotect(m + 4096, 4096, PROT_NONE);
        first = m;
    }
}

static void w32(FILE *f, uint32_t v)
{
    fwrite(&v, sizeof(v), 1, f);
}

static void w64(FILE *f, uint64_t v)
{
    fwrite(&v, sizeof(v), 1, f);
}

static void load(FILE *f, uint64_t address, uint64_t index, const char *name)
{
    w32(f, 0);
    w32(f, 16 + 40 + (uint32_t)strlen(name) + 1);
    w64(f, 0);
    w32(f, 1);
    w32(f, 1);
    w64(f, address);
    w64(f, address);
    w64(f, 1);
    w64(f, index);
    fwrite(name, strlen(name) + 1, 1, f);
}

static void move(FILE *f, uint64_t index)
{
    w32(f, 1);
    w32(f, 16 + 48);
    w64(f, 0);
    w32(f, 1);
    w32(f, 1);
    w64(f, 0);
    w64(f, 0);
    w64(f, 0);
    w64(f, 1);
    w64(f, index);
}

static void make_dump(long loads, long moves)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
    unlink(path);
    f = fopen(path, "w+");
    if (!f)
        exit(1);
    w32(f, 0x4A695444);
    w32(f, 1);
    w32(f, 40);
    w32(f, 62);
    w32(f, 0);
    w32(f, (uint32_t)getpid());
    w64(f, 0);
    w64(f, 0);
    load(f, (uint64_t)(uintptr_t)first, 1, "hot");
    for (long i = 0; i < loads; i++)
        load(f, (uint64_t)(uintptr_t)first + 2 + (uint64_t)i % 4000, (uint64_t)i + 2, "a");
    for (long i = 0; i < moves; i++)
        move(f, ~(uint64_t)i);
    fflush(f);
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) == MAP_FAILED)
        exit(1);
    fclose(f);
}

static void make_map(char **argv)
{
    char path[64], name[4096];
    long n = argv[1] ? atol(argv[1]) : 0, length;
    FILE *f;

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    unlink(path);
    if (!strcmp(argv[0], "fifo")) {
        if (mkfifo(path, 0600))
            exit(1);
        return;
    }
    f = fopen(path, "w");
    if (!f)
        exit(1);
    if (!strcmp(argv[0], "sparse")) {
        if (fseeko(f, n, SEEK_SET))
            exit(1);
        n = 0;
    }
    length = n ? atol(argv[2]) : 0;
    memset(name, 'A', sizeof(name));
    fprintf(f, "\n%lx 1 hot\n", (unsigned long)(uintptr_t)first);
    for (long i = 0; i < n; i++)
        fprintf(f, "%lx 1 %.*s\n", (unsigned long)(uintptr_t)first + 1 + (unsigned long)i % 4000, (int)length,
                name);
    fclose(f);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    make_code(atoi(argv[1]));
    if (!strcmp(argv[2], "dump"))
        make_dump(atol(argv[3]), atol(argv[4]));
    else
        make_map(argv + 2);
    printf("ready %d\n", getpid());
    fflush(stdout);
    for (;;) {
        ((void (*)(void))(uintptr_t)first)();
        usleep(1000);
    }
}
