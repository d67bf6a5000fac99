/* socket: how long data lay in a TCP socket of the target, received and not read, or written and not sent;
 * and how long connections waited to be accepted (accept.bpf.h). Each side of a socket has a row of marks: up
 * to this sequence number, since this time. */
#define LOOKS_AT_ALL
#define LOOKS_AT_MORE
#include "triggers/bpf/span.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MARKS        32
#define IPPROTO_TCP  6
#define AF_INET      2
#define FIN          1 /* TCP's flag */
#define RCV_SHUTDOWN 1 /* include/net/sock.h: the peer has ended its data */
#define RECORD_SLOT  0x40000000u

enum {
    NR_CONNECT = 42,
    NR_ACCEPT = 43,
    NR_LISTEN = 50,
    NR_ACCEPT4 = 288,
};

/* Why data were not sent at once. */
enum held {
    HELD_OTHER,
    HELD_NAGLE,
    HELD_WINDOW,
    HELD_CONGESTION,
};

const volatile st_u32 sides; /* enum socket_side */

struct mark {
    st_u64 since; /* ktime */

    st_u32 seq; /* behind the last byte */

    st_u32 why; /* enum held */
};

struct side {
    struct mark marks[MARKS];

    st_u32 first, end; /* marks[first % MARKS] is the oldest; first == end: none */

    st_u32 told; /* + 1 of the mark that was told as ongoing */

    st_u64 told_seq; /* of its record */
};

struct watched {
    struct side unread, unsent;

    st_u32 read_to; /* sequence number */

    st_u32 pid, tid; /* who used it last */

    char comm[16];

    st_u64 queue_seq; /* of a listener: of the record that told its queue as ongoing */

    st_u64 queue_told; /* up to this ktime */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, st_u64); /* struct sock * */
    __type(value, struct watched);
} sockets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, st_u32);
    __type(value, struct watched);
} new_socket SEC(".maps");

static __always_inline bool before(st_u32 a, st_u32 b)
{
    return (st_s32)(a - b) < 0;
}

static __always_inline struct tcp_sock *tcp(st_u64 sk)
{
    return (struct tcp_sock *)sk;
}

/* ---- marks ---- */

/* Data that come soon after others share their mark: the oldest of those too long there is exact to 1/32. */
static __always_inline void mark(struct side *s, st_u32 seq, st_u32 why, st_u64 ktime)
{
    struct mark *last = &s->marks[(s->end - 1) % MARKS], *next = &s->marks[s->end % MARKS];

    if (s->end != s->first && !before(last->seq, seq))
        return;
    if (s->end != s->first && ktime - last->since < threshold_ns / MARKS) {
        last->seq = seq;
        return;
    }
    if (s->end - s->first >= MARKS) /* these count from when there is room */
        return;
    next->since = ktime;
    next->seq = seq;
    next->why = why;
    *(volatile st_u32 *)&s->end = s->end + 1;
}

/* ---- records ---- */

static __always_inline void add_peer(struct st_stall_record *r, struct sock *sk)
{
    st_u32 port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
    st_u32 address = BPF_CORE_READ(sk, __sk_common.skc_daddr);
    struct in6_addr six;

    if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
        add_attribute(r, "peer=%pI4:%u", &address, port);
    } else {
        bpf_core_read(&six, sizeof(six), &sk->__sk_common.skc_v6_daddr);
        if (is_mapped(&six))
            add_attribute(r, "peer=%pI4:%u", (char *)&six + 12, port);
        else
            add_attribute(r, "peer=[%pI6]:%u", &six, port);
    }
    add_attribute(r, "port=%u", BPF_CORE_READ(sk, __sk_common.skc_num));
}

static __always_inline void add_unsent(struct st_stall_record *r, struct tcp_sock *tp, st_u32 why)
{
    static const char names[4][12] = {"other", "nagle", "window", "congestion"};

    add_attribute(r, "side=%s", "unsent");
    add_attribute(r, "held_by=%s", names[why & 3]);
    add_attribute(r, "nodelay=%u", BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle) & 1);
}

