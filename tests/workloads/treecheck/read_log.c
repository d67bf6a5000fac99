/* Making a call tree of the log that an instrumented program wrote (programs/tree_log.c has the format). */
#include "calltree.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A call that has not returned, as far as the log tells. */
struct frame {
    struct call *call;

    /* its frame pointer: lower is deeper, on one stack */
    uint64_t pointer;

    /* on the stack for signal handlers */
    bool on_handler_stack;
};

struct frames {
    struct frame *list;
    size_t count, room;
};

/* A stack that the program made itself. */
struct own_stack {
    char name[64];
    uint64_t base, bytes;
    struct frames frames;
    struct call *root;
};

#define OWN_STACKS_MAX 8

struct thread {
    int tid;

    /* the last it had */
    char name[64];
    struct frames frames;
    struct call *root;
    struct own_stack own[OWN_STACKS_MAX];
    size_t own_count;
};

struct threads {
    struct thread **list;
    size_t count;
};

static struct thread *find_thread(struct threads *threads, int tid)
{
    for (size_t i = 0; i < threads->count; i++)
        if (threads->list[i]->tid == tid)
            return threads->list[i];
    threads->list = checked_realloc(threads->list, threads->count + 1, sizeof(*threads->list));
    struct thread *thread = checked_realloc(NULL, 1, sizeof(*thread));
    *thread = (struct thread){.tid = tid, .root = checked_realloc(NULL, 1, sizeof(struct call))};
    *thread->root = (struct call){0};
    threads->list[threads->count++] = thread;
    return thread;
}

static void add_own_stack(struct thread *thread, uint64_t base, uint64_t bytes, const char *name)
{
    if (thread->own_count == OWN_STACKS_MAX)
        return;
    struct own_stack *own = &thread->own[thread->own_count++];
    *own = (struct own_stack){
        .base = base, .bytes = bytes, .root = checked_realloc(NULL, 1, sizeof(struct call))};
    *own->root = (struct call){0};
    snprintf(own->name, sizeof(own->name), "%s", name);
}

static struct own_stack *stack_of(struct thread *thread, uint64_t pointer)
{
    for (size_t i = 0; i < thread->own_count; i++)
        if (pointer - thread->own[i].base < thread->own[i].bytes)
            return &thread->own[i];
    return NULL;
}

/* Drops the calls that are over though they never returned (longjmp, exceptions): a new frame that is not
 * deeper than theirs stands where they stood; and one on the thread's stack ends all on the stack for
 * handlers. */
static void drop_overwritten(struct frames *frames, uint64_t pointer, bool on_handler_stack)
{
    while (frames->count) {
        const struct frame *top = &frames->list[frames->count - 1];
        if (top->on_handler_stack == on_handler_stack ? top->pointer > pointer : on_handler_stack)
            return;
        frames->count--;
    }
}

static void enter(struct thread *thread, uint64_t pointer, const char *name)
{
    struct own_stack *own = stack_of(thread, pointer);
    bool on_handler_stack = own && !strcmp(own->name, "-");
    bool separate = own && !on_handler_stack;
    struct frames *frames = separate ? &own->frames : &thread->frames;
    struct call *parent = separate ? own->root : thread->root;

    drop_overwritten(frames, pointer, on_handler_stack);
    if (frames->count)
        parent = frames->list[frames->count - 1].call;
    if (frames->count == frames->room) {
        frames->room = frames->room ? 2 * frames->room : 16;
        frames->list = checked_realloc(frames->list, frames->room, sizeof(*frames->list));
    }
    frames->list[frames->count++] = (struct frame){.call = add_call(parent, name, strlen(name), false),
                                                   .pointer = pointer,
                                                   .on_handler_stack = on_handler_stack};
}

static void leave(struct thread *thread, uint64_t pointer, const char *name)
{
    struct own_stack *own = stack_of(thread, pointer);
    struct frames *frames = own && strcmp(own->name, "-") ? &own->frames : &thread->frames;

    for (size_t i = frames->count; i-- > 0;) {
        if (frames->list[i].pointer == pointer && !strcmp(frames->list[i].call->name, name)) {
            frames->count = i;
            return;
        }
    }
}

static int read_event(struct threads *threads, const char *line)
{
    char kind, name[64], function[256];
    int tid;
    unsigned long pointer;

    if (sscanf(line, "%c %d %lx %63s %255s", &kind, &tid, &pointer, name, function) != 5)
        return -1;
    struct thread *thread = find_thread(threads, tid);
    if (kind == 'S') {
        add_own_stack(thread, pointer, strtoul(name, NULL, 16), function);
        return 0;
    }
    strcpy(thread->name, name);
    if (kind == 'E')
        enter(thread, pointer, function);
    else if (kind == 'X')
        leave(thread, pointer, function);
    else if (kind == 'N')
        thread->frames.count = 0;
    else
        return -1;
    return 0;
}

/* Gives the calls to the tree's block; the root itself is not needed any more. */
static int move_calls(struct calltree *tree, const char *kind, const char *name, struct call *root)
{
    struct block *block = root->count ? find_block(tree, kind, name) : NULL;

    if (block && block->root->count) {
        fprintf(stderr, "treecheck: two blocks are called '%s %s'\n", kind, name);
        return -1;
    }
    if (block) {
        block->root->children = root->children;
        block->root->count = root->count;
        block->root->room = root->room;
        *root = (struct call){0};
    }
    return 0;
}

static int finish_thread(struct calltree *tree, struct thread *thread)
{
    int result = move_calls(tree, "thread", thread->name, thread->root);

    free_call(thread->root);
    free(thread->frames.list);
    for (size_t i = 0; i < thread->own_count; i++) {
        result |= move_calls(tree, "stack", thread->own[i].name, thread->own[i].root);
        free_call(thread->own[i].root);
        free(thread->own[i].frames.list);
    }
    free(thread);
    return result;
}

int read_log(struct calltree *tree, const char *path)
{
    struct threads threads = {0};
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, number = 0;
    int result = 0;

    if (!file) {
        fprintf(stderr, "treecheck: cannot open %s: %s\n", path, strerror(errno));
        return -1;
    }
    while (!result && getline(&line, &room, file) >= 0) {
        number++;
        result = read_event(&threads, line);
    }
    if (result)
        fprintf(stderr, "treecheck: %s:%zu: no line of a log\n", path, number);
    for (size_t i = 0; i < threads.count; i++)
        result |= finish_thread(tree, threads.list[i]);
    free(threads.list);
    free(line);
    fclose(file);
    return result;
}
