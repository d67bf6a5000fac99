/* Decoding and actions, one job at a time. */
#include "recorder/arm/jobs.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/safetext.h"
#include "base/tempfiles.h"
#include "base/vec.h"
#include "recorder/arm/child.h"
#include "recorder/arm/decode_child.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_MOMENTS = 80 };

struct job {
    char *data, *db, *reason;

    struct rec_written file; /* that `data` was when it was written */

    bool tried, decoded;

    bool actions; /* follow */

    bool later; /* the user decodes it */

    bool beside; /* the recording goes on */

    bool again; /* its database is there, and is made again */

    bool announced;
};

struct rec_jobs {
    int loop;

    struct rec_jobs_config config;

    ST_VEC(struct job *) queue;

    bool under_way; /* the first one */

    struct rec_child child;

    struct rec_decode decode;

    struct rec_action_run run; /* of the first job */
};

static void free_job(struct job *j)
{
    if (!j)
        return;
    free(j->data);
    free(j->db);
    free(j->reason);
    free(j);
}

int rec_jobs_open(int loop, const struct rec_jobs_config *config, struct rec_jobs **jobs,
                  struct st_error *err)
{
    struct rec_jobs *q = calloc(1, sizeof(*q));

    if (!q)
        return st_nomem(err, "the queue of snapshots");
    q->loop = loop;
    q->config = *config;
    *jobs = q;
    return 0;
}

bool rec_jobs_busy(const struct rec_jobs *jobs)
{
    return jobs->queue.n > 0;
}

static void print_lines(const char *text)
{
    size_t size = 4 * strlen(text) + 1;
    char *safe = malloc(size);

    if (!safe)
        return;
    st_safe_lines(safe, size, text);
    st_progress_hide();
    fputs(safe, stdout);
    fflush(stdout);
    free(safe);
}

/* What the decoder's line "wrote DB (...)" says behind the name, which it has escaped; NULL: it is another
 * line. */
static const char *detail_of(const char *line, const char *db)
{
    size_t size = 4 * strlen(db) + 1, n;
    char *safe = malloc(size);

    if (!safe)
        return NULL;
    n = st_safe_lines(safe, size, db);
    if (strncmp(line, safe, n))
        line = NULL;
    free(safe);
    return line && !strncmp(line + n, " (", 2) ? line + n : NULL;
}

/* "wrote X.db (...)" of the decoder becomes "wrote X.data, X.db (...)"; anything else it says stays as it is.
 */
static void announce(struct job *j, const char *decoder_says)
{
    static const char wrote[] = "wrote ";
    const char *line = strstr(decoder_says, wrote);

    j->announced = true;
    if (j->again && !j->decoded)
        return; /* that there is such a snapshot was said */
    if (line && (line == decoder_says || line[-1] == '\n')) {
        const char *detail = detail_of(line + strlen(wrote), j->db);

        printf(j->again ? "completed " : "wrote ");
        print_lines(j->data);
        printf(", ");
        print_lines(j->db);
        print_lines(detail ? detail : "\n");
    } else {
        printf("wrote ");
        print_lines(j->data);
        printf("\n");
        print_lines(decoder_says);
    }
    fflush(stdout);
}

static int next_step(struct rec_jobs *q, struct st_error *err);

static int job_done(struct rec_jobs *q, struct st_error *err)
{
    free_job(q->queue.at[0]);
    memmove(q->queue.at, q->queue.at + 1, --q->queue.n * sizeof(q->queue.at[0]));
    q->under_way = q->queue.n > 0;
    return q->under_way ? next_step(q, err) : 0;
}