/* Data that are told. */
struct gone {
    struct watched *w;

    st_u64 sk;

    st_u64 ktime;

    st_u32 bytes; /* that lay there */

    st_u32 unsent;

    st_u32 seq; /* up to this */

    st_u32 found; /* one of its marks is over the threshold: the oldest, */

    st_u32 index, why;

    st_u64 since;
};

static __always_inline void name_record(struct st_stall_record *r, const struct watched *w)
{
    r->pid = w->pid;
    r->tid = w->tid;
    __builtin_memcpy(r->comm, w->comm, sizeof(r->comm));
}

static __noinline void describe_socket(struct st_stall_record *r, struct gone *g, st_u32 why)
{
    name_record(r, g->w);
    if (g->unsent)
        add_unsent(r, tcp(g->sk), why);
    else
        add_attribute(r, "side=%s", "unread");
    add_attribute(r, "bytes=%u", g->bytes);
    add_peer(r, (struct sock *)g->sk);
}

static __always_inline void base_of(struct st_stall_record *r, st_u32 flags)
{
    r->magic = ST_STALL_MAGIC;
    r->version = ST_STALL_VERSION;
    r->kind = span.kind;
    r->trigger = span.trigger;
    r->flags = flags;
    r->threshold_ns = threshold_ns;
    r->syscall = -1;
    r->cpu = bpf_get_smp_processor_id();
}

static __noinline void tell_gone(void *ctx, struct gone *g)
{
    st_u32 context = context_of(preempt_count());
    st_u32 slot = RECORD_SLOT | context << 16 | bpf_get_smp_processor_id();
    struct side *s = g->unsent ? &g->w->unsent : &g->w->unread;
    bool told = s->told == g->index + 1;
    struct pending *p = new_pending(slot);

    if (!p) {
        __sync_fetch_and_add(&lost_records, 1);
        return;
    }
    base_of(&p->r, told ? ST_STALL_COMPLETION : fires(g->ktime) ? ST_STALL_FIRED : 0);
    p->r.seq = told ? s->told_seq : __sync_fetch_and_add(&last_seq, 1) + 1;
    p->r.start_ktime = g->since;
    p->r.end_ktime = g->ktime;
    p->r.measured_ns = g->ktime - g->since;
    if (g->unsent) { /* what let it go */
        describe_waker(ctx, bpf_get_current_task_btf(), &p->r);
        p->r.wake_ktime = g->ktime;
    } else {
        copy_user_stack(ctx, p, bpf_get_current_task_btf());
    }
    describe_socket(&p->r, g, g->why);
    add_stop_within(&p->r);
    emit(ctx, p);
    bpf_map_delete_elem(&pending, &slot);
}

ST_STEP(pop_mark, number, struct gone *g)
{
    struct side *s = g->unsent ? &g->w->unsent : &g->w->unread;
    struct mark *m = &s->marks[s->first % MARKS];
    st_u64 took = g->ktime - m->since;

    if (*number >= MARKS || s->first == s->end || before(g->seq, m->seq))
        return 1;
    if ((st_s64)took < 0)
        took = 0;
    measure(took, NULL); /* of a socket, which no thread owns */
    if (took >= threshold_ns && !g->found) {
        g->found = 1;
        g->index = s->first;
        g->why = m->why;
        g->since = m->since;
    }
    *(volatile st_u32 *)&s->first = s->first + 1;
    return 0;
}

/* Data up to g->seq are gone. Of several marks the oldest is told. */
static __always_inline void release(void *ctx, struct gone *g)
{
    st_steps(pop_mark, g);
    if (!g->found || span.measure_only)
        return;
    tell_gone(ctx, g);
    if (span.worst)
        threshold_ns = g->ktime - g->since + 1;
}

#include "triggers/bpf/accept.bpf.h"

/* ---- which sockets ---- */

static __always_inline bool is_tcp(st_u64 sk)
{
    return sk && BPF_CORE_READ((struct sock *)sk, sk_protocol) == IPPROTO_TCP;
}

