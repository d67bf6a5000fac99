/* A small consumer of bpf-output rings. */
#include "watch.h"
#include "base/bisect.h"
#include "triggers/privilege.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_PAGES 256

bool watch_possible(void)
{
    struct st_error err = {0};

    if (!trg_check_bpf(true, &err))
        return true;
    print_message("skipped: %s\n", err.text);
    return false;
}

static void check(int rc, const struct st_error *err)
{
    if (rc)
        fail_msg("%s", err->text);
}

static void open_ring(struct watch *w, int cpu)
{
    struct perf_event_attr attr;
    struct st_error err = {0};

    trg_output_attr(&attr);
    w->fd[cpu] = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    assert_true(w->fd[cpu] >= 0);
    w->ring[cpu] =
        mmap(NULL, (size_t)(RING_PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd[cpu], 0);
    assert_true(w->ring[cpu] != MAP_FAILED);
    check(trg_set_output(w->set, cpu, w->fd[cpu], &err), &err);
}

void watch_start(struct watch *w, const char *text, const pid_t *pids, size_t n, const char *cgroup,
                 const struct trg_config *more)
{
    static char *command[] = {"sh", NULL}; /* what the held-back child of config.command will run */
    struct trg_config config = more ? *more : (struct trg_config){0};
    struct st_error err = {0};

    memset(w, 0, sizeof(*w));
    for (size_t i = 0; i < n; i++) {
        char pid[16];

        snprintf(pid, sizeof(pid), "%d", pids[i]);
        check(st_target_add_pids(&w->target, pid, &err), &err);
    }
    if (cgroup)
        check(st_target_set_cgroup(&w->target, cgroup, &err), &err);
    else if (!n && !config.command)
        check(st_target_set_all(&w->target, NULL, &err), &err);
    if (config.command)
        check(st_target_set_command(&w->target, command, &err), &err);
    check(st_target_resolve(&w->target, &err), &err);
    config.target = &w->target;
    check(trg_add(&w->set, text, &err), &err);
    check(trg_open(w->set, &config, &err), &err);
    w->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    assert_true(w->cpus <= WATCH_CPUS);
    for (int cpu = 0; cpu < w->cpus; cpu++)
        open_ring(w, cpu);
    check(trg_start(w->set, &err), &err);
}

void watch_start_both(struct watch *w, const char *first, const char *second)
{
    struct trg_config config = {.target = &w->target};
    struct st_error err = {0};

    memset(w, 0, sizeof(*w));
    check(st_target_set_all(&w->target, NULL, &err), &err);
    check(trg_add(&w->set, first, &err), &err);
    check(trg_add(&w->set, second, &err), &err);
    check(trg_open(w->set, &config, &err), &err);
    w->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < w->cpus; cpu++)
        open_ring(w, cpu);
    check(trg_start(w->set, &err), &err);
}

static void copy_out(const char *data, uint64_t at, void *to, size_t n)
{
    size_t size = (size_t)RING_PAGES * 4096, from = at % size, first = n < size - from ? n : size - from;

    memcpy(to, data + from, first);
    memcpy((char *)to + first, data, n - first);
}

/* PERF_RECORD_SAMPLE as trg_output_attr() asks for: identifier, pid, tid, time, cpu, res, size, raw. */
struct sample {
    struct perf_event_header header;

    uint64_t identifier;

    uint32_t pid, tid;

    uint64_t time;

    uint32_t cpu, res;

    uint32_t size;
} __attribute__((packed));

