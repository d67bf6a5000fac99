/* Frame pointers through process_vm_readv(2). */
#include "triggers/ustack.h"

#include <sys/uio.h>

size_t trg_walk_user_stack(pid_t pid, uint64_t sp, uint64_t bp, uint64_t *frames, size_t room)
{
    size_t n = 0;

    while (n < room && bp >= sp && bp % 8 == 0) {
        uint64_t frame[2] = {0, 0};
        struct iovec to = {frame, sizeof(frame)}, from = {(void *)(uintptr_t)bp, sizeof(frame)};

        if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)sizeof(frame) || !frame[1])
            break;
        frames[n++] = frame[1];
        if (frame[0] <= bp)
            break;
        bp = frame[0];
    }
    return n;
}
