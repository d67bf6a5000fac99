/* What a store holds, for tests. Behind cmocka.h. */
#ifndef ST_UNIT_RECORDER_STORE_LIST_H
#define ST_UNIT_RECORDER_STORE_LIST_H

#include "recorder/sideband/record_store.h"

/* Its records in the order of their times: an array to be freed, of records that are the store's. */
static inline void list_store(const struct rec_store *store, struct rec_stored **list, size_t *n)
{
    struct rec_view view;

    assert_int_equal(rec_store_view(store, &view), 0);
    assert_int_equal(rec_view_sorted(&view, list, NULL), 0);
    *n = view.n;
    rec_view_free(&view);
}

#endif
