/* A record as a line for a person: what the kinds' sentences are made of. */
#ifndef ST_TRIGGERS_RECORD_TEXT_H
#define ST_TRIGGERS_RECORD_TEXT_H

#include "triggers/trigger.h"

/* Text that is cut where its room ends. */
struct trg_out {
    char *text;

    size_t size, used;
};

void trg_put(struct trg_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* `thread 4312 "forwarder"` */
void trg_put_thread(struct trg_out *o, uint32_t tid, const char *comm);

/* " in recvfrom", or that it was in none. */
void trg_put_syscall(struct trg_out *o, const struct st_stall_record *r);

/* ", woken by ...": nothing when that is not known. */
void trg_put_waker(struct trg_out *o, const struct st_stall_record *r, trg_ksym_fn *name, void *ctx);

/* " after timer tcp_delack_timer", or nothing. */
void trg_put_timer(struct trg_out *o, const struct st_stall_record *r, trg_ksym_fn *name, void *ctx);

/* " and then 3 ms in the run queue", where that matters. */
void trg_put_run_queue(struct trg_out *o, const struct st_stall_record *r);

/* " 40.2 ms", " 40.2 ms so far" */
void trg_put_time(struct trg_out *o, const struct st_stall_record *r);

/* The value of an attribute in r->extra, or NULL. */
const char *trg_attribute(const struct st_stall_record *r, const char *key);

/* BEFORE, its value, AFTER; nothing when there is no such attribute. */
void trg_put_attribute(struct trg_out *o, const struct st_stall_record *r, const char *key,
                       const char *before, const char *after);

/* " (key=value other=value)": all of them. */
void trg_put_attributes(struct trg_out *o, const struct st_stall_record *r);

/* Adds one; nothing when it is there, or there is no room. */
void trg_add_attribute(struct st_stall_record *r, const char *key, const char *value);

/* `process PID "NAME"`, or `process PID` where /proc has no name for it (any more). */
void trg_process_text(uint32_t pid, char *text, size_t size);

#endif
