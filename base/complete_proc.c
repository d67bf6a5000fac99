/* What may stand next on a command line: processes, cgroups and containers. */
#include "base/complete.h"
#include "base/container.h"
#include "base/vec.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* /proc/PID/NAME, without the newline at its end; "" where it is empty or cannot be read. */
static void read_of(const char *pid, const char *name, char *text, size_t size)
{
    char path[300];
    size_t n = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    f = fopen(path, "re");
    if (f) {
        n = fread(text, 1, size - 1, f);
        fclose(f);
    }
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

/* Calls fn for each process that has a command line: kernel threads have none. */
static void each_process(void (*fn)(void *ctx, const char *pid, const char *comm), void *ctx)
{
    DIR *d = opendir("/proc");
    struct dirent *e;

    while (d && (e = readdir(d))) {
        char comm[64], cmdline[2];

        if (strspn(e->d_name, "0123456789") != strlen(e->d_name))
            continue;
        read_of(e->d_name, "cmdline", cmdline, sizeof(cmdline));
        read_of(e->d_name, "comm", comm, sizeof(comm));
        if (*cmdline && *comm)
            fn(ctx, e->d_name, comm);
    }
    if (d)
        closedir(d);
}

static void add_pid(void *ctx, const char *pid, const char *comm)
{
    st_complete_word(ctx, pid, strpbrk(comm, "\t\r\033") ? NULL : comm);
}

void st_complete_pids(struct st_completion *c)
{
    struct st_completion last = st_complete_behind(c, ",");

    each_process(add_pid, &last);
}

struct comms {
    struct st_completion *c;

    ST_VEC(char *) seen;
};

static void add_comm(void *ctx, const char *pid, const char *comm)
{
    struct comms *all = ctx;
    char *copy;

    (void)pid;
    for (size_t i = 0; i < all->seen.n; i++)
        if (!strcmp(all->seen.at[i], comm))
            return;
    copy = strdup(comm);
    if (!copy || st_vec_push(&all->seen, copy)) {
        free(copy);
        return;
    }
    st_complete_word(all->c, comm, NULL);
}

void st_complete_comms(struct st_completion *c)
{
    struct comms all = {.c = c};

    each_process(add_comm, &all);
    for (size_t i = 0; i < all.seen.n; i++)
        free(all.seen.at[i]);
    st_vec_free(&all.seen);
}

void st_complete_cgroups(struct st_completion *c)
{
    static const char mount[] = "/sys/fs/cgroup/";
    struct st_completion last = st_complete_behind(c, "/");
    int len = (int)(last.text - c->text);
    char path[4096], name[300];
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof(path), "%s%.*s", *c->text == '/' ? "" : mount, len, c->text);
    d = opendir(path);
    while (d && (e = readdir(d)))
        if (e->d_type == DT_DIR && *e->d_name != '.') {
            snprintf(name, sizeof(name), "%s/", e->d_name);
            st_complete_word(&last, name, NULL);
        }
    if (d)
        closedir(d);
}

/* A name is what people know; where there is none, the id as the runtimes show it. */
static int add_container(void *ctx, const struct st_container *container, struct st_error *err)
{
    char id[13], name[2 * ST_CONTAINER_NAME + 2];

    (void)err;
    snprintf(id, sizeof(id), "%.12s", container->id);
    snprintf(name, sizeof(name), "%s%s%s", container->pod, *container->pod ? "/" : "", container->name);
    if (*container->name && !strpbrk(name, "\t\r\n\033"))
        st_complete_word(ctx, name, id);
    else
        st_complete_word(ctx, id, NULL);
    return 0;
}

void st_complete_containers(struct st_completion *c)
{
    st_container_each(add_container, c, NULL);
}
