/* `stalltrap decode`: the command line. */
#include "decoder/cmd/decode_job.h"
#include "decoder/cmd/given.h"
#include "decoder/cmd/worker.h"
#include "decoder/commands.h"

#include "base/log.h"
#include "base/nearest.h"
#include "base/opt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const listings[] = {"branches", "calls", "packets", "samples"};

static int set_listing(void *to, const char *text, struct st_error *err)
{
    enum decode_listing *listing = to;
    const char *near;

    for (int i = 0; i < 4; i++)
        if (!strcmp(text, listings[i])) {
            *listing = (enum decode_listing)(DECODE_BRANCHES + i);
            return 0;
        }
    near = st_nearest(text, strlen(text), listings, 4);
    st_fail(err, ST_EUSAGE, "--dump: '%s' is none of branches, calls, packets, samples", text);
    return near ? st_hint(err, "did you mean '%s'?", near) : ST_EUSAGE;
}

static int add_build_id_dir(void *to, const char *text, struct st_error *err)
{
    struct decode_options *o = to;

    return st_vec_push(&o->build_id_dirs, text) ? st_nomem(err, "the options") : 0;
}

/* NAME.data -> NAME.db, any other NAME -> NAME.db too; a folder (perf's directory form) without its slash. */
static int default_output(const char *input, char *path, size_t size, struct st_error *err)
{
    size_t n = strlen(input);

    while (n > 1 && input[n - 1] == '/')
        n--;
    if (n > 5 && !strncmp(input + n - 5, ".data", 5))
        n -= 5;
    if ((size_t)snprintf(path, size, "%.*s.db", (int)n, input) >= size)
        return st_fail(err, ST_EUSAGE, "the name '%.200s...' is too long", input);
    return 0;
}

/* What would fail after minutes of decoding fails now. */
static int check_output(const struct decode_options *o, struct st_error *err)
{
    struct stat st;

    if (!o->output || dec_given_stat_output(o, &st))
        return 0;
    if (S_ISDIR(st.st_mode))
        return st_fail(err, ST_EFAIL, "cannot write '%s': it is a folder", o->output);
    if (!o->replace) {
        st_fail(err, ST_EFAIL, "'%s' is there already", o->output);
        return st_hint(err, "--force replaces it, -o NAME writes another");
    }
    return 0;
}

static int check_words(struct decode_options *o, int argc, char **argv, int first, struct st_error *err)
{
    bool raw = o->raw.traces.n > 0;

    if (raw && first < argc)
        return st_fail(err, ST_EUSAGE, "--raw takes the place of a snapshot: what is '%s'?", argv[first]);
    if (!raw && (o->raw.images.n || o->raw.has_cpu || o->raw.has_clock))
        return st_fail(err, ST_EUSAGE, "--image, --images, --cpu and --time go with --raw");
    if (!raw && first >= argc)
        return st_fail(err, ST_EUSAGE, "which snapshot? (stalltrap decode SNAPSHOT)");
    if (first + 1 < argc)
        return st_fail(err, ST_EUSAGE, "one snapshot at a time: what is '%s'?", argv[first + 1]);
    if (o->listing != DECODE_NO_LISTING && (o->stats || o->output))
        return st_fail(err, ST_EUSAGE, "--dump writes nothing but its list: leave out %s",
                       o->stats ? "--stats" : "-o");
    if (o->inlined && (o->listing != DECODE_NO_LISTING || (o->stats && !o->output)))
        return st_fail(err, ST_EUSAGE, "--inlined needs a database: leave out %s",
                       o->stats ? "--stats, or give -o" : "--dump");
    o->input = raw ? NULL : argv[first];
    return 0;
}

/* Without -o: --stats and --dump write no database, else it stands beside the input. */
static int choose_output(struct decode_options *o, char *path, size_t size, struct st_error *err)
{
    int rc = 0;

    if (!o->output && !o->stats && o->listing == DECODE_NO_LISTING) {
        rc = default_output(o->input ? o->input : o->raw.traces.at[0], path, size, err);
        o->output = path;
    }
    return rc;
}

