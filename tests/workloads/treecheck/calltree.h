/* Call trees as text: blocks of calls, one a thread or a stack. The format is told in ../README.md. */
#ifndef TREECHECK_CALLTREE_H
#define TREECHECK_CALLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct call {
    char *name;

    /* entered by a jump of its parent, which is gone then */
    bool tail;
    struct call **children;
    size_t count, room;
};

struct block {
    /* "thread NAME" or "stack NAME" */
    char *head;

    /* no call itself; its children are the block's outermost calls */
    struct call *root;
};

struct calltree {
    struct block *blocks;
    size_t count, room;
};

/* What to do with calls that are marked [tail]. */
enum tails {
    /* as it stands: a child of the caller, marked */
    TAILS_KEEP,

    /* a child of the caller like any other */
    TAILS_NESTED,

    /* the next sibling of the caller, not marked: what a stack without knowledge of tail calls shows */
    TAILS_SIBLING,
};

/* All functions end the program with a message when memory runs out: this is a tool of the tests. */

void *checked_realloc(void *memory, size_t count, size_t size);

/* Adds a call as the last child of PARENT, which owns it. NAME is copied. */
struct call *add_call(struct call *parent, const char *name, size_t name_length, bool tail);

/* The block with the head "KIND NAME", added if there is none. */
struct block *find_block(struct calltree *tree, const char *kind, const char *name);

/* Frees a call that is nobody's child, and all below it. */
void free_call(struct call *call);

void free_tree(struct calltree *tree);

/* Reads a tree. Returns 0, or -1 after a message that names the file and the line. */
int read_tree(struct calltree *tree, const char *path);

/* Makes the tree of a log of programs/tree_log.c. Returns 0, or -1 after a message with the file and the
 * line. */
int read_log(struct calltree *tree, const char *path);

void change_tails(struct calltree *tree, enum tails tails);

/* Removes every call of NAME; its children take its place. */
void remove_calls(struct calltree *tree, const char *name);

/* Writes the canonical form: blocks in the order of their heads, equal neighbours folded as "NAME xN". */
void write_tree(struct calltree *tree, FILE *out);

/* Writes the names alone, in the order of the calls, nothing folded. */
void write_flat(struct calltree *tree, FILE *out);

#endif