static void take_sample(struct watch *w, const char *bytes)
{
    struct watch_record one = {0};
    const struct st_stall_record *record;
    _Alignas(8) char raw[sizeof(struct st_stall_record) + 64];
    struct st_error err = {0};
    struct sample sample;
    int rc;

    memcpy(&sample, bytes, sizeof(sample));
    assert_true(sample.size <= sizeof(raw));
    memcpy(raw, bytes + sizeof(sample), sample.size);
    rc = trg_record(raw, sample.size, &record, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    if (!rc)
        return;
    one.sample_time = sample.time;
    one.sample_tid = sample.tid;
    one.r = *record;
    trg_complete(w->set, &one.r);
    assert_int_equal(st_vec_push(&w->records, one), 0);
}

static void drain(struct watch *w, int cpu)
{
    struct perf_event_mmap_page *page = w->ring[cpu];
    const char *data = (const char *)page + 4096;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
    char bytes[8192];

    while (tail < head) {
        struct perf_event_header header;
        uint64_t lost[2];

        copy_out(data, tail, &header, sizeof(header));
        assert_true(header.size <= sizeof(bytes));
        copy_out(data, tail, bytes, header.size);
        if (header.type == PERF_RECORD_SAMPLE)
            take_sample(w, bytes);
        if (header.type == PERF_RECORD_LOST) {
            memcpy(lost, bytes + sizeof(header), sizeof(lost));
            w->lost += lost[1];
        }
        tail += header.size;
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void watch_collect(struct watch *w, size_t enough, int ms)
{
    int64_t until = now_ms() + ms;
    struct pollfd fds[WATCH_CPUS];

    for (;;) {
        for (int cpu = 0; cpu < w->cpus; cpu++) {
            fds[cpu] = (struct pollfd){.fd = w->fd[cpu], .events = POLLIN};
            drain(w, cpu);
        }
        if (w->records.n >= enough || now_ms() >= until)
            return;
        poll(fds, (nfds_t)w->cpus, (int)(until - now_ms()));
    }
}

void watch_stop(struct watch *w)
{
    assert_int_equal(trg_lost(w->set), 0);
    assert_int_equal(w->lost, 0);
    watch_close(w);
}

void watch_close(struct watch *w)
{
    trg_close(w->set);
    for (int cpu = 0; cpu < w->cpus; cpu++) {
        munmap(w->ring[cpu], (size_t)(RING_PAGES + 1) * 4096);
        close(w->fd[cpu]);
    }
    st_target_free(&w->target);
    st_vec_free(&w->records);
}

static bool matches(const struct watch_record *record, pid_t tid, uint32_t with, uint32_t without)
{
    const struct st_stall_record *r = &record->r;

    return (!tid || r->tid == (uint32_t)tid) && (r->flags & with) == with && !(r->flags & without);
}

size_t watch_count(const struct watch *w, pid_t tid, uint32_t with, uint32_t without)
{
    size_t n = 0;

    for (size_t i = 0; i < w->records.n; i++)
        n += matches(&w->records.at[i], tid, with, without);
    return n;
}

const struct st_stall_record *watch_first(const struct watch *w, pid_t tid, uint32_t with, uint32_t without)
{
    for (size_t i = 0; i < w->records.n; i++)
        if (matches(&w->records.at[i], tid, with, without))
            return &w->records.at[i].r;
    fail_msg("none of %zu records is of thread %d with flags %#x (%lu lost)", w->records.n, tid, with,
             (unsigned long)(trg_lost(w->set) + w->lost));
    return NULL;
}

struct ksym {
    uint64_t address;

    char name[64];
};

static int by_address(const void *a, const void *b)
{
    const struct ksym *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

const char *watch_ksym(void *unused, uint64_t address)
{
    static ST_VEC(struct ksym) all;
    char line[512];
    size_t first;

    (void)unused;
    if (!all.n) {
        FILE *f = fopen("/proc/kallsyms", "re");
        struct ksym one;
        char type;

        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
            if (sscanf(line, "%lx %c %63s", &one.address, &type, one.name) == 3 && strchr("tTwW", type))
                assert_int_equal(st_vec_push(&all, one), 0);
        fclose(f);
        qsort(all.at, all.n, sizeof(*all.at), by_address);
    }
    first = st_bisect(i, all.n, all.at[i].address <= address);
    return first ? all.at[first - 1].name : "?";
}
