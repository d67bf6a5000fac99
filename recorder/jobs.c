/* Decoding and actions, one job at a time. */
#include "recorder/jobs.h"
#include "base/log.h"
#include "base/safetext.h"
#include "base/vec.h"
#include "recorder/child.h"
#include "recorder/decode_child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct job {
    char *data, *db, *reason;

    bool tried, decoded;
};

struct rec_jobs {
    int loop;

    struct rec_jobs_config config;

    ST_VEC(struct job *) queue;

    bool under_way; /* the first one */

    struct rec_child child;

    struct rec_decode decode;

    size_t action; /* the next one of the first job */
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
    fputs(safe, stdout);
    fflush(stdout);
    free(safe);
}

/* "wrote X.db (...)" of the decoder becomes "wrote X.data, X.db (...)"; anything else it says stays as it is.
 */
static void announce(const struct job *j, const char *decoder_says)
{
    static const char wrote[] = "wrote ";
    const char *line = strstr(decoder_says, wrote);

    if (line && (line == decoder_says || line[-1] == '\n')) {
        const char *detail = strchr(line, '(');
        size_t len = strcspn(line, "\n");

        printf("wrote ");
        print_lines(j->data);
        printf(", ");
        print_lines(j->db);
        if (detail && detail < line + len)
            printf(" %.*s", (int)(line + len - detail), detail);
        printf("\n");
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
    q->action = 0;
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

static int action_done(void *ctx, int status, struct st_error *err)
{
    struct rec_jobs *q = ctx;
    char text[80];

    if (status == 0)
        return next_step(q, err);
    describe_status(status, text, sizeof(text));
    st_log_warn("--then '%s' failed: %s%s", q->config.actions[q->action - 1], text,
                q->action < q->config.nactions ? "; the actions behind it do not run" : "");
    return job_done(q, err);
}

/* An action may go to another folder: it gets the whole path. */
static void set_path(const char *variable, const char *path)
{
    char *full = realpath(path, NULL);

    setenv(variable, full ? full : path, 1);
    free(full);
}

static void run_action(void *arg)
{
    struct rec_jobs *q = arg;
    const struct job *j = q->queue.at[0];

    set_path("STALLTRAP_DATA", j->data);
    if (j->decoded)
        set_path("STALLTRAP_DB", j->db);
    else
        unsetenv("STALLTRAP_DB");
    setenv("STALLTRAP_REASON", j->reason, 1);
    execl("/bin/sh", "sh", "-c", q->config.actions[q->action - 1], (char *)NULL);
    fprintf(stderr, "stalltrap arm: cannot run /bin/sh: %s\n", strerror(errno));
}

static int start_action(struct rec_jobs *q, struct st_error *err)
{
    int rc;

    q->action++;
    rc = rec_child_start(&q->child, q->loop, run_action, q, false, action_done, q, err);
    if (!rc)
        return 0;
    st_log_warn("--then '%s': %s", q->config.actions[q->action - 1], err->text);
    return job_done(q, err);
}

static int decode_done(void *ctx, int status, struct st_error *err)
{
    struct rec_jobs *q = ctx;
    struct job *j = q->queue.at[0];
    struct st_error why = {0};
    char text[sizeof(why.text)];

    j->decoded = status == 0;
    describe_status(status, text, sizeof(text));
    if (rec_decode_finish(&q->decode, j->decoded, &why)) {
        j->decoded = false;
        snprintf(text, sizeof(text), "%s", why.text);
    }
    announce(j, q->child.text.n && j->decoded ? q->child.text.at : "");
    if (!j->decoded)
        st_log_warn("decoding failed (%s); the snapshot is whole: stalltrap decode %s", text, j->data);
    return next_step(q, err);
}

static int start_decode(struct rec_jobs *q, struct st_error *err)
{
    struct job *j = q->queue.at[0];
    int rc = rec_decode_plan(&q->decode, j->data, j->db, err);

    if (!rc) {
        rc = rec_child_start(&q->child, q->loop, rec_decode_run, &q->decode, true, decode_done, q, err);
        if (rc)
            rec_decode_finish(&q->decode, false, NULL);
    }
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
    if (!tried && q->config.decode)
        return start_decode(q, err);
    if (!tried)
        announce(j, "");
    if (q->action < q->config.nactions)
        return start_action(q, err);
    return job_done(q, err);
}

int rec_jobs_add(struct rec_jobs *q, const char *data, const char *db, const char *reason,
                 struct st_error *err)
{
    struct job *j = calloc(1, sizeof(*j));

    if (j) {
        j->data = strdup(data);
        j->db = strdup(db);
        j->reason = strdup(reason);
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

void rec_jobs_close(struct rec_jobs *q)
{
    if (!q)
        return;
    rec_child_stop(&q->child);
    rec_decode_finish(&q->decode, false, NULL);
    for (size_t i = 0; i < q->queue.n; i++)
        free_job(q->queue.at[i]);
    st_vec_free(&q->queue);
    free(q);
}
