/* Connections that wait to be accepted by the target: from when the kernel had made them. One record tells of
 * all that wait at a time, since the oldest of them. Inside of socket.bpf.c. */
#ifndef ST_TRIGGERS_BPF_ACCEPT_BPF_H
#define ST_TRIGGERS_BPF_ACCEPT_BPF_H

#define WAITING_MAX 65536
#define WAITING_WALK                                                                                         \
    4096 /* of one queue that are looked at when it is found: no queue is longer by default (somaxconn) */

/* include/net/tcp_states.h */
enum {
    TCP_ESTABLISHED = 1,
    TCP_SYN_RECV = 3,
    TCP_LISTEN = 10,
};

/* A connection that was made, and not accepted yet. */
struct waiting {
    st_u64 since; /* ktime */

    st_u64 listener; /* whose oldest it was when that was told as ongoing; 0: it was not, NO_LONGER: it is
                        accepted */
};

#define NO_LONGER 1

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, WAITING_MAX);
    __type(key, st_u64); /* struct sock * of the connection */
    __type(value, struct waiting);
} waiting SEC(".maps");

st_u32 listening[65536 / 32]; /* a bit for each port at which the target listens, or did */

static __always_inline struct request_sock *oldest_request(st_u64 listener)
{
    return BPF_CORE_READ((struct inet_connection_sock *)listener, icsk_accept_queue.rskq_accept_head);
}

static __always_inline st_u32 state_of(st_u64 sk)
{
    return BPF_CORE_READ((struct sock *)sk, __sk_common.skc_state);
}

static __always_inline bool is_listened_at(st_u32 port)
{
    return listening[port / 32 % (65536 / 32)] >> (port % 32) & 1;
}

static __always_inline void note_waiting(st_u64 connection, st_u64 ktime)
{
    struct waiting w = {.since = ktime};

    bpf_map_update_elem(&waiting, &connection, &w, BPF_NOEXIST);
}

/* ---- which ---- */

struct queue_walk {
    struct request_sock *at;

    st_u64 ktime;
};

ST_STEP(note_request, number, struct queue_walk *q)
{
    struct request_sock *at = q->at;
    st_u64 connection;

    if (!at || *number >= WAITING_WALK)
        return 1;
    connection = (st_u64)BPF_CORE_READ(at, sk);
    if (connection)
        note_waiting(connection, q->ktime);
    q->at = BPF_CORE_READ(at, dl_next);
    return 0;
}

/* A socket of the target, just found or that has begun to listen: what waits there counts from now. */
static __noinline void watch_queue(st_u64 sk)
{
    struct queue_walk q = {.ktime = bpf_ktime_get_ns()};
    st_u32 port = BPF_CORE_READ((struct sock *)sk, __sk_common.skc_num);

    if (!(sides & SOCKET_UNACCEPTED) || state_of(sk) != TCP_LISTEN)
        return;
    __sync_fetch_and_or(&listening[port / 32 % (65536 / 32)], 1u << (port % 32));
    q.at = oldest_request(sk);
    st_steps(note_request, &q);
}

/* The handshake of a connection to one of those ports is over, and it is in the queue of its listener. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(socket_established, struct sock *sk, int old, int new)
{
    if (old == TCP_SYN_RECV && new == TCP_ESTABLISHED &&
        sides &SOCKET_UNACCEPTED &&is_listened_at(sk->__sk_common.skc_num))
        note_waiting((st_u64)sk, bpf_ktime_get_ns());
    return 0;
}

/* ---- records ---- */

static __always_inline void add_local(struct st_stall_record *r, struct sock *sk)
{
    st_u32 port = BPF_CORE_READ(sk, __sk_common.skc_num);
    st_u32 address = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
    struct in6_addr six;

    if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
        add_attribute(r, "local=%pI4:%u", &address, port);
        return;
    }
    bpf_core_read(&six, sizeof(six), &sk->__sk_common.skc_v6_rcv_saddr);
    if (is_mapped(&six))
        add_attribute(r, "local=%pI4:%u", (char *)&six + 12, port);
    else
        add_attribute(r, "local=[%pI6c]:%u", &six, port);
}

/* `n`: how many wait. */
static __noinline void describe_queue(struct st_stall_record *r, struct watched *w, st_u64 listener, st_u32 n)
{
    name_record(r, w);
    add_attribute(r, "side=%s", "unaccepted");
    add_attribute(r, "connections=%u", n);
    add_local(r, (struct sock *)listener);
}

