/* make_trace FILE CALLS THREADS [SEED]: a trace database of that size, the same for the same numbers. Calls
 * nest, some wait, children and waits are taken from a call's own time: every figure obeys the rules of
 * docs/schema.md. */
#include "base/log.h"
#include "base/units.h"
#include "base/vec.h"
#include "tracedb/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODULES = 5,
    FUNCTIONS = 60, /* of each module but the kernel */
    SYSCALLS = 4,
    MOST_CHILDREN = 6,
    DEEPEST = 24,
    FIRST_SYSCALL = 1 + MODULES * FUNCTIONS,
};

struct maker {
    struct tdb_writer *w;

    uint64_t random;

    int64_t calls_left, next_call, next_offcpu, next_slice;

    int64_t thread, on_since; /* of the thread that is being made */

    int64_t before; /* id of the last call of the threads before it */

    ST_VEC(struct tdb_span) calls; /* its own */

    ST_VEC(struct tdb_calls *) kept; /* those of all threads, until the commit */

    struct st_error err;

    int rc;
};

/* splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators). */
static uint64_t draw(struct maker *m)
{
    uint64_t z = m->random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t within(struct maker *m, int64_t least, int64_t most)
{
    return most <= least ? least : least + (int64_t)(draw(m) % (uint64_t)(most - least + 1));
}

static void add(struct maker *m, const char *table, const struct tdb_value *values, size_t n)
{
    if (!m->rc)
        m->rc = tdb_add_row(m->w, table, values, n, &m->err);
}
#define ADD(m, table, ...)                                                                                   \
    add(m, table, (const struct tdb_value[]){__VA_ARGS__},                                                   \
        sizeof((const struct tdb_value[]){__VA_ARGS__}) / sizeof(struct tdb_value))

static void add_call(struct maker *m, const struct tdb_span *c)
{
    if (!m->rc && st_vec_push(&m->calls, *c))
        m->rc = st_nomem(&m->err, "the calls");
}

static int give_packed(struct maker *m)
{
    struct tdb_calls *packed = calloc(1, sizeof(*packed));

    if (!packed || st_vec_push(&m->kept, packed)) {
        free(packed);
        return st_nomem(&m->err, "the calls");
    }
    return tdb_calls_add(packed, m->calls.at, NULL, m->calls.n, &m->err)
               ? m->err.code
               : tdb_add_calls(m->w, m->thread, 0, packed, &m->before, &m->err);
}

/* Hands the thread's calls over. */
static void give_calls(struct maker *m)
{
    if (!m->rc)
        m->rc = give_packed(m);
    if (m->rc)
        return;
    m->before += (int64_t)m->calls.n;
    m->calls.n = 0;
}

static void make_names(struct maker *m)
{
    static const char *const modules[MODULES] = {"server", "libstore.so.2", "libnet.so.1", "libc.so.6",
                                                 "libjson.so.5"};
    static const char *const verbs[] = {"read",  "parse", "write", "find", "insert",
                                        "flush", "hash",  "copy",  "send", "check"};
    static const char *const nouns[] = {"row", "page", "key", "block", "header", "buffer"};
    static const char *const syscalls[SYSCALLS] = {"[syscall]", "[interrupt]", "[signal]", "[untraced]"};
    char text[128];

    for (int i = 0; i < MODULES; i++) {
        snprintf(text, sizeof(text), "/usr/lib/%s", modules[i]);
        ADD(m, "module", TDB_N(i + 1), TDB_T(modules[i]), TDB_T(text), TDB_0, TDB_N(0));
        for (int k = 0; k < FUNCTIONS; k++) {
            snprintf(text, sizeof(text), "%s_%s_%d", verbs[k % 10], nouns[k / 10], i + 1);
            ADD(m, "symbol", TDB_N(1 + i * FUNCTIONS + k), TDB_N(i + 1), TDB_T(text), TDB_N(4096 + k * 64),
                TDB_N(64));
        }
    }
    ADD(m, "module", TDB_N(MODULES + 1), TDB_T("[kernel]"), TDB_T("[kernel]"), TDB_0, TDB_N(1));
    for (int i = 0; i < SYSCALLS; i++)
        ADD(m, "symbol", TDB_N(FIRST_SYSCALL + i), TDB_N(MODULES + 1), TDB_T(syscalls[i]), TDB_N(0),
            TDB_N(0));
}

static void end_slice(struct maker *m, int64_t at)
{
    ADD(m, "slice", TDB_N(m->next_slice++), TDB_N(m->thread), TDB_N(m->thread % 8), TDB_N(m->on_since),
        TDB_N(at));
}

/* A system call that waits for the middle of its time. */
static void make_wait(struct maker *m, int64_t parent, int depth, int64_t start, int64_t duration)
{
    int64_t off = duration / 10 * 8, from = start + duration / 10, id = m->next_call++;

    add_call(m, &(struct tdb_span){(uint64_t)start, (uint64_t)duration, (uint64_t)(duration - off),
                                   FIRST_SYSCALL - 1, (uint32_t)(parent - m->before), (uint32_t)depth, 0});
    m->calls_left--;
    if (off <= 0)
        return;
    end_slice(m, from);
    ADD(m, "offcpu", TDB_N(m->next_offcpu++), TDB_N(m->thread), TDB_N(from), TDB_N(from + off), TDB_N(0),
        TDB_N(id));
    m->on_since = from + off;
}

static void make_call(struct maker *m, int64_t parent, int64_t symbol, int depth, int64_t start,
                      int64_t duration)
{
    int64_t starts[MOST_CHILDREN], lengths[MOST_CHILDREN], id = m->next_call++, at = 0, self = duration;
    int n = duration < 40 || depth >= DEEPEST ? 0 : (int)within(m, 0, MOST_CHILDREN);

    for (int i = 0; i < n; i++) {
        int64_t share = (duration - at) / (n - i);

        starts[i] = at + within(m, 0, share / 8);
        lengths[i] = within(m, 0, share / 2 + share / 4);
        at = starts[i] + lengths[i];
        self -= lengths[i];
    }
    add_call(m, &(struct tdb_span){(uint64_t)start, (uint64_t)duration, (uint64_t)self, (uint32_t)symbol - 1,
                                   (uint32_t)(parent - m->before), (uint32_t)depth, 0});
    m->calls_left--;
    for (int i = 0; i < n && !m->rc; i++) {
        if (lengths[i] > 200000 && draw(m) % 4 == 0)
            make_wait(m, id, depth + 1, start + starts[i], lengths[i]);
        else
            make_call(m, id, within(m, 1, FIRST_SYSCALL - 1), depth + 1, start + starts[i], lengths[i]);
    }
}

/* One call that lasts for ever, and in it work of all lengths until the thread has its share of the calls. */
static void make_thread(struct maker *m, int64_t thread, int64_t calls)
{
    int64_t root = m->next_call++, at = 1000 * thread, inside = 0;
    char name[32];

    snprintf(name, sizeof(name), thread == 1 ? "server" : "worker %d", (int)thread - 1);
    ADD(m, "thread", TDB_N(thread), TDB_N(1), TDB_N(1000 + thread), TDB_T(name), TDB_0, TDB_0);
    m->thread = thread;
    m->on_since = 1000 * thread;
    m->calls_left = calls - 1;
    add_call(m, &(struct tdb_span){.start = (uint64_t)m->on_since, .flags = 3});
    while (m->calls_left > 0 && !m->rc) {
        int64_t length = (int64_t)1 << within(m, 8, 21);

        make_call(m, root, within(m, 2, FIRST_SYSCALL - 1), 1, at, length);
        inside += length;
        at += length + within(m, 10, 5000);
    }
    end_slice(m, at);
    if (!m->rc) {
        m->calls.at[0].duration = (uint64_t)(at - 1000 * thread);
        m->calls.at[0].self = (uint64_t)(at - 1000 * thread - inside);
    }
    give_calls(m);
}

/* The longest wait of the first thread is the stall that fired, the last thread woke it; a gap a thread. */
static void make_rest(struct maker *m, int64_t threads)
{
    static const char sql[] = "INSERT INTO stall (id, trigger, thread_id, kind, start_ns, end_ns, "
                              "duration_ns, threshold_ns, state, syscall, waker, "
                              "reason, fired, waker_thread_id, wake_ns) SELECT 1, 'offcpu>200us', thread_id, "
                              "'offcpu', start_ns, end_ns, end_ns - "
                              "start_ns, 200000, 'sleeping', 'read', 'thread', 'thread 1001 \"server\" "
                              "off-CPU in read', 1, ?1, end_ns - 1000 FROM "
                              "offcpu WHERE thread_id = 1 ORDER BY end_ns - start_ns DESC, start_ns LIMIT 1";
    sqlite3_stmt *stmt;

    if (m->rc)
        return;
    if (sqlite3_prepare_v2(tdb_writer_db(m->w), sql, -1, &stmt, NULL)) {
        m->rc = st_fail(&m->err, ST_EFAIL, "the stall: %s", sqlite3_errmsg(tdb_writer_db(m->w)));
        return;
    }
    sqlite3_bind_int64(stmt, 1, threads);
    sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    for (int64_t i = 1; i <= threads; i++)
        ADD(m, "gap", TDB_N(i), TDB_N(i), TDB_0, TDB_N(500 * i), TDB_N(1000 * i), TDB_T("overflow"),
            TDB_T("the CPU lost packets"), TDB_N(128));
    ADD(m, "mark", TDB_N(1), TDB_N(1), TDB_N(0), TDB_N(2000), TDB_T("exec"), TDB_T("server"));
    ADD(m, "meta", TDB_T("trigger_stall_id"), TDB_N(1));
    ADD(m, "meta", TDB_T("source"), TDB_T("intel-pt"));
}

int main(int argc, char **argv)
{
    struct maker m = {.next_call = 1, .next_offcpu = 1, .next_slice = 1};
    long calls, threads, seed = 1;

    if (argc < 4 || st_parse_number("CALLS", argv[2], 1, 1000000000, &calls, &m.err) ||
        st_parse_number("THREADS", argv[3], 1, 10000, &threads, &m.err) ||
        (argc > 4 && st_parse_number("SEED", argv[4], 0, INT32_MAX, &seed, &m.err))) {
        fprintf(stderr, "make_trace FILE CALLS THREADS [SEED]: %s\n", m.err.text);
        return 2;
    }
    m.random = (uint64_t)seed;
    m.rc = tdb_writer_open(argv[1], &m.w, &m.err);
    if (m.rc)
        return st_log_error("make_trace", &m.err);
    ADD(&m, "process", TDB_N(1), TDB_N(1000), TDB_T("server"), TDB_0, TDB_0, TDB_0);
    make_names(&m);
    for (int64_t i = 1; i <= threads && !m.rc; i++)
        make_thread(&m, i, calls / threads);
    make_rest(&m, threads);
    if (m.rc)
        tdb_writer_abort(m.w);
    else
        m.rc = tdb_writer_commit(m.w, true, &m.err);
    for (size_t i = 0; i < m.kept.n; i++) {
        tdb_calls_free(m.kept.at[i]);
        free(m.kept.at[i]);
    }
    st_vec_free(&m.kept);
    st_vec_free(&m.calls);
    return m.rc ? st_log_error("make_trace", &m.err) : 0;
}
