/* libFuzzer: any bytes as a trace database: opened, asked why it stalled, every report, every text export. */
#include "fuzz.h"

#include "base/log.h"
#include "tracedb/tracedb.h"
#include "viewer/export/export.h"
#include "viewer/format.h"
#include "viewer/report.h"
#include "viewer/sql.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

static char path[] = "/tmp/stalltrap-fuzz.XXXXXX";

static int file = -1;

static FILE *out;

static void remove_file(void)
{
    unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    st_log_level(ST_LOG_QUIET);
    file = mkostemp(path, O_CLOEXEC);
    out = fopen("/dev/null", "we");
    fuzz_must(file >= 0 && out);
    atexit(remove_file);
    return 0;
}

static void report(sqlite3 *db, const struct vw_sql *sql, enum vw_format format)
{
    sqlite3_stmt *statement = NULL;
    struct st_error err = {0};

    if (!sqlite3_prepare_v2(db, sql->text, -1, &statement, NULL) && statement)
        fuzz_must(vw_print_rows(statement, format, VW_DURATIONS, out, 100, &err) >= 0 || err.text[0]);
    sqlite3_finalize(statement);
}

static void export_to(sqlite3 *db, const struct vw_export_ops *ops)
{
    struct vw_export x = {
        .db = db, .out = out, .ops = ops, .title = "fuzz", .from = INT64_MIN, .to = INT64_MAX};
    struct st_error err = {0};

    fuzz_must(!vw_export_run(&x, &err) || err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct vw_export_ops *const formats[] = {&vw_export_perfetto, &vw_export_chrome,
                                                          &vw_export_folded,   &vw_export_speedscope,
                                                          &vw_export_svg,      &vw_export_html};
    struct st_error err = {0};
    sqlite3 *db = NULL;

    fuzz_must(!ftruncate(file, 0) && pwrite(file, data, size, 0) == (ssize_t)size);
    if (tdb_open(path, &db, &err)) {
        fuzz_must(err.text[0]);
        return 0;
    }
    tdb_bound_statements(db, 1);
    fuzz_must(!vw_report_why(db, 0, out, &err) || err.text[0]);
    for (const struct vw_sql *r = vw_reports; r->name; r++)
        report(db, r, (enum vw_format)(size % 3));
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        export_to(db, formats[i]);
    fuzz_must(sqlite3_close(db) == SQLITE_OK);
    return 0;
}
