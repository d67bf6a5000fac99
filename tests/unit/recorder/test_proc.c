/* What is read from /proc, /sys and ELF files: mappings, build ids, CPUs, kernel symbols, records made of it.
 */
#include "recorder/code/build_id.h"
#include "recorder/code/kallsyms.h"
#include "recorder/code/proc_maps.h"
#include "recorder/perf/cpu_watch.h"
#include "recorder/perf/record.h"
#include "recorder/sideband/synth.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "store_list.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>

static void lists_of_cpus(void **state)
{
    static const char *const bad[] = {"", "a", "3-1", "0-", "-1", "0,,1", "99999999"};
    rec_cpu_list cpus = {0};

    (void)state;
    assert_int_equal(rec_cpus_parse("0-2,8,10-11\n", &cpus, NULL), 0);
    assert_int_equal(cpus.n, 6);
    assert_int_equal(cpus.at[2], 2);
    assert_int_equal(cpus.at[3], 8);
    assert_int_equal(cpus.at[5], 11);
    st_vec_free(&cpus);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(rec_cpus_parse(bad[i], &cpus, NULL), ST_EFAIL);
        st_vec_free(&cpus);
    }
    assert_int_equal(rec_cpus_online(&cpus, NULL), 0);
    assert_int_equal(cpus.n, sysconf(_SC_NPROCESSORS_ONLN));
    st_vec_free(&cpus);
}

static void cpus_that_came_or_went(void **state)
{
    rec_cpu_list before = {0}, now = {0};
    char text[16];

    (void)state;
    assert_int_equal(rec_cpus_parse("0-3", &before, NULL), 0);
    assert_int_equal(rec_cpus_parse("0,2-3,8", &now, NULL), 0);
    assert_string_equal(rec_cpus_differ(&before, &now, text, sizeof(text)), "1,8");
    assert_string_equal(rec_cpus_differ(&before, &before, text, sizeof(text)), "");
    assert_string_equal(rec_cpus_differ(&before, &now, text, 2), "1");
    st_vec_free(&before);
    st_vec_free(&now);
}

/* A 64-bit ELF file with one note, as small as it can be. */
struct small_elf {
    Elf64_Ehdr e;

    Elf64_Phdr p;

    Elf64_Nhdr n;

    char name[4];

    unsigned char id[20];
};

static struct small_elf make_elf(void)
{
    struct small_elf f = {
        .e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
              .e_phoff = offsetof(struct small_elf, p),
              .e_phentsize = sizeof(Elf64_Phdr),
              .e_phnum = 1},
        .p = {.p_type = PT_NOTE,
              .p_offset = offsetof(struct small_elf, n),
              .p_filesz = sizeof(Elf64_Nhdr) + 24},
        .n = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID},
        .name = "GNU",
    };

    for (int i = 0; i < 20; i++)
        f.id[i] = (unsigned char)(i + 1);
    return f;
}

static void build_ids(void **state)
{
    struct small_elf f = make_elf();
    uint8_t id[REC_BUILD_ID_MAX];

    (void)state;
    assert_int_equal(rec_build_id_of_memory(&f, sizeof(f), id), 20);
    assert_memory_equal(id, f.id, 20);
    for (size_t size = 0; size < offsetof(struct small_elf, id) + 20; size++)
        assert_int_equal(rec_build_id_of_memory(&f, size, id), 0);
    f.n.n_descsz = 0xffffffff;
    assert_int_equal(rec_build_id_of_memory(&f, sizeof(f), id), 0);
    f = make_elf();
    f.n.n_namesz = 0xfffffffd;
    assert_int_equal(rec_build_id_of_memory(&f, sizeof(f), id), 0);
    f = make_elf();
    f.n.n_descsz = 16;
    assert_int_equal(rec_build_id_of_memory(&f, sizeof(f), id), 16);
    f = make_elf();
    f.p.p_offset = UINT64_MAX - 4;
    assert_int_equal(rec_build_id_of_memory(&f, sizeof(f), id), 0);
    f = make_elf();
    f.e.e_phoff = UINT64_MAX - 4;
    assert_int_equal(rec_build_id_of_memory(&f, sizeof(f), id), 0);
    f = make_elf();
    f.e.e_phnum = 0xffff;
    assert_int_equal(rec_build_id_of_memory(&f, sizeof(f), id), 20);
}

