/* The socket that a thread waits on. */
#ifndef ST_TRIGGERS_BPF_SOCKET_BPF_H
#define ST_TRIGGERS_BPF_SOCKET_BPF_H

#include "triggers/bpf/kernel.h"

#define S_IFMT   0170000
#define S_IFSOCK 0140000

/* The struct sock of a file; 0: it is no socket. Reads by probe: what changes meanwhile gives a wrong answer,
 * no fault. */
static __always_inline st_u64 socket_of(struct file *file)
{
    struct socket *socket;

    if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
        return 0;
    socket = BPF_CORE_READ(file, private_data);
    return (st_u64)BPF_CORE_READ(socket, sk);
}

static __always_inline st_u64 socket_at(struct task_struct *task, st_u32 fd)
{
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct file **files, *file = NULL;

    if (!table || fd >= BPF_CORE_READ(table, max_fds))
        return 0;
    files = BPF_CORE_READ(table, fd);
    if (bpf_probe_read_kernel(&file, sizeof(file), files + fd))
        return 0;
    return socket_of(file);
}

/* The socket behind the descriptor that is the first argument of the system call `task` is in; 0: that is no
 * socket. The task does not run. */
static __always_inline st_u64 socket_waited_on(struct task_struct *task)
{
    struct pt_regs *regs = user_registers(task);

    return socket_at(task, task->thread_info.status & TS_COMPAT ? regs->bx : regs->di);
}

/* TCP's timers are members of its socket (include/net/inet_connection_sock.h). */
static __always_inline bool is_part_of_socket(st_u64 address, st_u64 socket)
{
    return address - socket < bpf_core_type_size(struct tcp_sock);
}

#endif