/* Data up to here are there. The end of the peer's data takes a sequence number, and is none of them. */
static __always_inline st_u32 received(st_u64 sk)
{
    return BPF_CORE_READ(tcp(sk), rcv_nxt) - (BPF_CORE_READ((struct sock *)sk, sk_shutdown) & RCV_SHUTDOWN);
}

static __always_inline void name_user(struct watched *w, struct task_struct *task)
{
    w->pid = BPF_CORE_READ(task, tgid);
    w->tid = BPF_CORE_READ(task, pid);
    bpf_core_read(w->comm, sizeof(w->comm), &task->comm);
}

/* A socket of a watched thread; what lies there already counts from now. */
static __noinline struct watched *watch_socket(st_u64 sk, struct task_struct *task)
{
    struct watched *w = bpf_map_lookup_elem(&sockets, &sk), *fresh;
    st_u32 zero = 0, got;

    if (w)
        return w;
    fresh = bpf_map_lookup_elem(&new_socket, &zero);
    if (!fresh || !is_tcp(sk))
        return NULL;
    bpf_map_update_elem(&sockets, &sk, fresh, BPF_NOEXIST);
    w = bpf_map_lookup_elem(&sockets, &sk);
    if (!w) {
        __sync_fetch_and_add(&lost_threads, 1);
        return NULL;
    }
    name_user(w, task);
    watch_queue(sk);
    got = received(sk);
    w->read_to = BPF_CORE_READ(tcp(sk), copied_seq);
    if (before(w->read_to, got))
        mark(&w->unread, got, 0, bpf_ktime_get_ns());
    return w;
}

static __always_inline struct watched *used_by_target(st_u64 sk)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *t = thread_of(task);
    struct watched *w;

    if (!t || !is_member(t, task))
        return bpf_map_lookup_elem(&sockets, &sk);
    w = watch_socket(sk, task);
    if (w && w->tid != (st_u32)task->pid)
        name_user(w, task);
    return w;
}

/* Those it has when it is armed. */
SEC("iter/task_file")
int socket_find(struct bpf_iter__task_file *ctx)
{
    struct task_struct *task = ctx->task;
    struct file *file = ctx->file;
    struct thread *t;
    st_u64 sk;

    if (!task || !file)
        return 0;
    t = thread_of(task);
    if (!t || !is_member(t, task))
        return 0;
    sk = socket_of(file);
    if (is_tcp(sk))
        watch_socket(sk, task);
    return 0;
}

/* accept(), from the socket of that descriptor. */
static __always_inline void accepts(void *ctx, struct task_struct *task, st_u32 fd, st_u64 connection)
{
    st_u64 listener = socket_at(task, fd);
    struct watched *w;

    if (!is_tcp(listener) || !(sides & SOCKET_UNACCEPTED))
        return;
    w = watch_socket(listener, task);
    if (w && w->tid != (st_u32)task->pid)
        name_user(w, task);
    accepted(ctx, connection, listener);
}

/* Those it accepts, connects, or listens on. */
SEC("tp_btf/sys_exit")
int BPF_PROG(socket_made, struct pt_regs *regs, long ret)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *t = thread_of(task);
    bool accept;
    st_s32 nr;
    st_u64 sk;

    if (!t || ret < 0)
        return 0;
    nr = (st_s32)user_registers(task)->orig_ax;
    accept = nr == NR_ACCEPT || nr == NR_ACCEPT4;
    if (!accept && nr != NR_CONNECT && nr != NR_LISTEN)
        return 0;
    if (!is_member(t, task))
        return 0;
    sk = socket_at(task, accept ? ret : user_registers(task)->di);
    if (!is_tcp(sk))
        return 0;
    if (accept)
        accepts(ctx, task, user_registers(task)->di, sk);
    if (watch_socket(sk, task) && nr == NR_LISTEN)
        watch_queue(sk);
    return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(socket_ends, struct sock *sk)
{
    st_u64 key = (st_u64)sk;

    forget_waiting(ctx, key);
    bpf_map_delete_elem(&sockets, &key);
    return 0;
}