static void describe_status(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

static int actions_done(void *ctx, bool good, struct st_error *err)
{
    (void)good;
    return job_done(ctx, err);
}

static int start_actions(struct rec_jobs *q, struct st_error *err)
{
    const struct job *j = q->queue.at[0];

    q->run.loop = q->loop;
    q->run.option = "--then";
    q->run.list = j->actions ? q->config.actions : NULL;
    q->run.n = j->actions ? q->config.nactions : 0;
    q->run.env = (struct rec_action_env){j->data, j->decoded ? j->db : NULL, j->reason};
    q->run.done = actions_done;
    q->run.ctx = q;
    return rec_action_start(&q->run, err);
}

static int decode_done(void *ctx, int status, struct st_error *err)
{
    struct rec_jobs *q = ctx;
    struct job *j = q->queue.at[0];
    char text[128];

    j->decoded = status == 0;
    describe_status(status, text, sizeof(text));
    announce(j, q->child.text.n && j->decoded ? q->child.text.at : "");
    if (!j->decoded)
        st_log_warn("decoding failed (%s); the snapshot is whole: stalltrap decode %s", text, j->data);
    return next_step(q, err);
}

static int start_decode(struct rec_jobs *q, struct st_error *err)
{
    struct job *j = q->queue.at[0];
    int rc, in = rec_written_find(&j->file, q->config.folder, st_folder_name(j->data), REC_WRITTEN_ALL);

    if (in < 0) {
        announce(j, "");
        st_log_warn("'%s' is not decoded: it has gone, or another file has its name, which is not read",
                    j->data);
        return next_step(q, err);
    }
    q->decode = (struct rec_decode){.data = j->data,
                                    .db = j->db,
                                    .in = in,
                                    .folder = q->config.folder,
                                    .beside = j->beside,
                                    .again = j->again};
    rc = rec_child_start(&q->child, q->loop, rec_decode_run, &q->decode, true, decode_done, q, err);
    close(in);
    if (!rc)
        return 0;
    announce(j, "");
    st_log_warn("cannot decode: %s; the snapshot is whole: stalltrap decode %s", err->text, j->data);
    return next_step(q, err);
}

/* The first job's next step: what has not run yet of decode, actions, end. */
static int next_step(struct rec_jobs *q, struct st_error *err)
{
    struct job *j = q->queue.at[0];
    bool tried = j->tried;

    j->tried = true;
    if (!tried && j->again &&
        (!q->config.decode || !st_folder_holds(q->config.folder, st_folder_name(j->db))))
        return job_done(q, err); /* whoever decodes it later has all of it */
    if (!tried && q->config.decode && !j->later)
        return start_decode(q, err);
    if (!tried)
        announce(j, "");
    if (!tried && q->config.decode)
        st_log_info("not decoded, as others wait: 'stalltrap decode %s' makes its database", j->data);
    return start_actions(q, err);
}

int rec_jobs_add(struct rec_jobs *q, const char *data, const char *db, const struct rec_written *file,
                 const char *reason, unsigned flags, struct st_error *err)
{
    struct job *j = calloc(1, sizeof(*j));

    if (j) {
        j->data = strdup(data);
        j->db = strdup(db);
        j->reason = strdup(reason);
        j->file = *file;
        j->actions = flags & REC_JOB_ACTIONS;
        j->later = flags & REC_JOB_LATER;
        j->beside = flags & REC_JOB_BESIDE;
        j->again = flags & REC_JOB_AGAIN;
    }
    if (!j || !j->data || !j->db || !j->reason || st_vec_push(&q->queue, j)) {
        free_job(j);
        return st_nomem(err, "the queue of snapshots");
    }
    return 0;
}

int rec_jobs_go(struct rec_jobs *q, struct st_error *err)
{
    if (q->under_way || !q->queue.n)
        return 0;
    q->under_way = true;
    return next_step(q, err);
}

void rec_jobs_hurry(struct rec_jobs *q)
{
    for (size_t i = 0; i < q->queue.n; i++)
        q->queue.at[i]->beside = false;
    if (q->child.pid)
        rec_decode_hurry(q->child.pid);
}

size_t rec_jobs_waiting(const struct rec_jobs *q)
{
    return q->queue.n ? q->queue.n - 1 : 0;
}

/* The decoding removes the file that it has begun when it is told to end. One that had to be killed has left
 * it, and its worker, which dies of that, writes it for some moments more. */
static void stop_decoding(struct rec_jobs *q)
{
    const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
    bool runs = q->child.pid != 0;
    char prefix[NAME_MAX + 1];
    const char *name, *end;

    if (runs)
        rec_decode_hurry(q->child.pid); /* it has no long time to end */
    rec_child_stop(&q->child);
    if (!runs)
        return;
    name = q->queue.n ? st_folder_name(q->queue.at[0]->db) : NULL;
    end = name ? strrchr(name, '.') : NULL;
    if (!end || snprintf(prefix, sizeof(prefix), "%.*s", (int)(end - name + 1), name) >= (int)sizeof(prefix))
        return;
    for (int i = 0; i < MOST_MOMENTS && st_tempfile_sweep(q->config.folder, prefix); i++)
        nanosleep(&moment, NULL);
}

void rec_jobs_abandon(struct rec_jobs *q)
{
    size_t left = 0;

    stop_decoding(q);
    rec_action_stop(&q->run);
    for (size_t i = 0; i < q->queue.n; i++) {
        struct job *j = q->queue.at[i];

        if (!j->announced)
            announce(j, "");
        left += q->config.decode && !j->decoded && !j->again;
        free_job(j);
    }
    q->queue.n = 0;
    q->under_way = false;
    if (left)
        st_log_info("%zu snapshot%s not decoded: 'stalltrap decode FILE' makes the database", left,
                    left == 1 ? " was" : "s were");
}

void rec_jobs_close(struct rec_jobs *q)
{
    if (!q)
        return;
    stop_decoding(q);
    rec_action_stop(&q->run);
    for (size_t i = 0; i < q->queue.n; i++)
        free_job(q->queue.at[i]);
    st_vec_free(&q->queue);
    free(q);
}
