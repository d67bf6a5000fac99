/* What a record tells beyond its common columns: "key=value" strings in its room for attributes, each in a
 * slot of its own (readers skip the zeros between them). */
#ifndef ST_TRIGGERS_BPF_ABOUT_BPF_H
#define ST_TRIGGERS_BPF_ABOUT_BPF_H

#include "triggers/bpf/kernel.h"

#define ABOUT_SLOT 32
#define ABOUT_PEER 64 /* of the first slot: an address takes more room */

enum {
    AF_INET = 2,
    AF_INET6 = 10,
    IPPROTO_TCP = 6,
};

#define JUST_READY_NS 100000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr___about {
    st_u32 any[4];
};

struct sock_common___about {
    unsigned short skc_family;

    unsigned short skc_dport; /* in the network's order */

    unsigned short skc_num; /* the local port */

    st_u32 skc_daddr;

    struct in6_addr___about skc_v6_daddr;
};

struct sock___about {
    struct sock_common___about __sk_common;

    unsigned short sk_protocol;
};

struct tcp_rack {
    st_u64 mstamp;
};

struct tcp_sock___about {
    st_u32 total_retrans;

    struct tcp_rack
        rack; /* mstamp: when the segment was sent that was acknowledged last; CLOCK_MONOTONIC in us */

    unsigned char nonagle : 4;
};

#pragma clang attribute pop

/* The socket that got data last on this CPU: what its wake-up function wakes at once is woken by that. */
struct ready_socket {
    st_u64 sk;

    st_u64 ktime;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct ready_socket);
} ready_sockets SEC(".maps");

SEC("tp_btf/sk_data_ready")
int BPF_PROG(st_data_ready, void *sk)
{
    st_u32 zero = 0;
    struct ready_socket *ready = bpf_map_lookup_elem(&ready_sockets, &zero);

    if (!ready)
        return 0;
    ready->sk = (st_u64)sk;
    ready->ktime = bpf_ktime_get_ns();
    return 0;
}

static __always_inline void about_number(struct st_stall_record *r, st_u32 at, const char *format,
                                         st_u64 value)
{
    bpf_snprintf(r->extra + at, ABOUT_SLOT, format, &value, sizeof(value));
}

static __always_inline void about_tcp(struct st_stall_record *r, struct tcp_sock___about *tp, st_u64 since)
{
    static const char nodelay[] = "nodelay=%llu", late[] = "sent_after_ns=%lld", again[] = "retransmits=%llu";
    st_u64 sent = BPF_CORE_READ(tp, rack.mstamp) * 1000;

    about_number(r, ABOUT_PEER + ABOUT_SLOT, nodelay, BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle) & 1);
    about_number(r, ABOUT_PEER + 2 * ABOUT_SLOT, again, BPF_CORE_READ(tp, total_retrans));
    if (sent)
        about_number(r, ABOUT_PEER + 3 * ABOUT_SLOT, late, sent - since);
    r->extra_n = ABOUT_PEER + 4 * ABOUT_SLOT;
}

/* The socket whose data wakes a thread that waits since `since` (CLOCK_MONOTONIC): attributes peer,
 * local_port, and of TCP nodelay (its own option), retransmits, and sent_after_ns: how long after the
 * beginning of the wait (negative: before it) it sent what the peer acknowledged last. */
static __noinline void about_socket(struct st_stall_record *r, st_u64 since, st_u64 now)
{
    static const char four[] = "peer=%pI4:%u", six[] = "peer=[%pI6c]:%u", port[] = "local_port=%llu";
    st_u32 zero = 0;
    struct ready_socket *ready = bpf_map_lookup_elem(&ready_sockets, &zero);
    struct sock___about *sk;
    st_u32 any[4] = {0};
    st_u64 args[2];
    st_u16 family;

    if (!ready || !ready->sk || now - ready->ktime > JUST_READY_NS)
        return;
    sk = (struct sock___about *)ready->sk;
    family = BPF_CORE_READ(sk, __sk_common.skc_family);
    args[0] = (st_u64)any;
    args[1] = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
    if (family == AF_INET) {
        any[0] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
        bpf_snprintf(r->extra, ABOUT_PEER, four, args, sizeof(args));
    } else if (family == AF_INET6) {
        bpf_core_read(any, sizeof(any), &sk->__sk_common.skc_v6_daddr);
        if (is_mapped(any)) {
            any[0] = any[3];
            bpf_snprintf(r->extra, ABOUT_PEER, four, args, sizeof(args));
        } else {
            bpf_snprintf(r->extra, ABOUT_PEER, six, args, sizeof(args));
        }
    } else {
        return;
    }
    about_number(r, ABOUT_PEER, port, BPF_CORE_READ(sk, __sk_common.skc_num));
    r->extra_n = ABOUT_PEER + ABOUT_SLOT;
    if (BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP)
        about_tcp(r, (struct tcp_sock___about *)sk, since);
}
#endif