/* ---- unread ---- */

/* Data that came before and were dropped (no room, a wrong checksum) do not lie there: `next` is what the
 * socket waits for. */
static __always_inline void drop_unreceived(struct side *s, st_u32 next, st_u32 copied)
{
    struct mark *last = &s->marks[(s->end - 1) % MARKS];

    if (s->end == s->first || !before(next, last->seq))
        return;
    last->seq = next;
    if (!before(copied, next) || (s->end - s->first > 1 && s->marks[(s->end - 2) % MARKS].seq == next))
        *(volatile st_u32 *)&s->end = s->end - 1;
}

/* net/ipv4/tcp_input.c, tcp_rcv_established(): before the segment is looked at, with the socket locked. What
 * is ahead of its turn cannot be read yet. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(socket_received, struct sock *sk, struct sk_buff *skb)
{
    st_u64 key = (st_u64)sk;
    struct watched *w = bpf_map_lookup_elem(&sockets, &key);
    struct tcp_skb_cb *cb = (struct tcp_skb_cb *)&skb->cb;
    st_u32 begin, end, next;

    if (!w || !(sides & SOCKET_UNREAD))
        return 0;
    begin = BPF_CORE_READ(cb, seq);
    end = BPF_CORE_READ(cb, end_seq) - (BPF_CORE_READ(cb, tcp_flags) & FIN);
    next = BPF_CORE_READ(tcp(key), rcv_nxt);
    if (begin == end || before(next, begin) || !before(next, end))
        return 0;
    drop_unreceived(&w->unread, next, BPF_CORE_READ(tcp(key), copied_seq));
    mark(&w->unread, end, 0, bpf_ktime_get_ns());
    return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(socket_read, struct sock *sk)
{
    st_u64 key = (st_u64)sk;
    struct gone g = {.sk = key};
    st_u32 copied;

    g.w = used_by_target(g.sk);
    if (!g.w || !(sides & SOCKET_UNREAD))
        return 0;
    copied = BPF_CORE_READ(tcp(key), copied_seq);
    g.ktime = bpf_ktime_get_ns();
    g.bytes = g.w->unread.marks[(g.w->unread.end - 1) % MARKS].seq - g.w->read_to;
    g.w->read_to = copied;
    g.seq = copied;
    release(ctx, &g);
    return 0;
}

/* ---- unsent ---- */

static __always_inline st_u32 held_by(struct tcp_sock *tp, st_u32 unsent)
{
    st_u32 una = BPF_CORE_READ(tp, snd_una), next = BPF_CORE_READ(tp, snd_nxt);
    st_u32 mss = BPF_CORE_READ(tp, mss_cache), window = una + BPF_CORE_READ(tp, snd_wnd) - next;

    if (window < unsent && window < mss)
        return HELD_WINDOW;
    if (BPF_CORE_READ(tp, packets_out) >= BPF_CORE_READ(tp, snd_cwnd))
        return HELD_CONGESTION;
    return unsent < mss && before(una, next) && !(BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle) & 1)
               ? HELD_NAGLE
               : HELD_OTHER;
}

