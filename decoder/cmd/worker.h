/* `decode` in two processes. What others wrote (recordings, code files, their DWARF) is parsed by the worker,
 * which may do nothing but compute, read what it is given and write the database it is given. The process
 * that was started opens files for it, and gives the database its name when the worker has ended well. */
#ifndef ST_DECODER_CMD_WORKER_H
#define ST_DECODER_CMD_WORKER_H

#include "base/infile.h"
#include "decoder/cmd/decode_job.h"

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/* What the worker asks for. */
enum dec_request_kind {
    DEC_ASK_FILE,  /* path, kind -> a descriptor */
    DEC_ASK_OUT,   /* -> the file that becomes the database */
    DEC_ASK_SPILL, /* -> a file without a name, in the folder of the database */
    DEC_TELL,      /* path is a line to print when the database has its name; no answer */
    DEC_DENIED,    /* `number` is the system call that ended the worker; no answer */
};

struct dec_request {
    enum dec_request_kind what;

    enum st_infile_kind kind;

    int32_t number;

    char path[PATH_MAX];
};

/* `error` is an errno, or 0 and a descriptor comes with it. */
struct dec_reply {
    int32_t error;
};

/* The worker's end of the socket. */
enum { DEC_WORKER_FD = 3 };

/* ---- the process that was started (serve.c) ---- */

/* Starts a worker with the words of the command line, serves it until it ends, and brings the database to its
 * name. Returns the exit status. */
int dec_serve(const struct decode_options *options, char **argv);

/* ---- what the worker says (says.c): its stderr is a pipe to the process that was started ---- */

struct dec_says {
    int fd; /* -1: none, or it has ended */

    size_t n;

    char text[4096]; /* not printed yet */
};

/* Returns the end that the worker writes to, which is the caller's, or ST_EFAIL. */
int dec_says_open(struct dec_says *s, struct st_error *err);

/* Prints on stderr what has come: the worker may be in the hands of who made the file, so that what a
 * terminal would obey is escaped, but for the line of progress. `ended`: all of it, without waiting for more.
 * Returns whether more may come. */
bool dec_says_print(struct dec_says *s, bool ended);

void dec_says_close(struct dec_says *s);

/* ---- what the worker takes (worker_usage.c) ---- */

enum {
    DEC_MOST_FILES = 8, /* that it writes: the database, and what has no room in memory */

    DEC_MOST_PROCESSES = 64, /* it needs two beside itself */
};

enum dec_excess { DEC_WITHIN, DEC_TOO_MUCH_MEMORY, DEC_TOO_MUCH_DISK, DEC_TOO_MANY_PROCESSES };

/* Of the worker and its children, and theirs, together. */
struct dec_usage {
    pid_t worker; /* the leader of their process group; 0: not started */

    uint64_t memory, disk; /* the most bytes */

    int files[DEC_MOST_FILES]; /* that it writes */

    unsigned nfiles;
};

/* The most bytes of disk that a worker with these options may take beside the folder or file `folder` (-1:
 * none). */
uint64_t dec_usage_disk(const struct decode_options *options, int folder);

/* The worker is given `fd` to write to, which stays the caller's. 0, or -1 with errno: EDQUOT where it has as
 * many as it may. */
int dec_usage_file(struct dec_usage *u, int fd);

/* The worker was started. */
void dec_usage_begin(struct dec_usage *u, pid_t worker);

/* Whether they take more than they may. */
enum dec_excess dec_usage_look(const struct dec_usage *u);

/* Ends all of them. The worker must not have been waited for: its number is theirs. */
void dec_usage_kill(const struct dec_usage *u);

void dec_usage_end(struct dec_usage *u);

/* ---- the worker (ask.c) ---- */

/* From now on what this process opens is asked for. */
void dec_ask_begin(void);

/* A descriptor of DEC_ASK_OUT or DEC_ASK_SPILL, the caller's, or -1 with errno. */
int dec_ask(enum dec_request_kind what);

/* The line that is printed when the database has its name. */
void dec_tell(const char *line);

/* ---- what the worker may do (sandbox.c) ---- */

/* Limits of the kernel for a worker with these options, and `disk` bytes of disk, which the calling process,
 * about to become it, takes on. */
void dec_limit(const struct decode_options *options, uint64_t disk);

/* More bytes of files than anything decodes to; less where the user has a limit of the size of files. */
uint64_t dec_disk(const struct decode_options *options);

/* Bytes of memory that the worker and its children may use together. */
uint64_t dec_memory(const struct decode_options *options);

/* Gives up, for ever, what the worker does not need: user, capabilities, name spaces, files, system calls.
 * ST_ECANNOT: this machine lets nothing be given up that counts. */
int dec_enter_sandbox(struct st_error *err);

/* The system calls' filter alone (filter.c); as dec_enter_sandbox. */
int dec_filter_calls(struct st_error *err);

#endif
