/* `decode --dump branches`, and what the listings share. */
#include "decoder/cmd/dump.h"

#include "base/safetext.h"

#include <inttypes.h>
#include <string.h>

const char *dec_kind_name(enum dec_kind kind)
{
    static const char *const names[] = {
        [DEC_COND_JUMP] = "jcc",   [DEC_JUMP] = "jmp",         [DEC_CALL] = "call",
        [DEC_RETURN] = "return",   [DEC_FAR_CALL] = "syscall", [DEC_FAR_RETURN] = "iret",
        [DEC_FAR_JUMP] = "farjmp", [DEC_ASYNC] = "int",        [DEC_ENABLE] = "tr-start",
        [DEC_DISABLE] = "tr-end",  [DEC_GAP] = "gap",          [DEC_PTWRITE] = "ptwrite",
        [DEC_POWER] = "power",
    };
    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

char *dec_dump_time(uint64_t time, bool raw_time, char *buf, size_t size)
{
    if (raw_time)
        snprintf(buf, size, "%" PRIu64, time);
    else
        snprintf(buf, size, "%" PRIu64 ".%09" PRIu64, time / 1000000000u, time % 1000000000u);
    return buf;
}

/* Marks behind the kind; joined to it so that a line keeps its columns. */
static void put_kind(FILE *out, const struct dec_event *event)
{
    static const struct {
        uint16_t flag;

        const char *mark;
    } marks[] = {
        {DEC_INDIRECT, "+indirect"}, {DEC_RESUMED, "+resumed"},   {DEC_ASYNC_DISABLE, "+async"},
        {DEC_ZERO_CALL, "+zero"},    {DEC_TX_ABORT, "+tx-abort"}, {DEC_IN_TX, "+tx"},
    };
    fputs(dec_kind_name((enum dec_kind)event->kind), out);
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (event->flags & marks[i].flag)
            fputs(marks[i].mark, out);
    }
}

static void put_symbol(FILE *out, const struct dec_space *space, uint64_t time, uint64_t address)
{
    struct dec_place place = {0};
    char name[1024];
    if (space && address)
        dec_space_symbol(space, time, address, &place);
    if (!place.symbol) {
        fputs("-", out);
        return;
    }
    st_safe_text(name, sizeof(name), place.symbol->name);
    fprintf(out, "%s+0x%" PRIx64, name, address - place.start);
}

static void put_gap(FILE *out, const struct dec_event *event, const char *detail)
{
    char text[1024];
    st_safe_text(text, sizeof(text), detail ? detail : "");
    fprintf(out, "%s: %s\n", dec_gap_name((enum dec_gap)event->arg), text);
}

static void put_event(const struct dec_dump *dump, const struct dec_stream_info *info,
                      const struct dec_event *event, const char *detail)
{
    char time[32];
    uint64_t address = event->to ? event->to : event->from;
    fprintf(dump->out, "%s %d %d %" PRIx64 " %" PRIx64 " ",
            dec_dump_time(event->time, dump->raw_time, time, sizeof(time)), info->tid, event->cpu,
            event->from, event->to);
    put_kind(dump->out, event);
    fputc(' ', dump->out);
    if (event->kind == DEC_GAP) {
        put_gap(dump->out, event, detail);
    } else if (event->kind == DEC_POWER) {
        char text[DEC_POWER_TEXT];
        const char *name = dec_power_text(event->arg, text, sizeof(text));
        fprintf(dump->out, "%s%s%s\n", name, *text ? ": " : "", text);
    } else if (event->kind == DEC_PTWRITE) {
        fprintf(dump->out, "0x%" PRIx64 "\n", event->arg);
    } else {
        const struct dec_space *space =
            dump->space_of ? dump->space_of(dump->ctx, info->pid, info->tid, event->time) : NULL;
        put_symbol(dump->out, space, event->time, address);
        fputc('\n', dump->out);
    }
}

int dec_dump_branches(void *dump, const struct dec_stream_info *info, const struct dec_event *events,
                      size_t n, const char *detail)
{
    const struct dec_dump *d = dump;
    for (size_t i = 0; i < n; i++) {
        if (events[i].kind != DEC_COND_JUMP || events[i].flags & DEC_TAKEN)
            put_event(d, info, &events[i], i + 1 == n ? detail : NULL);
    }
    return ferror(d->out) ? ST_EFAIL : 0;
}
