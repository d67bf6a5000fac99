/* main(): the table of subcommands. */
#include "base/command.h"
#include "base/complete.h"
#include "base/log.h"
#include "base/nearest.h"
#include "decoder/commands.h"
#include "recorder/commands.h"
#include "viewer/commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct st_command commands[] = {
    {"arm", st_cmd_arm, "[TARGET] [--on TRIGGER]... [OPTION]...",
     "record; snapshot when a trigger fires, on Ctrl-C, on `snap`"},
    {"snap", st_cmd_snap, "[PID]", "ask a running arm for a snapshot now"},
    {"watch", st_cmd_watch, "[TARGET] --on TRIGGER...",
     "histogram of what a trigger measures; nothing is recorded"},
    {"decode", st_cmd_decode, "SNAPSHOT [-o TRACE.db]", "a snapshot or perf.data into a trace database"},
    {"view", st_cmd_view, "TRACE.db", "the timeline (text when stdout is no terminal)"},
    {"query", st_cmd_query, "TRACE.db SQL", "SQL on the trace database"},
    {"report", st_cmd_report, "TRACE.db [NAME]", "ready-made answers; with no name: why did it stall"},
    {"export", st_cmd_export, "TRACE.db --to FORMAT", "perfetto, chrome, folded, speedscope, svg or html"},
    {"doctor", st_cmd_doctor, "[--json]", "what this machine can record, and what to do about the rest"},
};

enum { NCOMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int print_help(FILE *to, int status)
{
    fprintf(to, "stalltrap %s: a flight recorder for stalls\n\n", ST_VERSION);
    for (int i = 0; i < NCOMMANDS; i++)
        fprintf(to, "  stalltrap %-7s %-40s %s\n", commands[i].name, commands[i].synopsis,
                commands[i].summary);
    fprintf(to, "\nstalltrap COMMAND --help lists a command's options.\n");
    return status;
}

static int unknown_command(const char *word)
{
    const char *names[NCOMMANDS];
    const char *near;
    struct st_error err = {0};

    for (int i = 0; i < NCOMMANDS; i++)
        names[i] = commands[i].name;
    near = st_nearest(word, strlen(word), names, NCOMMANDS);
    st_fail(&err, ST_EUSAGE, "no command '%s'", word);
    st_hint(&err, near ? "did you mean '%s'?" : "stalltrap --help lists them%.0s", near ? near : "");
    return st_log_error(NULL, &err);
}

static int run(int argc, char **argv)
{
    for (int i = 0; i < NCOMMANDS; i++)
        if (!strcmp(argv[0], commands[i].name))
            return commands[i].run(argc, argv);
    if (!strcmp(argv[0], "decode-worker")) /* decode starts it; no command for people */
        return st_cmd_decode_worker(argc, argv);
    return unknown_command(argv[0]);
}

/* What the last of words may become, for the shells (completions/). */
static int complete(int n, char **words)
{
    struct st_completion c = {.whole = words[n - 1], .text = words[n - 1]};

    if (n == 1 || (n == 2 && !strcmp(words[0], "help"))) {
        for (int i = 0; i < NCOMMANDS; i++)
            st_complete_word(&c, commands[i].name, commands[i].summary);
        return 0;
    }
    for (int i = 0; i < NCOMMANDS; i++)
        if (!strcmp(words[0], commands[i].name)) {
            st_complete_begin(n - 1, words + 1);
            return commands[i].run(1, words);
        }
    return 0;
}

int main(int argc, char **argv)
{
    /* Past a limit of the files' size, writing fails and is told, as on a full disk. */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2)
        return print_help(stderr, 2);
    if (argc > 2 && !strcmp(argv[1], "complete")) /* no command for people either */
        return complete(argc - 2, argv + 2);
    if (argc > 2 && !strcmp(argv[1], "help"))
        return run(2, (char *[]){argv[2], "--help", NULL});
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return print_help(stdout, 0);
    if (!strcmp(argv[1], "--version")) {
        printf("stalltrap %s\n", ST_VERSION);
        return 0;
    }
    return run(argc - 1, argv + 1);
}
