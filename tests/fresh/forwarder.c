/* The program that the documents' examples name: a loop that waits for work and has the functions they ask
 * for. */
#define PROBE_PROVIDER "app"
#define PROBE_NAME     "request_start"
#include "probe_note.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void foo_lock(int a, int b);
void foo_beat(int a);

static volatile unsigned long work;

__attribute__((noinline)) void pump(void)
{
    char *room = malloc(4096);

    if (!room)
        abort();
    memset(room, 1, 4096);
    for (int i = 0; i < 200000; i++)
        work += (unsigned char)room[i % 4096];
    free(room);
}

__attribute__((noinline)) void heartbeat(void)
{
    foo_beat(1);
    work++;
}

__attribute__((noinline)) void wait_for_answer(void)
{
    poll(NULL, 0, 1);
    work++;
}

__attribute__((noinline)) void handle_request(void)
{
    probe(1);
    foo_lock(1, 3);
    pump();
    wait_for_answer();
    if (write(2, "handled\n", 8) < 0)
        abort();
}

int main(void)
{
    for (;;) {
        poll(NULL, 0, 5);
        heartbeat();
        handle_request();
    }
}
