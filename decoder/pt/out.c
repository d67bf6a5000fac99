/* Times for events between two points, and batches. */
#include "decoder/pt/out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE_FROM = 64 /* instructions of a window that shows how long one takes */ };

static const double SLOWEST = 1e6; /* ns an instruction: slower than that something else took the time */

int out_init(struct flow_out *out, const struct dec_flow_options *options, struct dec_flow_counts *counts,
             struct st_error *err)
{
    memset(out, 0, sizeof(*out));
    out->emit = options->emit;
    out->ctx = options->emit_ctx;
    out->info = (struct dec_stream_info){.pid = -1, .tid = -1, .ring = options->ring};
    out->cpu = -1;
    out->counts = counts;
    out->off = true;
    /* One instruction a cycle at the nominal frequency, in units of 100 MHz, until the trace shows better. */
    out->ns_per_instruction = options->config.nom_freq ? 10.0 / options->config.nom_freq : 1.0;
    out->events = malloc(OUT_ROOM * sizeof(*out->events));
    out->at = malloc(OUT_ROOM * sizeof(*out->at));
    if (out->events && out->at)
        return 0;
    out_free(out);
    return st_nomem(err, "the events");
}

void out_free(struct flow_out *out)
{
    free(out->events);
    free(out->at);
    out->events = NULL;
    out->at = NULL;
}

/* Whether tracing was off for a part of the window, so that its instructions do not account for all of its
 * time. */
static bool has_pause(const struct flow_out *out)
{
    bool off = out->off, pause = false;
    for (size_t i = out->first; i < out->n; i++) {
        const struct dec_event *event = &out->events[i];
        if (event->kind == DEC_ENABLE) {
            pause |= !(event->flags & DEC_TIME_EXACT);
            off = false;
        } else if (event->kind == DEC_DISABLE || event->kind == DEC_GAP) {
            off = true;
        }
    }
    return pause || off;
}

static void give(struct flow_out *out, struct dec_event *event, uint64_t time)
{
    if (time < out->given)
        time = out->given;
    out->given = time;
    event->time = time;
    if (event->kind == DEC_DISABLE || event->kind == DEC_GAP)
        out->off = true;
    else if (event->kind == DEC_ENABLE)
        out->off = false;
}

/* ns an instruction within a window of `span` ns; *spare is the part of it that passed while tracing was off.
 */
static double rate_of(struct flow_out *out, double span, bool pause, double *spare)
{
    double instructions = (double)out->instructions;
    *spare = pause ? span : 0;
    if (out->instructions == 0)
        return out->ns_per_instruction;
    *spare = 0;
    if (pause && out->ns_per_instruction * instructions <= span) {
        *spare = span - out->ns_per_instruction * instructions;
        return out->ns_per_instruction;
    }
    double rate = span / instructions;
    if (!pause && out->instructions >= RATE_FROM && rate < SLOWEST)
        out->ns_per_instruction = rate;
    return rate;
}

/* A duration as a number, however senseless the packets were that it comes from. */
static uint64_t whole(double ns)
{
    return ns >= (double)INT64_MAX ? INT64_MAX : ns > 0 ? (uint64_t)ns : 0;
}

/* Gives times to all that waits: the window from the last point on lasted `span` ns. */
static void spread(struct flow_out *out, double span, double rate, double spare)
{
    double paused = 0;
    for (size_t i = out->first; i < out->n; i++) {
        struct dec_event *event = &out->events[i];
        if (event->kind == DEC_ENABLE && !(event->flags & DEC_TIME_EXACT)) {
            paused += spare;
            spare = 0;
        }
        double passed = paused + rate * (double)out->at[i];
        give(out, event, out->timed ? out->point + whole(passed < span ? passed : span) : 0);
    }
    out->first = out->n;
}

static void add_cycles(struct dec_event *event, uint64_t cycles)
{
    uint64_t sum = DEC_CYCLES(event->arg) + cycles;
    if (sum > UINT32_MAX)
        sum = UINT32_MAX;
    event->arg = sum << 32 | DEC_INSTRUCTIONS(event->arg);
}

/* The cycles since the last point go to what waits, by the instructions before each, and the rest to the next
 * event. The counter does not stop while tracing is off (SDM, "Cycle Counter"): such a window has no cycles.
 */
static void spread_cycles(struct flow_out *out, uint32_t cycles, bool pause)
{
    uint32_t passed = out->cycles_known ? cycles - out->cycles : 0;
    out->cycles = cycles;
    out->cycles_known = true;
    if (passed == 0 || pause)
        return;
    if (out->first == out->n) {
        out->cycles_left += passed;
        return;
    }
    double rate = out->instructions ? (double)passed / (double)out->instructions : 0;
    uint64_t given = 0;
    for (size_t i = out->first; i < out->n; i++) {
        uint64_t sum = (uint64_t)(rate * (double)out->at[i]);
        if (!dec_has_counts(out->events[i].kind))
            continue;
        add_cycles(&out->events[i], sum - given);
        given = sum;
    }
    out->cycles_left += passed > given ? passed - given : 0;
}

/* The events from `from` to before `to` as a batch. */
static void hand_on_some(struct flow_out *out, size_t from, size_t to, const char *detail)
{
    if (from < to && out->emit && !out->rc)
        out->rc = out->emit(out->ctx, &out->info, out->events + from, to - from, detail);
}

