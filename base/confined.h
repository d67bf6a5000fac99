/* Work on what others wrote, done by a child that has no privilege left: whatever takes it over there reaches
 * nothing, and its answer is bounded, in bytes and in time.
 *
 * The child is a fork of this process. Before it reads the first byte it gives up root, all groups and
 * capabilities, all descriptors but those that it needs, files (Landlock) and system calls (a filter); where
 * one of these but Landlock is refused it reads nothing. It is killed when it is late, and with its parent.
 * Nothing of its answer may be believed: it may come from whoever took it over.
 *
 * A struct st_confined is for one thread at a time. */
#ifndef ST_BASE_CONFINED_H
#define ST_BASE_CONFINED_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    ST_CONFINED_PATIENCE = 2000,     /* ms until an answer is there, unless told otherwise */
    ST_CONFINED_MEMORY = 1 << 30,    /* bytes beyond what this process has mapped, the same */
    ST_CONFINED_QUESTION = 64 << 10, /* bytes of a question, at most */
    ST_CONFINED_KEPT = 2,            /* descriptors that work may have */
};

/* What became of a child. */
struct st_confined_end {
    enum st_confined_how {
        ST_CONFINED_DONE,
        ST_CONFINED_NO_CHILD, /* there is none: `detail` is an errno */
        ST_CONFINED_REFUSED,  /* it could not be confined and read nothing: an errno */
        ST_CONFINED_LATE,     /* it was not done in time and was killed: the ms that it had */
        ST_CONFINED_KILLED,   /* a signal ended it: which */
        ST_CONFINED_EXITED,   /* it gave up: its exit status */
        ST_CONFINED_UNSOUND,  /* what it answered is no answer, or longer than it may be */
        ST_CONFINED_GIVEN_UP, /* so many children have failed that no more are started: how many */
    } how;

    int detail;
};

/* Fails with "cannot WHAT: the process that does this without privilege ...", and a hint. ST_ECANNOT where
 * this machine has no such child, else ST_EFAIL. */
int st_confined_fail(struct st_error *err, const struct st_confined_end *end, const char *what);

/* ---- one piece of work ---- */

struct st_confined_work {
    /* May be NULL. In the child, which has all rights yet: it opens what is to be read and puts the
     * descriptors into `keep` (-1: none), all others are closed. Returns 0, or 1: there is nothing to do, the
     * answer is empty. */
    int (*prepare)(void *ctx, int keep[ST_CONFINED_KEPT]);

    /* In the child, confined: writes its answer with st_confined_write. Returns 0 or -1. */
    int (*work)(void *ctx, int out);

    void *ctx;

    unsigned patience; /* ms; 0: ST_CONFINED_PATIENCE */

    size_t memory; /* bytes; 0: ST_CONFINED_MEMORY */

    size_t most; /* bytes of the answer */
};

/* Does it. Returns 0 and the answer, `*n` bytes at `*answer`, which is the caller's to free (NULL where it is
 * empty); or -1, and `end` says why: nothing is left then. ST_CONFINED_NO_CHILD with ENOMEM: no memory for
 * the answer. */
int st_confined_run(const struct st_confined_work *work, void **answer, size_t *n,
                    struct st_confined_end *end);

/* For the child: all of it, or -1. */
int st_confined_write(int out, const void *bytes, size_t n);

/* ---- one child for many questions ---- */

/* In the child, confined: reads the descriptor `fd` (-1: none) and `question`, and writes at most `room`
 * bytes to `answer`. Returns how many, or -1 with errno. `fd` stays its caller's. */
typedef ssize_t st_confined_fn(int fd, const void *question, size_t size, void *answer, size_t room);

/* A child, or none yet. Initialise with {0}, or with what differs from the usual. */
struct st_confined {
    unsigned patience; /* ms, of each answer; 0: ST_CONFINED_PATIENCE */

    size_t memory; /* bytes; 0: ST_CONFINED_MEMORY */

    /* Of st_confined_ask: */
    pid_t pid; /* 0: none */

    int socket;

    int failed; /* children that were not there, were ended by a question, or answered nonsense */

    bool said; /* what st_confined_say said */
};

struct st_confined_question {
    const char *what; /* for the message: "read the functions of 'FILE'" */

    st_confined_fn *fn; /* of this program */

    int fd; /* -1: none. It stays the caller's; the child gets a copy, with the rights that it has */

    const void *bytes;

    size_t size; /* at most ST_CONFINED_QUESTION */
};

/* Asks the child, which is started by the first question, and anew when it was ended by one, three times at
 * most. Returns how many bytes of at most `room` were answered; ST_ENOMEM; ST_EBADFILE: `fn` returned -1, and
 * the text has its errno; or as st_confined_fail. */
ssize_t st_confined_ask(struct st_confined *c, const struct st_confined_question *q, void *answer,
                        size_t room, struct st_error *err);

/* For questions whose answer may be missing: logs the first failure of this child as a warning, no other. */
void st_confined_say(struct st_confined *c, const struct st_error *why);

/* Ends the child, where there is one. The next question starts another. */
void st_confined_close(struct st_confined *c);

#endif
