/* Frame pointers, followed through the memory of the process. */
#include "triggers/ustack.h"
#include "triggers/memory.h"

#include <unistd.h>

size_t trg_walk_user_stack(pid_t pid, uint64_t sp, uint64_t bp, uint64_t *frames, size_t room)
{
    int memory = trg_memory_open(pid);
    size_t n = 0;

    if (memory < 0)
        return 0;
    while (n < room && bp >= sp && bp % 8 == 0) {
        uint64_t frame[2] = {0, 0};

        if (!trg_memory_read(memory, bp, frame, sizeof(frame)) || !frame[1])
            break;
        frames[n++] = frame[1];
        if (frame[0] <= bp)
            break;
        bp = frame[0];
    }
    close(memory);
    return n;
}