static void complete_listing(struct st_completion *c)
{
    for (int i = 0; i < 4; i++)
        st_complete_word(c, listings[i], NULL);
}

static void complete_snapshot(struct st_completion *c)
{
    if (!c->operand)
        st_complete_files(".data");
}

static const struct st_completer completers[] = {
    {"dump", complete_listing}, {NULL, complete_snapshot}, {NULL, NULL}};

static const struct st_opt_usage usage = {
    "decode", "SNAPSHOT [-o TRACE.db] | --raw TRACE --image FILE@ADDRESS...",
    "Makes a trace database of a snapshot, a perf.data with Intel PT or call chains, or raw Intel PT.",
    completers};

/* What raw input needs told: these go to decode_options.raw. */
static const struct {
    const char *name, *arg;

    st_opt_fn *fn;

    const char *help;
} raw_options[] = {
    {"raw", "TRACE", dec_raw_trace, "a file of Intel PT packets; one a thread"},
    {"image", "FILE@ADDR", dec_raw_image, "code: FILE[:OFFSET[:SIZE]]@ADDRESS"},
    {"images", "LIST", dec_raw_images, "code: a file with a line FILE OFFSET SIZE ADDRESS each"},
    {"cpu", "F/M/S", dec_raw_cpu, "family, model, stepping of the CPU"},
    {"bits", "32|64", dec_raw_bits, "what the code is where the trace does not say"},
    {"time", "M:S:Z", dec_raw_time, "perf's TSC conversion: MULT:SHIFT:ZERO"},
    {"mtc-freq", "N", dec_raw_mtc_freq, "MTC period, as recorded"},
    {"nom-freq", "N", dec_raw_nom_freq, "maximum non-turbo ratio"},
    {"cpuid15", "EAX/EBX", dec_raw_cpuid15, "TSC to crystal clock ratio"},
};

enum { COMMON_OPTIONS = 11, RAW_OPTIONS = sizeof(raw_options) / sizeof(raw_options[0]), GIVEN_OPTIONS = 2 };

/* What `arm` hands over (decoder/cmd/given.h). */
static void given_options(struct decode_options *o, struct st_option table[GIVEN_OPTIONS])
{
    static const char *const names[GIVEN_OPTIONS] = {"given-input", "given-folder"};
    long *const to[GIVEN_OPTIONS] = {&o->given_input, &o->given_folder};

    for (int i = 0; i < GIVEN_OPTIONS; i++)
        table[i] = (struct st_option){.name = names[i],
                                      .arg = "FD",
                                      .kind = ST_OPT_NUMBER,
                                      .to = to[i],
                                      .least = STDERR_FILENO + 1,
                                      .most = INT_MAX};
}