/* What the oldest waited, when it is over. */
struct accepted {
    struct watched *w; /* of the listener */

    st_u64 listener;

    st_u64 since, ktime;

    bool told; /* as ongoing */
};

static __noinline void tell_accepted(void *ctx, struct accepted *a)
{
    st_u32 slot = RECORD_SLOT | context_of(preempt_count()) << 16 | bpf_get_smp_processor_id();
    struct pending *p = new_pending(slot);
    struct sock *listener = (struct sock *)a->listener;

    if (!p) {
        __sync_fetch_and_add(&lost_records, 1);
        return;
    }
    base_of(&p->r, a->told ? ST_STALL_COMPLETION : fires(a->ktime) ? ST_STALL_FIRED : 0);
    p->r.seq = a->told ? a->w->queue_seq : __sync_fetch_and_add(&last_seq, 1) + 1;
    p->r.start_ktime = a->since;
    p->r.end_ktime = a->ktime;
    p->r.measured_ns = a->ktime - a->since;
    copy_user_stack(ctx, p, bpf_get_current_task_btf());
    describe_queue(&p->r, a->w, a->listener, BPF_CORE_READ(listener, sk_ack_backlog) + 1);
    add_stop_within(&p->r);
    emit(ctx, p);
    bpf_map_delete_elem(&pending, &slot);
}

/* One that waited for too long. Those that came while it did were behind it: they are part of what was told.
 */
static __noinline void accepted_late(void *ctx, struct accepted *a)
{
    if (!a->told && a->since < a->w->queue_told)
        return;
    a->w->queue_told = a->ktime;
    tell_accepted(ctx, a);
    if (span.worst && a->ktime - a->since >= threshold_ns)
        threshold_ns = a->ktime - a->since + 1;
}

/* `connection` was accepted, from `listener`. */
static __noinline void accepted(void *ctx, st_u64 connection, st_u64 listener)
{
    struct waiting *waited = bpf_map_lookup_elem(&waiting, &connection);
    struct accepted a = {.listener = listener, .ktime = bpf_ktime_get_ns()};

    if (!waited)
        return;
    a.since = waited->since;
    a.told = __sync_lock_test_and_set(&waited->listener, NO_LONGER) == listener;
    bpf_map_delete_elem(&waiting, &connection);
    measure(a.ktime - a.since, NULL);
    a.w = bpf_map_lookup_elem(&sockets, &listener);
    if (a.w && !span.measure_only && a.ktime - a.since >= threshold_ns)
        accepted_late(ctx, &a);
}

/* It ends without having been accepted: its listener does. */
static __always_inline void forget_waiting(void *ctx, st_u64 connection)
{
    struct waiting *waited = bpf_map_lookup_elem(&waiting, &connection);

    if (!waited)
        return;
    if (waited->listener)
        accepted(ctx, connection, waited->listener);
    else
        bpf_map_delete_elem(&waiting, &connection);
}

/* ---- what goes on ---- */

static __noinline void look_at_queue(struct looking *l, struct watched *w, st_u64 listener)
{
    struct request_sock *oldest = oldest_request(listener);
    st_u64 connection = oldest ? (st_u64)BPF_CORE_READ(oldest, sk) : 0;
    struct waiting *waits = connection ? bpf_map_lookup_elem(&waiting, &connection) : NULL;
    st_u64 since = waits ? waits->since : 0;
    struct pending *p;

    if (!waits || waits->listener || since < w->queue_told)
        return;
    if ((st_s64)(l->now - since) < (st_s64)l->due) {
        sooner(l, since + l->due);
        return;
    }
    p = cleared_scratch();
    w->queue_seq = __sync_fetch_and_add(&last_seq, 1) + 1;
    if (!fires(l->now) || !p || __sync_val_compare_and_swap(&waits->listener, 0, listener))
        return;
    base_of(&p->r, ST_STALL_ONGOING | ST_STALL_FIRED);
    p->r.seq = w->queue_seq;
    p->r.start_ktime = since;
    p->r.measured_ns = l->now - since;
    describe_queue(&p->r, w, listener, BPF_CORE_READ((struct sock *)listener, sk_ack_backlog));
    add_stop_within(&p->r);
    if (try_record(OUTPUT_SCRATCH, 0, &p->r))
        return;
    sooner(l, l->now);
    if (__sync_val_compare_and_swap(&waits->listener, listener, 0) != listener)
        count_lost_record();
}

#endif
