/* Names of containers: conmon's command line, docker's and containerd's files. */
#include "base/container_names.h"
#include "base/infile.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 4 << 20, MOST_TEXT = 16 << 10 };

/* ---- JSON ---- */

/* The end of the string that begins behind the quote at `at`; n: it does not end. */
static size_t end_of_string(const char *text, size_t at, size_t n)
{
    while (at < n && text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    return at < n ? at : n;
}

static size_t skip_blanks(const char *text, size_t at, size_t n)
{
    while (at < n && isspace((unsigned char)text[at]))
        at++;
    return at;
}

/* The string at `at`, if there is one. */
static bool take_string(const char *text, size_t at, size_t n, char *value, size_t size)
{
    size_t end;

    if (at >= n || text[at] != '"')
        return false;
    end = end_of_string(text, ++at, n);
    if (end == n || end - at >= size || memchr(text + at, '\\', end - at))
        return false;
    memcpy(value, text + at, end - at);
    value[end - at] = '\0';
    return true;
}

bool st_container_json(const char *text, size_t n, int depth, const char *key, char *value, size_t size)
{
    size_t len = strlen(key);
    int now = 0;

    for (size_t at = 0; at < n; at++) {
        size_t begin = at + 1, colon;

        now += text[at] == '{' || text[at] == '[';
        now -= text[at] == '}' || text[at] == ']';
        if (text[at] != '"')
            continue;
        at = end_of_string(text, begin, n);
        colon = skip_blanks(text, at + 1, n);
        if (now == depth && at - begin == len && !memcmp(text + begin, key, len) && colon < n &&
            text[colon] == ':')
            return take_string(text, skip_blanks(text, colon + 1, n), n, value, size);
    }
    return false;
}

/* ---- files ---- */

/* Who else may write it could say anything. */
static bool is_trusted(const struct stat *st)
{
    return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* A file of root's or of this user's, malloc'd. NULL: there is none, or it is no such one. */
static char *read_trusted(const char *path, size_t *n)
{
    int fd = st_infile_open(path, ST_INFILE_FILE);
    struct stat st;
    char *text = NULL;
    ssize_t got = -1;

    if (fd < 0)
        return NULL;
    if (!fstat(fd, &st) && is_trusted(&st) && st.st_size > 0 && st.st_size <= MOST_BYTES)
        text = malloc((size_t)st.st_size);
    if (text)
        got = read(fd, text, (size_t)st.st_size);
    close(fd);
    if (got > 0) {
        *n = (size_t)got;
        return text;
    }
    free(text);
    return NULL;
}

/* "/web" */
static void ask_docker(struct st_container *c)
{
    char path[PATH_MAX], *text;
    size_t n;

    snprintf(path, sizeof(path), "/var/lib/docker/containers/%s/config.v2.json", c->id);
    text = read_trusted(path, &n);
    if (text && st_container_json(text, n, 1, "Name", c->name, sizeof(c->name)) && c->name[0] == '/')
        memmove(c->name, c->name + 1, strlen(c->name));
    free(text);
}

static void ask_containerd(struct st_container *c)
{
    char path[PATH_MAX], *text;
    size_t n;

    snprintf(path, sizeof(path), "/run/containerd/io.containerd.runtime.v2.task/k8s.io/%s/config.json",
             c->id);
    text = read_trusted(path, &n);
    if (text) {
        st_container_json(text, n, 2, "io.kubernetes.cri.container-name", c->name, sizeof(c->name));
        st_container_json(text, n, 2, "io.kubernetes.cri.sandbox-name", c->pod, sizeof(c->pod));
    }
    free(text);
}

/* ---- conmon ---- */

/* A file of the process, NUL-terminated. Returns its bytes. */
static size_t read_of(int process, const char *name, char *text, size_t size)
{
    int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got;

    while (fd >= 0 && n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    if (fd >= 0)
        close(fd);
    text[n] = '\0';
    return n;
}

/* Of which user it is, by all of its ids: the owner of /proc/PID is root's where a process hides, and a
 * program with the set-user-id bit has a command line of whoever started it. */
static bool is_of_trusted_user(int process, char *text, size_t size)
{
    unsigned uid[4], wanted = geteuid();
    const char *line;

    read_of(process, "status", text, size);
    line = strstr(text, "\nUid:");
    if (!line || sscanf(line + 5, "%u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) != 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (uid[i] != uid[0])
            return false;
    return uid[0] == 0 || uid[0] == wanted;
}

static bool is_conmon(int process, char *text, size_t size)
{
    char exe[PATH_MAX];
    struct stat program;
    const char *base;
    ssize_t n = readlinkat(process, "exe", exe, sizeof(exe) - 1);

    if (n <= 0)
        return false;
    exe[n] = '\0';
    base = strrchr(exe, '/');
    return base && !strcmp(base + 1, "conmon") && !fstatat(process, "exe", &program, 0) &&
           is_trusted(&program) && is_of_trusted_user(process, text, size);
}

/* "conmon ... -c ID ... -n NAME ...", each word ended by a NUL. */
static bool parse_words(const char *words, size_t n, struct container_conmon *c)
{
    *c = (struct container_conmon){0};
    for (size_t at = 0; at < n; at += strlen(words + at) + 1) {
        const char *value = words + at + strlen(words + at) + 1;

        if (value >= words + n)
            break;
        if (!strcmp(words + at, "-c") && strlen(value) == ST_CONTAINER_ID)
            memcpy(c->id, value, ST_CONTAINER_ID + 1);
        if (!strcmp(words + at, "-n"))
            snprintf(c->name, sizeof(c->name), "%s", value);
    }
    return *c->id && *c->name;
}

/* What is asked of one open folder is of one process. */
static int add_conmon(struct container_names *names, int proc, const char *pid, char *text)
{
    int process = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    struct container_conmon c;

    if (process < 0)
        return 0;
    if (is_conmon(process, text, MOST_TEXT) &&
        parse_words(text, read_of(process, "cmdline", text, MOST_TEXT), &c))
        rc = st_vec_push(&names->conmons, c);
    close(process);
    return rc;
}

int container_names_open(struct container_names *names, struct st_error *err)
{
    char *words = malloc(MOST_TEXT);
    DIR *d = words ? opendir("/proc") : NULL;
    struct dirent *e;
    int rc = words ? 0 : -1;

    *names = (struct container_names){0};
    while (!rc && d && (e = readdir(d)))
        if (isdigit((unsigned char)e->d_name[0]))
            rc = add_conmon(names, dirfd(d), e->d_name, words);
    if (d)
        closedir(d);
    free(words);
    return rc ? st_nomem(err, "the names of containers") : 0;
}

/* Names of Kubernetes' are "k8s_NAME_POD_NAMESPACE_...", with docker and CRI-O. */
static void split_name(struct st_container *c)
{
    char *name = c->name + 4, *pod;

    if (strncmp(c->name, "k8s_", 4) != 0 || !(pod = strchr(name, '_')))
        return;
    *pod++ = '\0';
    snprintf(c->pod, sizeof(c->pod), "%.*s", (int)strcspn(pod, "_"), pod);
    memmove(c->name, name, strlen(name) + 1);
}

void container_name(const struct container_names *names, struct st_container *c)
{
    for (size_t i = 0; i < names->conmons.n; i++)
        if (!strcmp(names->conmons.at[i].id, c->id))
            snprintf(c->name, sizeof(c->name), "%s", names->conmons.at[i].name);
    if (!*c->name)
        ask_docker(c);
    if (!*c->name)
        ask_containerd(c);
    split_name(c);
}

void container_names_close(struct container_names *names)
{
    st_vec_free(&names->conmons);
}