static void the_vdso_has_a_build_id(void **state)
{
    uint8_t id[REC_BUILD_ID_MAX];

    (void)state;
    assert_true(rec_build_id_of_memory((const void *)getauxval(AT_SYSINFO_EHDR), 4096, id) > 0);
}

struct seen {
    unsigned self, vdso, anonymous, deleted;

    bool findable_self, findable_other;

    int fd;
};

static int look(void *ctx, const struct rec_map *map, struct st_error *err)
{
    struct seen *s = ctx;
    char self[PATH_MAX] = "";

    (void)err;
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    assert_true(map->prot & PROT_EXEC);
    if (!strcmp(map->name, self)) {
        s->self++;
        s->findable_self = rec_map_findable(map);
        s->fd = rec_map_open(getpid(), map);
    } else if (!strcmp(map->name, "[vdso]")) {
        s->vdso++;
        s->findable_other |= rec_map_findable(map);
    } else if (!strcmp(map->name, "//anon")) {
        s->anonymous++;
        s->findable_other |= rec_map_findable(map);
    } else if (map->deleted) {
        s->deleted++;
        s->findable_other |= rec_map_findable(map);
    }
    return 0;
}

static void executable_mappings(void **state)
{
    void *anonymous = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = memfd_create("gone", MFD_CLOEXEC);
    struct seen s = {.fd = -1};
    uint8_t id[REC_BUILD_ID_MAX];
    void *deleted;

    (void)state;
    assert_int_equal(ftruncate(file, 4096), 0);
    deleted = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    assert_true(anonymous != MAP_FAILED && deleted != MAP_FAILED);
    assert_int_equal(rec_proc_maps(getpid(), look, &s, NULL), 0);
    assert_true(s.self >= 1 && s.vdso == 1 && s.anonymous >= 1 && s.deleted == 1);
    assert_true(s.findable_self);
    assert_false(s.findable_other);
    assert_true(s.fd >= 0);
    assert_int_equal(rec_build_id_of_fd(s.fd, id), 20);
    close(s.fd);
    munmap(anonymous, 4096);
    munmap(deleted, 4096);
    close(file);
    assert_int_equal(rec_proc_maps(999999999, look, &s, NULL), ST_EFAIL);
}

static void kernel_symbols(void **state)
{
    char path[] = "/tmp/stalltrap-kallsyms.XXXXXX";
    int fd = mkstemp(path);
    struct rec_kallsyms *t;
    uint64_t start = 0;

    (void)state;
    dprintf(fd, "ffffffff81000200 t beta\nffffffff81000100 T alpha\nffffffff81000180 d data\n"
                "ffffffffc0000000 t helper\t[some_module]\nbroken line\n");
    close(fd);
    t = rec_kallsyms_open(path);
    assert_non_null(t);
    assert_string_equal(rec_kallsyms_find(t, 0xffffffff81000100, &start), "alpha");
    assert_string_equal(rec_kallsyms_find(t, 0xffffffff810001ff, &start), "alpha");
    assert_true(start == 0xffffffff81000100);
    assert_string_equal(rec_kallsyms_find(t, 0xffffffff81000200, &start), "beta");
    assert_string_equal(rec_kallsyms_find(t, 0xffffffffc0000010, &start), "helper [some_module]");
    assert_null(rec_kallsyms_find(t, 0x1000, &start));
    assert_null(rec_kallsyms_find(t, 0xffffffffd0000000, &start));
    rec_kallsyms_close(t);
    /* An unprivileged reader sees zeros. */
    fd = open(path, O_WRONLY | O_TRUNC);
    dprintf(fd, "0000000000000000 T alpha\n");
    close(fd);
    assert_null(rec_kallsyms_open(path));
    unlink(path);
    assert_null(rec_kallsyms_open(path));
}

struct present {
    unsigned forks, comms, maps, with_id;

    bool own_name, thread_name;
};

