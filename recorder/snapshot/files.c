/* The build ids of the files that were mapped, for perf's header. */
#include "base/vec.h"
#include "recorder/perf/record.h"
#include "recorder/snapshot/snapshot_impl.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    const struct rec_mmap2_record *x = *(const struct rec_mmap2_record *const *)a;
    const struct rec_mmap2_record *y = *(const struct rec_mmap2_record *const *)b;
    int order = strcmp(x->filename, y->filename);

    return order ? order : memcmp(x->build_id, y->build_id, sizeof(x->build_id));
}

static bool has_build_id(const struct rec_mmap2_record *m)
{
    return m->header.type == PERF_RECORD_MMAP2 && m->header.size > sizeof(*m) + sizeof(struct rec_trailer) &&
           (m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && m->build_id_size &&
           m->build_id_size <= sizeof(m->build_id) && (m->prot & 4 /* PROT_EXEC */);
}

int snap_write_build_ids(struct snap *s, const struct rec_stored *list, size_t n, struct st_error *err)
{
    ST_VEC(const struct rec_mmap2_record *) maps = {0};
    int rc = 0;

    for (size_t i = 0; !rc && i < n; i++) {
        const struct rec_mmap2_record *m = (const struct rec_mmap2_record *)list[i].record;

        if (has_build_id(m) && st_vec_push(&maps, m))
            rc = st_nomem(err, "the list of files");
    }
    if (!rc && maps.n)
        qsort(maps.at, maps.n, sizeof(*maps.at), by_name);
    for (size_t i = 0; !rc && i < maps.n; i++)
        if (i == 0 || by_name(&maps.at[i], &maps.at[i - 1]))
            rc = pd_writer_build_id(s->w, -1, PERF_RECORD_MISC_USER, maps.at[i]->build_id,
                                    maps.at[i]->build_id_size, maps.at[i]->filename, err);
    st_vec_free(&maps);
    return rc;
}