/* A gap is the last of its batch. */
static void hand_on(struct flow_out *out)
{
    hand_on_some(out, 0, out->gap, out->detail);
    hand_on_some(out, out->gap, out->n, NULL);
    out->n = out->first = out->gap = 0;
}

/* Gives times without knowing the next point: at the rate of before. The point moves on to the present,
 * behind branches that were not told too. */
void out_flush(struct flow_out *out)
{
    double span = out->ns_per_instruction * (double)out->instructions;
    spread(out, span, out->ns_per_instruction, 0);
    hand_on(out);
    if (out->timed)
        out->point += whole(span);
    if (out->given > out->point)
        out->point = out->given;
    out->instructions = 0;
}

static void count_point(struct flow_out *out, uint64_t ns)
{
    struct dec_flow_counts *counts = out->counts;
    if (!out->emit)
        return;
    if (ns < out->told)
        ns = out->told;
    out->told = ns;
    if (counts->time_points == 0 || ns < counts->first_time)
        counts->first_time = ns;
    if (counts->time_points == 0 || ns > counts->last_time)
        counts->last_time = ns;
    counts->time_points++;
}

void out_point(struct flow_out *out, uint64_t ns, bool exact, uint32_t cycles)
{
    double spare = 0;
    bool pause = has_pause(out);
    count_point(out, ns);
    spread_cycles(out, cycles, pause);
    if (out->timed && ns < out->point) {
        ns = out->point;
        exact = false;
    }
    if (out->timed) {
        double span = (double)(ns - out->point);
        /* Most packets tell a time, and few of them an event: the rate is seen in long windows alone. */
        if (out->first < out->n || out->instructions >= RATE_FROM) {
            double rate = rate_of(out, span, pause, &spare);
            spread(out, span, rate, spare);
        }
    } else {
        out->timed = true;
        out->point = ns;
        spread(out, 0, 0, 0);
    }
    if (out->n > OUT_ROOM / 2)
        hand_on(out);
    out->point = ns;
    out->instructions = 0;
    out->exact = exact;
}

/* The event that stands behind the others now is one of them. */
static void append(struct flow_out *out)
{
    out->at[out->n++] = out->instructions;
    out->exact = false;
    if (out->n == OUT_ROOM)
        out_flush(out);
}

/* What ran since the last event that can tell, for one that can: its `arg`. */
static uint64_t take_counts(struct flow_out *out, enum dec_kind kind)
{
    uint64_t instructions = out->since_event < UINT32_MAX ? out->since_event : UINT32_MAX;
    uint64_t cycles = 0;
    if (kind != DEC_ENABLE)
        cycles = out->cycles_left < UINT32_MAX ? out->cycles_left : UINT32_MAX;
    out->since_event = 0;
    out->cycles_left = 0;
    return cycles << 32 | instructions;
}

void out_event(struct flow_out *out, enum dec_kind kind, uint16_t flags, uint64_t from, uint64_t to,
               uint64_t arg)
{
    struct dec_event *event = &out->events[out->n]; /* written once, where it stays */
    flags |= out->exact ? DEC_TIME_EXACT : 0;
    flags |= from >> 63 ? DEC_KERNEL_FROM : 0;
    flags |= to >> 63 ? DEC_KERNEL_TO : 0;
    event->time = 0;
    event->from = from;
    event->to = to;
    event->arg = dec_has_counts(kind) ? take_counts(out, kind) : arg;
    event->kind = (uint16_t)kind;
    event->flags = flags;
    event->cpu = out->cpu;
    out->idle &= kind == DEC_ENABLE;
    out->open = kind != DEC_DISABLE && (out->open || kind == DEC_ENABLE);
    append(out);
}

bool out_take_back(struct flow_out *out)
{
    if (out->n == 0 || out->events[out->n - 1].kind != DEC_ENABLE)
        return false;
    out->n--;
    out->open = false;
    if (out->first > out->n) {
        out->first = out->n;
        out->off = true;
    }
    return true;
}

bool out_gap(struct flow_out *out, enum dec_gap reason, const struct dec_image *image, const char *detail)
{
    uint64_t key = (uint64_t)(uintptr_t)image << 8 | (uint64_t)reason;
    struct dec_event event = {.arg = reason, .kind = DEC_GAP, .cpu = out->cpu};
    out->cycles_known = false;
    out->since_event = 0;
    out->cycles_left = 0;
    bool again = out->idle && out->gap_key == key;
    if (again && (!out->open || out_take_back(out)))
        return false;
    /* It waits for the next point too: what came before it did not happen later than that. */
    if (out->gap || out->n == OUT_ROOM - 1)
        out_flush(out);
    out->counts->gaps += !again;
    out->events[out->n] = event;
    append(out);
    out->gap = out->n;
    snprintf(out->detail, sizeof(out->detail), "%s", detail);
    out->idle = true;
    out->open = false;
    out->gap_key = key;
    return !again;
}

void out_who(struct flow_out *out, const struct dec_where *where)
{
    if (out->info.pid != where->pid || out->info.tid != where->tid)
        out_flush(out);
    out->info.pid = where->pid;
    out->info.tid = where->tid;
    out->cpu = where->cpu;
}
