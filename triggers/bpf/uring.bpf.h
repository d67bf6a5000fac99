/* Which io_uring operations a thread has given to the kernel, and which ended last: what a wait in
 * io_uring_enter is for. Behind follow.bpf.h. */
#ifndef ST_TRIGGERS_BPF_URING_BPF_H
#define ST_TRIGGERS_BPF_URING_BPF_H

#include "triggers/bpf/kernel.h"

#define URING_NAMES 64

/* include/uapi/linux/io_uring.h, enum io_uring_op */
static const char uring_names[URING_NAMES][16] = {"NOP",
                                                  "READV",
                                                  "WRITEV",
                                                  "FSYNC",
                                                  "READ_FIXED",
                                                  "WRITE_FIXED",
                                                  "POLL_ADD",
                                                  "POLL_REMOVE",
                                                  "SYNC_FILE",
                                                  "SENDMSG",
                                                  "RECVMSG",
                                                  "TIMEOUT",
                                                  "TIMEOUT_REM",
                                                  "ACCEPT",
                                                  "ASYNC_CANCEL",
                                                  "LINK_TIMEOUT",
                                                  "CONNECT",
                                                  "FALLOCATE",
                                                  "OPENAT",
                                                  "CLOSE",
                                                  "FILES_UPDATE",
                                                  "STATX",
                                                  "READ",
                                                  "WRITE",
                                                  "FADVISE",
                                                  "MADVISE",
                                                  "SEND",
                                                  "RECV",
                                                  "OPENAT2",
                                                  "EPOLL_CTL",
                                                  "SPLICE",
                                                  "PROVIDE_BUFFER",
                                                  "REMOVE_BUFFERS",
                                                  "TEE",
                                                  "SHUTDOWN",
                                                  "RENAMEAT",
                                                  "UNLINKAT",
                                                  "MKDIRAT",
                                                  "SYMLINKAT",
                                                  "LINKAT",
                                                  "MSG_RING",
                                                  "FSETXATTR",
                                                  "SETXATTR",
                                                  "FGETXATTR",
                                                  "GETXATTR",
                                                  "SOCKET",
                                                  "URING_CMD",
                                                  "SEND_ZC",
                                                  "SENDMSG_ZC",
                                                  "READ_MULTISHOT",
                                                  "WAITID",
                                                  "FUTEX_WAIT",
                                                  "FUTEX_WAKE",
                                                  "FUTEX_WAITV",
                                                  "FIXED_FD_INST",
                                                  "FTRUNCATE",
                                                  "BIND",
                                                  "LISTEN",
                                                  "RECV_ZC",
                                                  "EPOLL_WAIT",
                                                  "READV_FIXED",
                                                  "WRITEV_FIXED",
                                                  "PIPE",
                                                  "?"};

const volatile bool uring_told; /* the programs below are loaded */

struct uring_op {
    st_u64 begun; /* ktime */

    st_u64 ended;

    st_u32 tid;

    st_u32 opcode;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, st_u64); /* struct io_kiocb * */
    __type(value, struct uring_op);
} uring_pending SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, st_u32); /* tid */
    __type(value, struct uring_op);
} uring_ended SEC(".maps");

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(uring_submit, struct io_kiocb *req)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct uring_op op = {.begun = bpf_ktime_get_ns(), .tid = task->pid, .opcode = req->opcode};
    st_u64 key = (st_u64)req;

    if (thread_of(task))
        bpf_map_update_elem(&uring_pending, &key, &op, BPF_ANY);
    return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(uring_complete, void *ring, void *req)
{
    st_u64 key = (st_u64)req;
    struct uring_op *op = bpf_map_lookup_elem(&uring_pending, &key), ended;

    if (!op)
        return 0;
    ended = *op;
    ended.ended = bpf_ktime_get_ns();
    bpf_map_update_elem(&uring_ended, &ended.tid, &ended, BPF_ANY);
    bpf_map_delete_elem(&uring_pending, &key);
    return 0;
}

struct uring_search {
    st_u32 tid, n, opcode;
};

static long count_pending(void *map, st_u64 *key, struct uring_op *op, struct uring_search *s)
{
    if (op->tid != s->tid)
        return 0;
    s->n++;
    s->opcode = op->opcode;
    return 0;
}

struct uring_wait {
    const char
        *name; /* of the operation that ended the wait, or one that it goes on for; NULL: none is known */

    st_u64 took; /* ns since it was given to the kernel; 0: it goes on */

    st_u32 pending; /* others */
};

/* What thread `tid` waits for since `start`; `has_ended`: the wait has. */
static __always_inline void uring_find(st_u32 tid, st_u64 start, bool has_ended, struct uring_wait *w)
{
    struct uring_op *ended = bpf_map_lookup_elem(&uring_ended, &tid);
    struct uring_search s = {.tid = tid};

    bpf_for_each_map_elem(&uring_pending, count_pending, &s, 0);
    w->pending = s.n;
    w->took = 0;
    w->name = NULL;
    if (has_ended && ended && ended->ended >= start) {
        w->name = uring_names[ended->opcode & (URING_NAMES - 1)];
        w->took = ended->ended - ended->begun;
    } else if (s.n) {
        w->name = uring_names[s.opcode & (URING_NAMES - 1)];
    }
}

#endif
