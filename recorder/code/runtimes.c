/* Tells runtimes by the files that a process has mapped as code. */
#include "recorder/code/runtimes.h"
#include "recorder/code/perf_map.h"
#include "recorder/code/proc_maps.h"
#include "triggers/memory.h"
#include "triggers/python.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct found {
    bool java, node, python;

    bool jitdump; /* a JIT compiler maps it as code, so that a profiler sees it (jit-interface.txt) */
};

static int look_at(void *ctx, const struct rec_map *map, struct st_error *err)
{
    const char *base = strrchr(map->name, '/');
    struct found *f = ctx;

    (void)err;
    if (!base++)
        return 0;
    f->java |= !strcmp(base, "libjvm.so");
    f->node |= !strcmp(base, "node") || !strcmp(base, "nodejs") || !strncmp(base, "libnode.so", 10);
    f->python |= !strncmp(base, "python3", 7) || !strncmp(base, "libpython3", 10);
    f->jitdump |= !strncmp(base, "jit-", 4) && strstr(base, ".dump");
    return 0;
}

static bool has_perf_map(pid_t pid)
{
    int fd = rec_perf_map_open(pid);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Else nothing is known of its version. */
static bool may_be_read(pid_t pid)
{
    int memory = trg_memory_open(pid);

    if (memory >= 0)
        close(memory);
    return memory >= 0;
}

bool rec_runtime_advice(pid_t pid, char *text, size_t size)
{
    struct trg_python python;
    struct found f = {0};

    if (rec_proc_maps(pid, look_at, &f, NULL))
        return false;
    if ((f.java || f.node) && !f.jitdump && !has_perf_map(pid)) {
        if (f.java)
            snprintf(text, size,
                     "process %d is a Java program: its compiled methods have names once `jcmd %d "
                     "Compiler.perfmap` has written them (Java 17 or newer), and whole call paths if it was "
                     "started with -XX:+PreserveFramePointer",
                     pid, pid);
        else
            snprintf(text, size,
                     "process %d is a Node.js program: its functions have names if it was started with "
                     "--perf-basic-prof --interpreted-frames-native-stack",
                     pid);
        return true;
    }
    if (!f.python || !may_be_read(pid) || trg_python_find(pid, &python))
        return false;
    snprintf(text, size,
             "process %d has a Python whose frames are not known: reports have the interpreter's own "
             "functions only (CPython 3.11 to 3.14 is known, but for its build without the GIL)",
             pid);
    return true;
}
