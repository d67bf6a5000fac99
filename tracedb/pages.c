/* Which pages of an SQLite file are whose. */
#include "tracedb/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HEADER = 100,
    PAGE_SIZE_AT = 16, /* 1 stands for 65536 */
    RESERVED_AT = 20,
    COUNT_AT = 28,
    FREE_HEAD_AT = 32,
    FREE_COUNT_AT = 36,
    AUTO_VACUUM_AT = 52,
    LOCK_BYTE = 0x40000000,
    TRUNK_SPARE = 8, /* words of a trunk page that older SQLites leave alone */
};

static const uint32_t MOST_PAGES = 0xfffffffe;

static int failed(const struct tdb_pages *p, struct st_error *err)
{
    return st_fail_errno(err, ST_EFAIL, "cannot write '%s'", p->path);
}

static int read_header(const struct tdb_pages *p, uint8_t *header, struct st_error *err)
{
    ssize_t n = pread(p->fd, header, HEADER, 0);

    if (n == HEADER && !memcmp(header, "SQLite format 3", 16))
        return 0;
    return n < 0 ? failed(p, err)
                 : st_fail(err, ST_EFAIL, "cannot write '%s': it is no longer what was begun", p->path);
}

int tdb_pages_open(struct tdb_pages *p, int fd, const char *path, struct st_error *err)
{
    uint8_t header[HEADER];
    int rc;

    *p = (struct tdb_pages){.fd = fd, .path = path, .lock = PTHREAD_MUTEX_INITIALIZER};
    rc = read_header(p, header, err);
    if (rc)
        return rc;
    p->size = (uint32_t)header[PAGE_SIZE_AT] << 8 | header[PAGE_SIZE_AT + 1];
    p->size = p->size == 1 ? 65536 : p->size;
    p->next = tdb_get32(header + COUNT_AT) + 1;
    if (p->size < 512 || p->next < 2 || header[RESERVED_AT] || tdb_get32(header + AUTO_VACUUM_AT))
        return st_fail(err, ST_EFAIL, "cannot write '%s': SQLite lays its pages out in another way", path);
    return 0;
}

void tdb_pages_free(struct tdb_pages *p)
{
    st_vec_free(&p->left);
}

uint32_t tdb_pages_locked(const struct tdb_pages *p)
{
    return LOCK_BYTE / p->size + 1;
}

static int take_new(struct tdb_pages *p, uint32_t wanted, struct tdb_page_range *range, struct st_error *err)
{
    if (p->next > MOST_PAGES - wanted)
        return st_fail(err, ST_EFAIL, "cannot write '%s': the trace is too large for a database", p->path);
    *range = (struct tdb_page_range){p->next, wanted};
    p->next += wanted;
    return 0;
}

int tdb_pages_take_new(struct tdb_pages *p, uint32_t wanted, struct tdb_page_range *range,
                       struct st_error *err)
{
    int rc;

    pthread_mutex_lock(&p->lock);
    rc = take_new(p, wanted, range, err);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

int tdb_pages_take(struct tdb_pages *p, uint32_t wanted, struct tdb_page_range *range, struct st_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&p->lock);
    if (p->left.n) {
        struct tdb_page_range *from = &p->left.at[p->left.n - 1];

        *range = (struct tdb_page_range){from->first, from->n < wanted ? from->n : wanted};
        from->first += range->n;
        from->n -= range->n;
        p->left.n -= from->n == 0;
    } else {
        rc = take_new(p, wanted, range, err);
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

int tdb_pages_give(struct tdb_pages *p, struct tdb_page_range range, struct st_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&p->lock);
    if (range.n && st_vec_push(&p->left, range))
        rc = st_nomem(err, "the pages of the database");
    pthread_mutex_unlock(&p->lock);
    return rc;
}

int tdb_pages_write(const struct tdb_pages *p, uint32_t first, const uint8_t *data, size_t n,
                    struct st_error *err)
{
    off_t at = (off_t)(first - 1) * p->size;
    size_t left = n * p->size;

    while (left) {
        ssize_t done = pwrite(p->fd, data, left, at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return failed(p, err);
        data += done;
        at += done;
        left -= (size_t)done;
    }
    return 0;
}

/* What is left at the end of the file does not become a part of it. */
static void shorten(struct tdb_pages *p)
{
    for (size_t i = 0; i < p->left.n;) {
        struct tdb_page_range *range = &p->left.at[i];

        if (range->first + range->n != p->next) {
            i++;
            continue;
        }
        p->next = range->first;
        *range = p->left.at[--p->left.n];
        i = 0;
    }
}

/* The free pages as a list of trunk pages, each naming others. */
struct free_list {
    uint8_t *trunk;

    uint32_t number; /* of the trunk; 0: none is begun */

    uint32_t n; /* that it names */

    uint32_t head, count;
};

static int flush_trunk(struct tdb_pages *p, struct free_list *f, struct st_error *err)
{
    if (!f->number)
        return 0;
    tdb_put32(f->trunk, f->head);
    tdb_put32(f->trunk + 4, f->n);
    f->head = f->number;
    f->number = 0;
    return tdb_pages_write(p, f->head, f->trunk, 1, err);
}

static int free_page(struct tdb_pages *p, struct free_list *f, uint32_t page, struct st_error *err)
{
    int rc = 0;

    if (page == tdb_pages_locked(p))
        return 0;
    f->count++;
    if (f->number && f->n < p->size / 4 - TRUNK_SPARE) {
        tdb_put32(f->trunk + 8 + 4 * (size_t)f->n++, page);
        return 0;
    }
    rc = flush_trunk(p, f, err);
    memset(f->trunk, 0, p->size);
    f->number = page;
    f->n = 0;
    return rc;
}

static int free_pages(struct tdb_pages *p, struct free_list *f, struct st_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < p->left.n && !rc; i++)
        for (uint32_t j = 0; j < p->left.at[i].n && !rc; j++)
            rc = free_page(p, f, p->left.at[i].first + j, err);
    return rc ? rc : flush_trunk(p, f, err);
}

int tdb_pages_close(struct tdb_pages *p, struct st_error *err)
{
    uint8_t header[HEADER], words[12];
    struct free_list f = {0};
    int rc = read_header(p, header, err);

    if (rc)
        return rc;
    shorten(p);
    f.trunk = calloc(1, p->size);
    if (!f.trunk)
        return st_nomem(err, "the free pages of the database");
    f.head = tdb_get32(header + FREE_HEAD_AT);
    f.count = tdb_get32(header + FREE_COUNT_AT);
    rc = free_pages(p, &f, err);
    free(f.trunk);
    tdb_put32(words, p->next - 1);
    tdb_put32(words + 4, f.head);
    tdb_put32(words + 8, f.count);
    if (!rc && pwrite(p->fd, words, sizeof(words), COUNT_AT) != sizeof(words))
        rc = failed(p, err);
    if (!rc && ftruncate(p->fd, (off_t)(p->next - 1) * p->size))
        rc = failed(p, err);
    return rc;
}
