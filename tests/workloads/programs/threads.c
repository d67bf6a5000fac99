/* Four threads at the same time, each with a name and a tree of its own, joined by main. */
#include "tree.h"

#include <pthread.h>
#include <stddef.h>

static pthread_barrier_t all_here;

OWN void shared_leaf(void)
{
    WORK();
}

OWN void alpha_inner(void)
{
    shared_leaf();
    shared_leaf();
}

OWN void alpha(void)
{
    for (int i = 0; i < 3; i++)
        alpha_inner();
}

OWN void beta(unsigned depth)
{
    shared_leaf();
    if (depth)
        beta(depth - 1);
}

OWN void gamma_third(void)
{
    shared_leaf();
    WORK();
}

OWN void gamma_second(void)
{
    gamma_third();
    WORK();
}

OWN void gamma_first(void)
{
    gamma_second();
    WORK();
}

OWN void delta(void)
{
    WORK();
}

/* The barrier lets the trees run at the same time. */
OWN void *alpha_thread(void *arg)
{
    pthread_barrier_wait(&all_here);
    alpha();
    return arg;
}

OWN void *beta_thread(void *arg)
{
    pthread_barrier_wait(&all_here);
    beta(3);
    return arg;
}

OWN void *gamma_thread(void *arg)
{
    pthread_barrier_wait(&all_here);
    gamma_first();
    gamma_first();
    return arg;
}

OWN void *delta_thread(void *arg)
{
    pthread_barrier_wait(&all_here);
    for (int i = 0; i < 100; i++)
        delta();
    return arg;
}

OWN int start_all(pthread_t *threads)
{
    static void *(*const bodies[])(void *) = {alpha_thread, beta_thread, gamma_thread, delta_thread};
    static const char *const names[] = {"alpha", "beta", "gamma", "delta"};

    for (int i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, bodies[i], NULL))
            return -1;
        pthread_setname_np(threads[i], names[i]);
    }
    return 0;
}

OWN void join_all(pthread_t *threads)
{
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    pthread_t threads[4];

    /* main takes part, so that no thread's tree runs before all have their names */
    pthread_barrier_init(&all_here, NULL, 5);
    if (start_all(threads))
        return 1;
    pthread_barrier_wait(&all_here);
    join_all(threads);
    pthread_barrier_destroy(&all_here);
    return 0;
}
