/* The worker's stderr, on its way to ours. */
#include "decoder/cmd/worker.h"

#include "base/safetext.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How many bytes at the beginning of `s` may be shown as they are: text, and what draws the line of progress
 * (base/progress.h). 0: the first byte may not. */
static size_t harmless(const char *s, size_t n)
{
    static const char clear[] = "\033[K";
    uint32_t cp = 0;
    size_t len;

    if (*s == '\n' || *s == '\r' || *s == '\t')
        return 1;
    if (n >= sizeof(clear) - 1 && !memcmp(s, clear, sizeof(clear) - 1))
        return sizeof(clear) - 1;
    len = st_utf8_decode(s, n, &cp);
    return len && st_cp_printable(cp) ? len : 0;
}

/* Whether what follows may make something of it that is harmless. */
static bool is_cut(const char *s, size_t n)
{
    return n < 4 && (*s == '\033' || (unsigned char)*s >= 0xc0);
}

static bool put(const char *text, size_t n)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    ssize_t done = 0;

    sigaction(SIGPIPE, &ignore, &before);
    while (n && (done >= 0 || errno == EINTR)) {
        done = write(STDERR_FILENO, text, n);
        if (done > 0) {
            text += done;
            n -= (size_t)done;
        }
    }
    sigaction(SIGPIPE, &before, NULL);
    return done >= 0;
}

/* Prints all of the text but, unless it has ended, a beginning of something at its end. */
static bool print(struct dec_says *s, bool ended)
{
    char out[4 * sizeof(s->text) + 1];
    size_t at = 0, n = 0;

    while (at < s->n) {
        size_t len = harmless(s->text + at, s->n - at);

        if (!len && !ended && is_cut(s->text + at, s->n - at))
            break;
        if (len)
            memcpy(out + n, s->text + at, len);
        else
            snprintf(out + n, 5, "\\x%02x", (unsigned char)s->text[at]);
        n += len ? len : 4;
        at += len ? len : 1;
    }
    memmove(s->text, s->text + at, s->n - at);
    s->n -= at;
    return put(out, n);
}

int dec_says_open(struct dec_says *s, struct st_error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return st_fail_errno(err, ST_EFAIL, "cannot make a pipe");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    s->fd = ends[0];
    return ends[1];
}

bool dec_says_print(struct dec_says *s, bool ended)
{
    ssize_t n = 1;

    while (s->fd >= 0 && n > 0) {
        n = read(s->fd, s->text + s->n, sizeof(s->text) - s->n);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            s->n += (size_t)n;
        if (!print(s, n == 0 || (ended && n < 0)) || n == 0)
            dec_says_close(s);
        if (!ended)
            break;
    }
    return s->fd >= 0;
}

void dec_says_close(struct dec_says *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