static __always_inline int written(st_u64 sk)
{
    struct watched *w;
    st_u32 end, next;

    if (!(sides & SOCKET_UNSENT))
        return 0;
    w = used_by_target(sk);
    if (!w)
        return 0;
    end = BPF_CORE_READ(tcp(sk), write_seq);
    next = BPF_CORE_READ(tcp(sk), snd_nxt);
    if (before(next, end))
        mark(&w->unsent, end, held_by(tcp(sk), end - next), bpf_ktime_get_ns());
    return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(socket_written, struct sock *sk)
{
    return written((st_u64)sk);
}

/* Before Linux 6.3 there is no such tracepoint. */
SEC("fexit/tcp_sendmsg")
int BPF_PROG(socket_sendmsg, struct sock *sk)
{
    return written((st_u64)sk);
}

SEC("kprobe/tcp_push")
int socket_push(struct pt_regs *ctx)
{
    return written(ctx->di);
}

struct tcp_head {
    st_u32 ports;

    st_u32 seq; /* network order */

    st_u32 ack;

    unsigned char reserved : 4, words : 4;
};

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(socket_sent, struct sk_buff *skb)
{
    st_u64 key = (st_u64)BPF_CORE_READ(skb, sk);
    struct gone g = {.sk = key, .unsent = 1};
    struct tcp_head head = {0};
    unsigned char *at;
    st_u32 end;

    if (!g.sk)
        return 0;
    g.w = bpf_map_lookup_elem(&sockets, &g.sk);
    if (!g.w || g.w->unsent.first == g.w->unsent.end)
        return 0;
    at = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, transport_header);
    if (bpf_probe_read_kernel(&head, sizeof(head), at))
        return 0;
    end = __builtin_bswap32(head.seq) + BPF_CORE_READ(skb, len) - (st_u32)(at - BPF_CORE_READ(skb, data)) -
          head.words * 4;
    g.ktime = bpf_ktime_get_ns();
    g.bytes = BPF_CORE_READ(tcp(key), write_seq) - __builtin_bswap32(head.seq);
    g.seq = end;
    release(ctx, &g);
    return 0;
}

/* ---- what goes on ---- */

static __noinline void look_at_side(struct looking *l, struct watched *w, st_u64 sk, bool unsent)
{
    struct side *s = unsent ? &w->unsent : &w->unread;
    st_u32 first = *(volatile st_u32 *)&s->first, done, there;
    struct mark *m = &s->marks[first % MARKS];
    struct gone g = {.w = w, .sk = sk, .unsent = unsent};
    struct pending *p;

    if (first == *(volatile st_u32 *)&s->end || s->told == first + 1)
        return;
    /* Data may have come since it began to look. */
    if ((st_s64)(l->now - m->since) < (st_s64)l->due) {
        sooner(l, m->since + l->due);
        return;
    }
    done = unsent ? BPF_CORE_READ(tcp(sk), snd_nxt) : BPF_CORE_READ(tcp(sk), copied_seq);
    there = unsent ? BPF_CORE_READ(tcp(sk), write_seq) : received(sk);
    if (!before(done, m->seq)) { /* it went unseen */
        __sync_val_compare_and_swap(&s->first, first, first + 1);
        return;
    }
    if (!before(done, there)) /* it came, and was dropped */
        return;
    p = cleared_scratch();
    if (!fires(l->now) || !p)
        return;
    base_of(&p->r, ST_STALL_ONGOING | ST_STALL_FIRED);
    p->r.seq = __sync_fetch_and_add(&last_seq, 1) + 1;
    p->r.start_ktime = m->since;
    p->r.measured_ns = l->now - m->since;
    g.bytes = there - done;
    describe_socket(&p->r, &g, m->why);
    add_stop_within(&p->r);
    s->told_seq = p->r.seq;
    *(volatile st_u32 *)&s->told = first + 1;
    if (try_record(OUTPUT_SCRATCH, 0, &p->r))
        return;
    sooner(l, l->now);
    if (__sync_val_compare_and_swap(&s->told, first + 1, 0) != first + 1)
        count_lost_record();
}

static long look_at_socket(void *map, st_u64 *sk, struct watched *w, struct looking *l)
{
    if (sides & SOCKET_UNACCEPTED && state_of(*sk) == TCP_LISTEN)
        look_at_queue(l, w, *sk);
    if (sides & SOCKET_UNREAD)
        look_at_side(l, w, *sk, false);
    if (sides & SOCKET_UNSENT)
        look_at_side(l, w, *sk, true);
    return 0;
}

static void look_at_more(struct looking *l)
{
    bpf_for_each_map_elem(&sockets, look_at_socket, l, 0);
}

/* There are no spans of threads. */
static void span_found(struct thread *t, struct task_struct *task)
{
}

static __always_inline void span_describe(struct thread *t, struct st_stall_record *r,
                                          const struct span_end *end)
{
}
