/* Reading a call tree from its text. */
#include "calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 1024

struct reader {
    struct calltree *tree;

    /* the last call at each depth up to depth, and how often it is to be there; [0] is the block's root */
    struct call *path[DEPTH_MAX];
    size_t repeat[DEPTH_MAX];
    size_t depth;
};

/* Cuts " xN" and " [tail]" off the end of NAME. Returns the number of calls, 0 if the line makes no sense. */
static size_t cut_marks(char *name, bool *tail)
{
    size_t repeat = 1;
    char *mark = strrchr(name, ' ');

    if (mark && mark[1] == 'x' && mark[2] >= '1' && mark[2] <= '9') {
        char *end;
        repeat = strtoul(mark + 2, &end, 10);
        if (*end || repeat > 10000000)
            return 0;
        *mark = '\0';
    }
    size_t length = strlen(name);
    *tail = length > 7 && !strcmp(name + length - 7, " [tail]");
    if (*tail)
        name[length - 7] = '\0';
    return *name && !strchr(name, ' ') ? repeat : 0;
}

static struct call *copy_call(struct call *parent, const struct call *call)
{
    struct call *copy = add_call(parent, call->name, strlen(call->name), call->tail);

    for (size_t i = 0; i < call->count; i++)
        copy_call(copy, call->children[i]);
    return copy;
}

/* Ends the calls deeper than DEPTH: a folded call is repeated now that its children are known. */
static void close_calls(struct reader *reader, size_t depth)
{
    while (reader->depth > depth) {
        struct call *call = reader->path[reader->depth];
        struct call *parent = reader->path[reader->depth - 1];
        for (size_t i = 1; i < reader->repeat[reader->depth]; i++)
            copy_call(parent, call);
        reader->depth--;
    }
}

/* Returns NULL, or what is wrong with the line. */
static const char *read_line(struct reader *reader, char *line)
{
    size_t spaces = strspn(line, " "), depth = spaces / 2;
    bool tail;

    if (!spaces) {
        char *name = strchr(line, ' ');
        if (!name || (strncmp(line, "thread ", 7) && strncmp(line, "stack ", 6)))
            return "a block must begin with 'thread NAME' or 'stack NAME'";
        close_calls(reader, 0);
        *name++ = '\0';
        struct block *block = find_block(reader->tree, line, name);
        reader->path[0] = block->root;
        return block->root->count ? "this block has been before" : NULL;
    }
    if (!reader->path[0])
        return "a call before the first block";
    if (spaces % 2 || depth > reader->depth + 1 || depth >= DEPTH_MAX)
        return "the indent fits no call above";
    close_calls(reader, depth - 1);
    size_t repeat = cut_marks(line + spaces, &tail);
    if (!repeat)
        return "must be 'NAME', 'NAME [tail]', 'NAME xN' or 'NAME [tail] xN'";
    reader->path[depth] = add_call(reader->path[depth - 1], line + spaces, strlen(line + spaces), tail);
    reader->repeat[depth] = repeat;
    reader->depth = depth;
    return NULL;
}

int read_tree(struct calltree *tree, const char *path)
{
    static struct reader reader;
    FILE *file = strcmp(path, "-") ? fopen(path, "r") : stdin;
    char *line = NULL;
    const char *wrong = NULL;
    size_t room = 0, number = 0;
    ssize_t length;

    if (!file) {
        fprintf(stderr, "treecheck: cannot open %s: %s\n", path, strerror(errno));
        return -1;
    }
    reader = (struct reader){.tree = tree};
    while (!wrong && (length = getline(&line, &room, file)) >= 0) {
        number++;
        while (length && (line[length - 1] == '\n' || line[length - 1] == ' '))
            line[--length] = '\0';
        if (length)
            wrong = read_line(&reader, line);
    }
    close_calls(&reader, 0);
    if (wrong)
        fprintf(stderr, "treecheck: %s:%zu: %s\n", path, number, wrong);
    free(line);
    if (file != stdin)
        fclose(file);
    return wrong ? -1 : 0;
}