static void common_options(struct decode_options *o, struct st_option table[COMMON_OPTIONS])
{
    table[0] = (struct st_option){"output",      'o',        "TRACE.db",
                                  ST_OPT_STRING, &o->output, .help = "default: SNAPSHOT's name with .db"};
    table[1] = (struct st_option){"force", 'f', NULL, ST_OPT_FLAG, &o->replace, .help = "replace TRACE.db"};
    table[2] = (struct st_option){.name = "stats",
                                  .kind = ST_OPT_FLAG,
                                  .to = &o->stats,
                                  .help = "counts as JSON; no database without -o"};
    table[3] = (struct st_option){.name = "dump",
                                  .arg = "WHAT",
                                  .kind = ST_OPT_CALL,
                                  .to = &o->listing,
                                  .fn = set_listing,
                                  .help = "list branches, calls, packets or samples; no database"};
    table[4] = (struct st_option){.name = "symfs",
                                  .arg = "DIR",
                                  .kind = ST_OPT_STRING,
                                  .to = &o->symfs,
                                  .help = "look for code files below DIR"};
    table[5] = (struct st_option){.name = "buildid-dir",
                                  .arg = "DIR",
                                  .kind = ST_OPT_CALL,
                                  .to = o,
                                  .fn = add_build_id_dir,
                                  .help = "look for code files by build id in DIR (default: ~/.debug)"};
    table[6] = (struct st_option){.name = "threads",
                                  .arg = "N",
                                  .kind = ST_OPT_NUMBER,
                                  .to = &o->raw.threads,
                                  .least = 1,
                                  .most = 64,
                                  .help = "how many to use (default: as many as there are CPUs)"};
    table[7] = (struct st_option){.name = "reference",
                                  .kind = ST_OPT_FLAG,
                                  .to = &o->raw.reference,
                                  .help = "decode with libipt alone: slower, the same result"};
    table[8] = (struct st_option){.name = "bare",
                                  .kind = ST_OPT_FLAG,
                                  .to = &o->bare,
                                  .help = "the tables alone, for your own SQL: view is slow on it"};
    table[9] = (struct st_option){
        .name = "memory",
        .arg = "SIZE",
        .kind = ST_OPT_SIZE,
        .to = &o->memory,
        .help = "to take at most, and 256M; a quarter is for calls (default: half of the machine's)"};
    table[10] = (struct st_option){.name = "inlined",
                                   .kind = ST_OPT_FLAG,
                                   .to = &o->inlined,
                                   .help = "calls of inlined functions too, by DWARF: slower"};
}

static int parse(struct decode_options *o, int argc, char **argv, struct st_error *err)
{
    struct st_option table[COMMON_OPTIONS + RAW_OPTIONS + GIVEN_OPTIONS + 1] = {0};

    common_options(o, table);
    for (size_t i = 0; i < RAW_OPTIONS; i++)
        table[COMMON_OPTIONS + i] = (struct st_option){.name = raw_options[i].name,
                                                       .arg = raw_options[i].arg,
                                                       .kind = ST_OPT_CALL,
                                                       .to = &o->raw,
                                                       .fn = raw_options[i].fn,
                                                       .help = raw_options[i].help};
    given_options(o, table + COMMON_OPTIONS + RAW_OPTIONS);
    return st_opt_parse(&usage, table, argc, argv, false, err);
}

/* The command line; 1: help was asked for. `path` is room for the output's name. */
static int read_words(struct decode_options *o, int argc, char **argv, char path[PATH_MAX],
                      struct st_error *err)
{
    int rc = parse(o, argc, argv, err);

    if (rc == 0)
        return 1;
    if (rc > 0)
        rc = check_words(o, argc, argv, rc, err);
    return rc ? rc : choose_output(o, path, PATH_MAX, err);
}

static void free_options(struct decode_options *o)
{
    st_vec_free(&o->build_id_dirs);
    dec_raw_free(&o->raw);
}

int st_cmd_decode(int argc, char **argv)
{
    struct decode_options options = {0};
    struct st_error err = {0};
    char path[PATH_MAX];
    int rc = read_words(&options, argc, argv, path, &err);
    int status = 0;

    if (!rc)
        rc = check_output(&options, &err);
    if (!rc)
        status = dec_serve(&options, argv);
    free_options(&options);
    return rc < 0 ? st_log_error("decode", &err) : status;
}

int st_cmd_decode_worker(int argc, char **argv)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN); /* as long as the machine can be asked */
    struct decode_options options = {0};
    struct st_error err = {0};
    char path[PATH_MAX];
    int rc = dec_enter_sandbox(&err);

    dec_ask_begin();
    if (!rc)
        rc = read_words(&options, argc, argv, path, &err);
    if (!rc && !options.raw.threads)
        options.raw.threads = cpus > 0 ? cpus : 1;
    if (!rc)
        rc = decode_run(&options, &err);
    if (rc == ST_ENOMEM)
        st_hint(&err, "--memory SIZE allows more than %llu MiB",
                (unsigned long long)(dec_memory(&options) >> 20));
    free_options(&options);
    return rc < 0 ? st_log_error("decode", &err) : 0;
}
