/* The room in a snapshot for the end of its stall. */
#include "recorder/snapshot/room.h"
#include "recorder/perf/record.h"
#include "recorder/snapshot/snapshot_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ROOM = 24 * 1024,
    BEFORE =
        sizeof(struct rec_sample_head) + sizeof(uint32_t), /* the raw data of a sample, which end on a word */
};

int snap_write_room(struct snap *s, struct st_error *err)
{
    struct rec_room *room = s->in->room;
    uint32_t magic = ST_ROOM_MAGIC;
    struct stat st;
    char *raw;
    int rc;

    if (!room)
        return 0;
    *room = (struct rec_room){0};
    if (!s->in->fired || !(s->in->fired->flags & ST_STALL_ONGOING))
        return 0;
    raw = calloc(1, ROOM - BEFORE);
    if (!raw)
        return st_nomem(err, "room for the end of the stall");
    memcpy(raw, &magic, sizeof(magic));
    room->offset = pd_writer_size(s->w);
    rc = snap_write_sample(s, SNAP_META, raw, ROOM - BEFORE, err);
    if (!rc)
        rc = pd_writer_stat(s->w, &st, err);
    if (!rc) {
        room->size = (uint32_t)(pd_writer_size(s->w) - room->offset);
        room->file = (struct rec_written){.dev = st.st_dev, .ino = st.st_ino};
    }
    free(raw);
    return rc;
}

/* The very file that was written, to read and write it. -1: it has gone, or another one has its name, which
 * is not opened. */
static int open_data(int folder, const char *name, const struct rec_room *room)
{
    int place = rec_written_find(&room->file, folder, name, REC_WRITTEN_DATA), data;
    char again[32];

    if (place < 0)
        return -1;
    snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
    data = open(again, O_RDWR | O_CLOEXEC);
    close(place);
    return data;
}

/* ------------------------------------------------------------------ */

/* Appends a sample like `like` with other raw data; zeros make it whole words, and the raw data's size counts
 * them, as in the kernel's (perf_output_sample()). -1: it does not fit. */
static int put_sample(snap_bytes *to, const struct rec_sample_head *like, const void *raw, size_t n)
{
    size_t size = (BEFORE + n + 7) / 8 * 8, used = to->n;
    uint32_t raw_size = (uint32_t)(size - BEFORE);
    struct rec_sample_head head = *like;

    if (used + size > ROOM)
        return -1;
    head.header.size = (uint16_t)size;
    memset(to->at + used, 0, size);
    memcpy(to->at + used, &head, sizeof(head));
    memcpy(to->at + used + sizeof(head), &raw_size, sizeof(raw_size));
    memcpy(to->at + used + BEFORE, raw, n);
    to->n += size;
    return 0;
}

/* What is left stays room: at least its magic fits. */
static int put_rest(snap_bytes *to, const struct rec_sample_head *room)
{
    uint32_t magic = ST_ROOM_MAGIC;
    size_t left = ROOM - to->n;
    char *raw;
    int rc;

    if (left < BEFORE + sizeof(struct st_meta_record))
        return -1;
    raw = calloc(1, left - BEFORE);
    if (!raw)
        return -1;
    memcpy(raw, &magic, sizeof(magic));
    rc = put_sample(to, room, raw, left - BEFORE);
    free(raw);
    return rc;
}

/* The room's new content, as large as before. 0, 1: it does not do, ST_ENOMEM. */
static int compose(snap_bytes *to, const struct rec_sample_head *room, const struct perf_event_header *end,
                   const struct rec_kallsyms *kallsyms, struct st_error *err)
{
    const struct rec_sample_head *head = (const struct rec_sample_head *)end;
    snap_bytes names = {0};
    int rc = snap_names_of(end, kallsyms, &names, err);

    if (!rc && st_vec_reserve(to, ROOM))
        rc = st_nomem(err, "the end of the stall");
    if (!rc && put_sample(to, head, (const char *)end + BEFORE, end->size - BEFORE))
        rc = 1;
    if (!rc && names.n && put_sample(to, head, names.at, names.n))
        rc = 1;
    if (!rc && put_rest(to, room))
        rc = 1;
    st_vec_free(&names);
    return rc;
}

static bool is_room(int fd, const struct rec_room *room, struct rec_sample_head *head)
{
    struct {
        struct rec_sample_head head;

        uint32_t raw_size, magic;
    } there;

    if (pread(fd, &there, sizeof(there), (off_t)room->offset) != (ssize_t)sizeof(there))
        return false;
    *head = there.head;
    return there.magic == ST_ROOM_MAGIC && there.head.header.size == room->size && room->size == ROOM;
}

/* What is behind the first word is the room's, whatever it holds, until that word has the first record's
 * size. */
static int write_in_place(int fd, const struct rec_room *room, const snap_bytes *bytes, struct st_error *err)
{
    size_t n = bytes->n - 8;
    off_t at = (off_t)room->offset;

    if (pwrite(fd, bytes->at + 8, n, at + 8) == (ssize_t)n && pwrite(fd, bytes->at, 8, at) == 8)
        return 0;
    return st_fail_errno(err, ST_EFAIL, "cannot write the end of the stall into the snapshot");
}

int rec_room_fill(const struct rec_room *room, int folder, const char *name,
                  const struct perf_event_header *end, const struct rec_kallsyms *kallsyms,
                  struct st_error *err)
{
    struct rec_sample_head head;
    snap_bytes bytes = {0};
    int fd = room->size ? open_data(folder, name, room) : -1, rc;

    if (fd < 0)
        return 1;
    rc = is_room(fd, room, &head) ? compose(&bytes, &head, end, kallsyms, err) : 1;
    if (!rc)
        rc = write_in_place(fd, room, &bytes, err);
    st_vec_free(&bytes);
    close(fd);
    return rc;
}
