/* `stalltrap doctor`: what this machine can record, and what to do about the rest. */
#include "base/log.h"
#include "base/opt.h"
#include "base/safetext.h"
#include "recorder/commands.h"
#include "recorder/doctor/doctor.h"
#include "triggers/needs.h"
#include "triggers/privilege.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *const verdicts[] = {"yes", "no", "info"};

void doctor_add(struct doctor *d, const char *key, const char *label, enum doctor_verdict verdict,
                const char *advice, const char *detail, ...)
{
    struct doctor_finding f = {.verdict = verdict};
    va_list ap;

    va_start(ap, detail);
    if (vasprintf(&f.detail, detail, ap) < 0)
        f.detail = NULL;
    va_end(ap);
    f.key = strdup(key);
    f.label = strdup(label);
    f.advice = advice ? strdup(advice) : NULL;
    if (!f.key || !f.label || !f.detail || (advice && !f.advice) || st_vec_push(&d->findings, f)) {
        d->out_of_memory = true;
        free(f.key);
        free(f.label);
        free(f.detail);
        free(f.advice);
    }
}

void doctor_refusal(struct doctor *d, const char *key, const char *label, const struct st_error *err)
{
    const char *hint = strchr(err->text, '\n');

    doctor_add(d, key, label, DOCTOR_NO, hint ? hint + 3 : NULL, "%.*s", (int)strcspn(err->text, "\n"),
               err->text);
}

static bool found(const struct doctor *d, const char *key)
{
    for (size_t i = 0; i < d->findings.n; i++)
        if (!strcmp(d->findings.at[i].key, key))
            return d->findings.at[i].verdict == DOCTOR_YES;
    return false;
}

/* What all of it comes to, as the first finding. */
static void add_verdict(struct doctor *d)
{
    const char *source = found(d, "source.intel-pt") ? "arm records every branch, by Intel PT"
                         : found(d, "source.sample") ? "arm samples, as there is no Intel PT"
                                                     : "only --source step can record";
    const char *limit = found(d, "hook.function") ? "" : ", but for kernel functions";
    struct st_error err = {0};
    struct doctor_finding last;

    if (trg_check_bpf(false, &err) || trg_check_needs(&err) || !found(d, "bpf.tp_btf"))
        doctor_add(d, "verdict", "in short", DOCTOR_INFO, NULL, "%s; triggers do not work here: %.*s", source,
                   (int)strcspn(err.text, "\n"),
                   *err.text ? err.text : "the kernel lacks BPF on tracepoints");
    else
        doctor_add(d, "verdict", "in short", DOCTOR_INFO, NULL, "%s; triggers work%s", source, limit);
    if (d->out_of_memory)
        return;
    last = d->findings.at[d->findings.n - 1];
    memmove(d->findings.at + 1, d->findings.at, (d->findings.n - 1) * sizeof(last));
    d->findings.at[0] = last;
}

enum { TEXT_COLUMN = 40, LEAST_TEXT = 30 };

/* Prints words up to `width` columns, further lines below the first. */
static void print_wrapped(const char *text, int width)
{
    int room = width - TEXT_COLUMN;

    while (room >= LEAST_TEXT && strlen(text) > (size_t)room) {
        int n = room;

        while (n > 0 && text[n] != ' ')
            n--;
        if (!n)
            break;
        printf("%.*s\n%*s", n, text, TEXT_COLUMN, "");
        text += n + 1;
    }
    puts(text);
}

/* On a terminal, lines break at its width; what a program reads has one line a finding. */
static int terminal_width(void)
{
    struct winsize size;

    return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

static void print_text(const struct doctor *d)
{
    int width = terminal_width();

    for (size_t i = 0; i < d->findings.n; i++) {
        const struct doctor_finding *f = &d->findings.at[i];
        char safe[4096];

        st_safe_lines(safe, sizeof(safe), f->detail);
        printf("%-4s %-34s ", f->verdict == DOCTOR_INFO ? "-" : verdicts[f->verdict], f->label);
        print_wrapped(safe, width);
        if (f->advice) {
            printf("     %-31s -> ", "");
            print_wrapped(f->advice, width);
        }
    }
}

/* RFC 8259, section 7: quote, backslash and controls are escaped; everything else stays, as UTF-8 or as
 * \u00XX a byte. */
static void print_json_string(const char *text)
{
    putchar('"');
    while (*text) {
        uint32_t cp;
        size_t len = st_utf8_decode(text, strlen(text), &cp);

        if (!len || cp < 0x20)
            printf("\\u%04x", (unsigned char)*text);
        else if (cp == '"' || cp == '\\')
            printf("\\%c", (int)cp);
        else
            printf("%.*s", (int)len, text);
        text += len ? len : 1;
    }
    putchar('"');
}

static void print_json(const struct doctor *d)
{
    printf("{\"version\": ");
    print_json_string(ST_VERSION);
    printf(", \"findings\": [");
    for (size_t i = 0; i < d->findings.n; i++) {
        const struct doctor_finding *f = &d->findings.at[i];

        printf("%s\n  {\"key\": ", i ? "," : "");
        print_json_string(f->key);
        printf(", \"label\": ");
        print_json_string(f->label);
        printf(", \"verdict\": \"%s\", \"detail\": ", verdicts[f->verdict]);
        print_json_string(f->detail);
        printf(", \"advice\": ");
        if (f->advice)
            print_json_string(f->advice);
        else
            printf("null");
        printf("}");
    }
    printf("\n]}\n");
}

static void free_findings(struct doctor *d)
{
    for (size_t i = 0; i < d->findings.n; i++) {
        free(d->findings.at[i].key);
        free(d->findings.at[i].label);
        free(d->findings.at[i].detail);
        free(d->findings.at[i].advice);
    }
    st_vec_free(&d->findings);
}

static int examine(bool json, struct st_error *err)
{
    struct doctor d = {0};
    int rc = 0;

    doctor_sources(&d);
    doctor_kernel(&d);
    doctor_bpf(&d);
    add_verdict(&d);
    if (d.out_of_memory)
        rc = st_nomem(err, "the findings");
    else if (json)
        print_json(&d);
    else
        print_text(&d);
    free_findings(&d);
    if (!rc && (fflush(stdout) || ferror(stdout)))
        rc = st_fail_errno(err, ST_EFAIL, "cannot write to stdout");
    return rc;
}

int st_cmd_doctor(int argc, char **argv)
{
    static const struct st_opt_usage usage = {
        .command = "doctor",
        .synopsis = "[--json]",
        .about = "Tells what this machine and this user can record, and what to do about the rest.",
    };
    bool json = false;
    const struct st_option table[] = {
        {.name = "json", .kind = ST_OPT_FLAG, .to = &json, .help = "for programs: one JSON object"},
        {.name = NULL},
    };
    struct st_error err = {0};
    int first = st_opt_parse(&usage, table, argc, argv, false, &err);
    int rc = first < 0 ? first : 0;

    if (first == 0)
        return 0;
    if (!rc && first < argc)
        rc = st_fail(&err, ST_EUSAGE, "'%s' is no option", argv[first]);
    if (!rc)
        rc = examine(json, &err);
    return rc ? st_log_error("doctor", &err) : 0;
}