static int take(void *ctx, const struct perf_event_header *r)
{
    struct present *p = ctx;
    const struct rec_comm_record *comm = (const struct rec_comm_record *)r;
    const struct rec_trailer *trailer = (const struct rec_trailer *)((const char *)r + r->size) - 1;

    assert_int_equal(trailer->time, 4242);
    assert_int_equal(trailer->id, 11);
    assert_int_equal(r->size % 8, 0);
    assert_int_equal(comm->pid, getpid());
    p->forks += r->type == PERF_RECORD_FORK;
    if (r->type == PERF_RECORD_COMM) {
        p->comms++;
        p->own_name |= comm->tid == (uint32_t)getpid() && !strcmp(comm->comm, "main thread");
        p->thread_name |= comm->tid != (uint32_t)getpid() && !strcmp(comm->comm, "exactly15bytes!");
    }
    if (r->type == PERF_RECORD_MMAP2) {
        p->maps++;
        p->with_id += (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0;
    }
    return 0;
}

static int ends[2];

static void *named_thread(void *arg)
{
    char byte;

    prctl(PR_SET_NAME, "exactly15bytes!");
    assert_int_equal(write(ends[1], "r", 1), 1);
    while (read(*(int *)arg, &byte, 1) < 0)
        ;
    return NULL;
}

static void a_process_as_records(void **state)
{
    struct st_confined child = {.patience = 200000};
    struct present p = {0};
    struct rec_store *store;
    struct rec_stored *list;
    size_t n;
    pthread_t thread;
    int stop[2];
    char byte;

    (void)state;
    prctl(PR_SET_NAME, "main thread");
    assert_int_equal(pipe(ends) | pipe(stop), 0);
    assert_int_equal(pthread_create(&thread, NULL, named_thread, &stop[0]), 0);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(rec_store_open(NULL, &store, NULL), 0);
    assert_int_equal(rec_synth_process(store, &child, getpid(), 4242, 11, NULL), 0);
    st_confined_close(&child);
    list_store(store, &list, &n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(take(&p, list[i].record), 0);
    free(list);
    assert_int_equal(p.forks, 2);
    assert_int_equal(p.comms, 2);
    assert_true(p.own_name && p.thread_name);
    assert_true(p.maps >= 3 && p.with_id >= 2);
    rec_store_close(store);
    assert_int_equal(write(stop[1], "s", 1), 1);
    pthread_join(thread, NULL);
}

static void a_process_that_is_gone_is_no_error(void **state)
{
    struct st_confined child = {0};
    struct rec_store *store;
    struct rec_stored *list;
    size_t n;

    (void)state;
    assert_int_equal(rec_store_open(NULL, &store, NULL), 0);
    assert_int_equal(rec_synth_process(store, &child, 999999999, 1, 1, NULL), 0);
    list_store(store, &list, &n);
    assert_int_equal(n, 0);
    free(list);
    rec_store_close(store);
}

/* What the kernel does to events of a CPU that goes offline: they are off, also when it has come back. */
static void events_of_a_cpu_that_was_away(void **state)
{
    struct rec_cpu_watch watch;
    rec_cpu_list cpus = {0};
    char text[16], first[16];

    (void)state;
    assert_int_equal(rec_cpus_online(&cpus, NULL), 0);
    assert_int_equal(rec_cpu_watch_open(&watch, &cpus, NULL), 0);
    st_vec_free(&cpus);
    if (!watch.fds.n) {
        print_message("SKIP: no permission to open perf events of CPUs\n");
        skip();
    }
    assert_string_equal(rec_cpu_watch_dead(&watch, text, sizeof(text)), "");
    snprintf(first, sizeof(first), "%d", watch.cpus.at[0]);
    assert_int_equal(ioctl(watch.fds.at[0], PERF_EVENT_IOC_DISABLE, 0), 0);
    assert_string_equal(rec_cpu_watch_dead(&watch, text, sizeof(text)), first);
    rec_cpu_watch_close(&watch);
    rec_cpu_watch_close(&watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_cpus),
        cmocka_unit_test(cpus_that_came_or_went),
        cmocka_unit_test(events_of_a_cpu_that_was_away),
        cmocka_unit_test(build_ids),
        cmocka_unit_test(the_vdso_has_a_build_id),
        cmocka_unit_test(executable_mappings),
        cmocka_unit_test(kernel_symbols),
        cmocka_unit_test(a_process_as_records),
        cmocka_unit_test(a_process_that_is_gone_is_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
