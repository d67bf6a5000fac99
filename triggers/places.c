/* BTF's section .data..percpu lists every per-CPU variable with its offset (Documentation/bpf/btf.rst,
 * BTF_KIND_DATASEC). */
#include "triggers/places.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_variable(const struct btf *btf, const struct btf_type *section, const char *name,
                         long *offset)
{
    const struct btf_var_secinfo *v = btf_var_secinfos(section);

    for (unsigned i = 0; i < btf_vlen(section); i++) {
        const struct btf_type *var = btf__type_by_id(btf, v[i].type);
        const char *is = var ? btf__name_by_offset(btf, var->name_off) : NULL;

        if (is && !strcmp(is, name)) {
            *offset = v[i].offset;
            return 0;
        }
    }
    return -1;
}

/* The byte offset of a field, also within anonymous members. */
static int find_field(const struct btf *btf, const struct btf_type *t, const char *field, long *offset)
{
    for (unsigned i = 0; i < btf_vlen(t); i++) {
        const struct btf_member *m = &btf_members(t)[i];
        const char *name = btf__name_by_offset(btf, m->name_off);
        const struct btf_type *type = btf__type_by_id(btf, m->type);
        long inner = 0;

        if (name && !strcmp(name, field)) {
            *offset = btf_member_bit_offset(t, i) / 8;
            return 0;
        }
        if (name && !name[0] && type && btf_is_composite(type) && !find_field(btf, type, field, &inner)) {
            *offset = btf_member_bit_offset(t, i) / 8 + inner;
            return 0;
        }
    }
    return -1;
}

/* The variable `name`, which from Linux 6.2 to 6.14 was a field of pcpu_hot. */
static int find_hot(const struct btf *btf, const struct btf_type *section, const char *name,
                    const char *field, long *offset)
{
    int id = btf__find_by_name_kind(btf, "pcpu_hot", BTF_KIND_STRUCT);
    long within;

    if (!find_variable(btf, section, name, offset))
        return 0;
    if (id <= 0 || find_variable(btf, section, "pcpu_hot", offset) ||
        find_field(btf, btf__type_by_id(btf, (unsigned)id), field, &within))
        return -1;
    *offset += within;
    return 0;
}

static int find_all(const struct btf *btf, struct trg_places *places, struct st_error *err)
{
    int id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
    const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
    long queue, count, current;

    if (!section)
        return st_fail(err, ST_ECANNOT,
                       "--on needs the kernel's per-CPU variables in its BTF, and they are not there");
    if (find_variable(btf, section, "runqueues", &queue))
        return st_fail(err, ST_ECANNOT, "--on needs 'runqueues' in the kernel's BTF, and it is not there");
    if (find_hot(btf, section, "__preempt_count", "preempt_count", &count) ||
        find_hot(btf, section, "current_task", "current_task", &current))
        return st_fail(err, ST_ECANNOT,
                       "--on needs '__preempt_count' in the kernel's BTF, and it is not there");
    places->preempt_count = count - queue;
    places->current_task = current - queue;
    return 0;
}

/* "ffffffff810c3a10 T name": the function whose name begins with `name` (the compiler may append ".isra.0"),
 * and where the next one begins. The file is in the order of addresses. */
static void find_function(const char *name, uint64_t *start, uint64_t *end)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[512];

    *start = *end = 0;
    while (f && fgets(line, sizeof(line), f)) {
        char *rest;
        uint64_t address = strtoull(line, &rest, 16);

        if (*start && address > *start) {
            *end = address;
            break;
        }
        if (!*start && strlen(rest) > 3 && strchr("tT", rest[1]) && !strncmp(rest + 3, name, strlen(name)) &&
            strchr(".\n", rest[3 + strlen(name)]))
            *start = address;
    }
    if (f)
        fclose(f);
}

int trg_find_places(struct trg_places *places, struct st_error *err)
{
    struct btf *btf = btf__parse("/sys/kernel/btf/vmlinux", NULL); /* where more is tried, errno is lost */
    int rc;

    if (!btf)
        return st_fail_errno(err, errno == ENOMEM || errno == EMFILE ? ST_EFAIL : ST_ECANNOT,
                             "cannot read the kernel's BTF (/sys/kernel/btf/vmlinux)");
    rc = find_all(btf, places, err);
    places->nolock = btf__find_by_name_kind(btf, "bpf_map_kmalloc_nolock", BTF_KIND_FUNC) > 0;
    find_function("try_to_wake_up", &places->wake_up, &places->wake_up_end);
    btf__free(btf);
    return rc;
}
