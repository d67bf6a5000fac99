/* What the programs write has to be what the kernel's tracepoints would: their descriptions say so. */
#include "recorder/sources/sample/select.h"
#include "base/log.h"
#include "recorder/perf/tracefs.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FIELDS = 6 };

struct layout {
    const char *tracepoint;

    const char *fields[MOST_FIELDS]; /* parts of its description */
};

static const struct layout layouts[] = {
    {"sched:sched_switch",
     {"prev_comm[16];\toffset:8;", "prev_pid;\toffset:24;\tsize:4;", "prev_state;\toffset:32;\tsize:8;",
      "next_comm[16];\toffset:40;", "next_pid;\toffset:56;\tsize:4;", "next_prio;\toffset:60;\tsize:4;"}},
    {"sched:sched_waking",
     {"comm[16];\toffset:8;", "pid;\toffset:24;\tsize:4;", "prio;\toffset:28;\tsize:4;",
      "target_cpu;\toffset:32;\tsize:4;"}},
};

/* 0, ST_ECANNOT, ST_ENOMEM. */
static int check_layout(const struct layout *l, struct st_error *err)
{
    rec_text text = {0};
    int rc = rec_tracepoint_format(l->tracepoint, &text, err);

    for (size_t i = 0; !rc && i < MOST_FIELDS && l->fields[i]; i++)
        if (!strstr(text.at, l->fields[i]))
            rc = st_fail(err, ST_ECANNOT, "this kernel's %s has no \"%s\"", l->tracepoint, l->fields[i]);
    st_vec_free(&text);
    return rc;
}

static int find_types(struct trg_select_config *config, struct st_error *err)
{
    uint64_t *const types[] = {&config->switch_type, &config->waking_type};
    int rc = 0;

    for (size_t i = 0; !rc && i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        rc = check_layout(&layouts[i], err);
        if (!rc)
            rc = rec_tracepoint_id(layouts[i].tracepoint, types[i], err);
    }
    return rc;
}

int rec_select_open(const struct st_target *target, struct trg_select **select, struct st_error *err)
{
    struct trg_select_config config = {.target = target};
    struct st_error why = {0};
    int rc = find_types(&config, &why);

    if (!rc)
        rc = trg_select_open(&config, select, &why);
    if (rc && rc != ST_ECANNOT)
        return st_fail(err, rc, "%s", why.text);
    if (rc)
        st_log_debug("events are opened on threads, not on CPUs: %s", why.text);
    return 0;
}
