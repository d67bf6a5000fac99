/* The time-out of a system call that goes on, from the memory of its process. */
#include "triggers/timeout_asked.h"
#include "base/clock.h"
#include "triggers/bpf/timeout.h"
#include "triggers/memory.h"

#include <time.h>
#include <unistd.h>

uint64_t trg_real_offset(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec - st_kernel_ns();
}

uint64_t trg_timeout_asked(pid_t pid, int32_t syscall, const uint64_t *args, uint64_t start)
{
    struct timeout_place place = timeout_of(syscall, args);
    uint64_t two[2];
    int memory;
    bool known;

    if (place.form == TIMEOUT_MILLISECONDS)
        return (uint32_t)place.value * (uint64_t)1000000;
    if (place.form == TIMEOUT_NONE || (place.form >= TIMEOUT_UNTIL && !start))
        return 0;
    memory = trg_memory_open(pid);
    if (memory < 0)
        return 0;
    known = trg_memory_read(memory, place.value, two, sizeof(two));
    close(memory);
    return known ? timeout_ns(place.form, two, start, trg_real_offset()) : 0;
}
