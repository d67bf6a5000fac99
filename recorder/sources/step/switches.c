/* Context switches within system calls. */
#include "recorder/sources/step/switches.h"
#include "recorder/perf/event.h"
#include "recorder/perf/record.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum {
    RING_BYTES = 16 * 1024, /* some 300 switches in one system call */
};

void step_switches_open(struct step_switches *sw, pid_t tid)
{
    struct perf_event_attr attr;

    *sw = (struct step_switches){.fd = -1};
    rec_perf_dummy(&attr);
    attr.context_switch = 1;
    attr.disabled = 1;
    attr.wakeup_watermark = 1u << 30;
    sw->fd = rec_perf_event(&attr, tid, -1);
    if (sw->fd >= 0 && rec_perf_ring_map(&sw->ring, sw->fd, RING_BYTES, NULL))
        step_switches_close(sw);
}

void step_switches_resume(struct step_switches *sw)
{
    if (sw->fd < 0)
        return;
    sw->resumed = true;
    if (!sw->on)
        sw->on = !ioctl(sw->fd, PERF_EVENT_IOC_ENABLE, 0);
}

struct collecting {
    struct step_switches *sw;

    struct step_slot *slot;
};

static int take(void *ctx, const struct perf_event_header *record, struct st_error *err)
{
    const struct collecting *c = ctx;
    const struct rec_trailer *trailer = (const struct rec_trailer *)((const char *)record + record->size) - 1;
    bool out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;

    (void)err;
    if (record->type != PERF_RECORD_SWITCH)
        return 0;
    if (c->sw->resumed && !out) {
        c->sw->resumed = false;
        return 0;
    }
    c->slot->switches[c->slot->nswitches++ % STEP_SWITCHES] = (struct step_switch){
        .time = trailer->time,
        .cpu = trailer->cpu,
        .out = out,
        .preempt = record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
    };
    return 0;
}

void step_switches_collect(struct step_switches *sw, struct step_slot *slot, bool stopped)
{
    struct collecting c = {.sw = sw, .slot = slot};

    if (sw->fd < 0 || !sw->on || !slot)
        return;
    rec_perf_ring_drain(&sw->ring, take, &c, NULL);
    if (stopped && slot->nswitches && slot->switches[(slot->nswitches - 1) % STEP_SWITCHES].out)
        slot->nswitches--;
}

void step_switches_stop(struct step_switches *sw, struct step_slot *slot)
{
    if (sw->fd < 0 || !sw->on)
        return;
    step_switches_collect(sw, slot, true);
    ioctl(sw->fd, PERF_EVENT_IOC_DISABLE, 0);
    sw->on = false;
}

void step_switches_close(struct step_switches *sw)
{
    rec_perf_ring_unmap(&sw->ring);
    if (sw->fd >= 0)
        close(sw->fd);
    *sw = (struct step_switches){.fd = -1};
}
