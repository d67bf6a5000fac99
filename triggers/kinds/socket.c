/* socket: its BPF programs and its sentence. */
#include "triggers/functions.h"
#include "triggers/kit.h"
#include "triggers/privilege.h"
#include "triggers/record_text.h"

#include "triggers/socket.skel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

const char *trg_sees_unsent_data(struct st_error *err)
{
    enum trg_kernel_hook hook;

    if (trg_has_btf_tracepoint("sock_send_length"))
        return "tracepoint";
    return trg_find_kernel_hook("tcp_sendmsg", &hook, err) ? NULL : trg_kernel_hook_name(hook);
}

/* Whether data were written is known by a tracepoint, from Linux 6.3; before by a function. */
static int choose_hook(struct trg_state *s, struct socket_bpf *bpf, struct st_error *err)
{
    bool unsent = bpf->rodata->sides & SOCKET_UNSENT, tracepoint = trg_has_btf_tracepoint("sock_send_length");
    enum trg_kernel_hook hook = TRG_HOOK_FENTRY;
    bool function = unsent && !tracepoint;
    int rc = function ? trg_find_kernel_hook("tcp_sendmsg", &hook, err) : 0;

    if (rc)
        return st_hint(err, "before Linux 6.3 unsent data needs one of them; side=unread works without");
    bpf_program__set_autoload(bpf->progs.socket_written, unsent && tracepoint);
    bpf_program__set_autoload(bpf->progs.socket_sendmsg, function && hook == TRG_HOOK_FENTRY);
    bpf_program__set_autoload(bpf->progs.socket_push, function && hook == TRG_HOOK_KPROBE);
    if (unsent)
        s->hook = tracepoint ? "tracepoint" : trg_kernel_hook_name(hook);
    return 0;
}

static int take(struct trg_state *s, struct st_error *err)
{
    uint32_t sides = s->how.spec->options->sides;
    struct socket_bpf *bpf = socket_bpf__open();

    if (!bpf)
        return trg_kit_no_skeleton(s, err);
    TRG_TAKE_SPAN(s, bpf);
    if (s->how.config->measure_only)
        TRG_NO_WAKERS(bpf);
    bpf_program__set_autoattach(bpf->progs.socket_find, false);
    bpf->rodata->sides = sides ? sides : SOCKET_ANY;
    s->look_any = true;
    return choose_hook(s, bpf, err);
}

static int socket_open(const struct trg_open *how, struct trg_state **state, struct st_error *err)
{
    return trg_kit_open(how, take, state, err);
}

static int socket_start(struct trg_state *s, struct st_error *err)
{
    struct socket_bpf *bpf = s->skeleton;
    int rc = trg_kit_start(s, err);

    return rc ? rc : trg_kit_walk(bpf->progs.socket_find, "cannot walk the list of open files", err);
}

/* "had 3 connections waiting to be accepted for 210 ms on 127.0.0.1:6379" */
static void describe_queue(struct trg_out *o, const struct st_stall_record *r, const char *connections)
{
    trg_put_attribute(o, r, "connections", "had ", "");
    trg_put(o, " connection%s waiting to be accepted for", strcmp(connections, "1") ? "s" : "");
    trg_put_time(o, r);
    trg_put_attribute(o, r, "local", " on ", "");
}

static void describe(const struct st_stall_record *r, trg_ksym_fn *name, void *ctx, char *text, size_t size)
{
    const char *connections = trg_attribute(r, "connections"), *bytes;
    struct trg_out o = {text, size, 0};

    if (connections) {
        describe_queue(&o, r, connections);
        return;
    }
    trg_put(&o, "had");
    bytes = trg_attribute(r, "bytes");
    trg_put_attribute(&o, r, "bytes", " ", bytes && !strcmp(bytes, "1") ? " byte" : " bytes");
    trg_put_attribute(&o, r, "side", " ", "");
    trg_put(&o, " for");
    trg_put_time(&o, r);
    trg_put_attribute(&o, r, "peer", " in a socket to ", "");
    trg_put_attribute(&o, r, "held_by", ", held by ", "");
    if (r->waker_ctx == ST_WAKER_SOFTIRQ && r->timer_func) {
        trg_put(&o, ",");
        trg_put_timer(&o, r, name, ctx);
    }
}

static const struct trg_key keys[] = {TRG_KEY_SIDE, TRG_KEY_END};

const struct trg_kind trg_socket = {
    .name = "socket",
    .record_kind = ST_STALL_SOCKET,
    .example = "socket>5ms",
    .measures = "time of data, and of connections, in a TCP socket",
    .keys = keys,
    .open = socket_open,
    .start = socket_start,
    TRG_KIT_OPS,
    .describe = describe,
};
