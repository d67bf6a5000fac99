/* The lock stall: a mutex that the thread "lock-holder" keeps for MS while the worker waits for it. */
#include "log.h"
#include "stall.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lock_state {
    pthread_mutex_t mutex;
    pthread_t holder;

    /* worker to holder: take the lock; holder to worker: I have it; worker to holder: I go to wait now */
    sem_t asked, taken, waiting;
    unsigned ms;
    bool quit;
    bool has_holder;
};

/* Holds the lock for MS from when the worker is about to wait for it. */
static void hold_lock(struct lock_state *lock)
{
    pthread_mutex_lock(&lock->mutex);
    sem_post(&lock->taken);
    wait_for_post(&lock->waiting);
    sleep_until_ns(now_ns() + lock->ms * UINT64_C(1000000));
    pthread_mutex_unlock(&lock->mutex);
}

static void *lock_holder(void *arg)
{
    struct lock_state *lock = arg;

    for (;;) {
        wait_for_post(&lock->asked);
        if (lock->quit)
            return NULL;
        hold_lock(lock);
    }
}

static void wait_for_lock(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
}

static int run_lock(struct stall *stall, uint64_t *start_ns, uint64_t *end_ns)
{
    struct lock_state *lock = stall->state;

    sem_post(&lock->asked);
    wait_for_post(&lock->taken);
    *start_ns = now_ns();
    sem_post(&lock->waiting);
    wait_for_lock(&lock->mutex);
    *end_ns = now_ns();
    pthread_mutex_unlock(&lock->mutex);
    return 0;
}

static int prepare_lock(struct stall *stall, const struct stall_config *config)
{
    struct lock_state *lock = calloc(1, sizeof(*lock));

    (void)config;
    if (!lock) {
        fprintf(stderr, "forwarder: out of memory for the lock stall\n");
        return -1;
    }
    stall->state = lock;
    lock->ms = stall->ms;
    pthread_mutex_init(&lock->mutex, NULL);
    sem_init(&lock->asked, 0, 0);
    sem_init(&lock->taken, 0, 0);
    sem_init(&lock->waiting, 0, 0);
    int error = pthread_create(&lock->holder, NULL, lock_holder, lock);
    if (error) {
        fprintf(stderr, "forwarder: cannot start the lock's holder: %s\n", strerror(error));
        return -1;
    }
    pthread_setname_np(lock->holder, "lock-holder");
    lock->has_holder = true;
    return 0;
}

static void finish_lock(struct stall *stall)
{
    struct lock_state *lock = stall->state;

    if (!lock)
        return;
    if (lock->has_holder) {
        lock->quit = true;
        sem_post(&lock->asked);
        pthread_join(lock->holder, NULL);
    }
    sem_destroy(&lock->asked);
    sem_destroy(&lock->taken);
    sem_destroy(&lock->waiting);
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
    stall->state = NULL;
}

const struct stall_kind stall_kind_lock = {
    .name = "lock", .prepare = prepare_lock, .run = run_lock, .finish = finish_lock};
