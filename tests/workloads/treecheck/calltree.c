/* Making, changing and writing call trees. */
#include "calltree.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *checked_realloc(void *memory, size_t count, size_t size)
{
    void *result = size && count > SIZE_MAX / size ? NULL : realloc(memory, count * size);

    if (!result) {
        fprintf(stderr, "treecheck: out of memory\n");
        exit(1);
    }
    return result;
}

static void append_child(struct call *parent, struct call *child)
{
    if (parent->count == parent->room) {
        parent->room = parent->room ? 2 * parent->room : 4;
        parent->children = checked_realloc(parent->children, parent->room, sizeof(*parent->children));
    }
    parent->children[parent->count++] = child;
}

static struct call *new_call(const char *name, size_t length, bool tail)
{
    struct call *call = checked_realloc(NULL, 1, sizeof(*call));

    *call = (struct call){.name = checked_realloc(NULL, length + 1, 1), .tail = tail};
    memcpy(call->name, name, length);
    call->name[length] = '\0';
    return call;
}

struct call *add_call(struct call *parent, const char *name, size_t name_length, bool tail)
{
    struct call *call = new_call(name, name_length, tail);

    append_child(parent, call);
    return call;
}

struct block *find_block(struct calltree *tree, const char *kind, const char *name)
{
    char head[256];

    snprintf(head, sizeof(head), "%s %s", kind, name);
    for (size_t i = 0; i < tree->count; i++)
        if (!strcmp(tree->blocks[i].head, head))
            return &tree->blocks[i];
    if (tree->count == tree->room) {
        tree->room = tree->room ? 2 * tree->room : 4;
        tree->blocks = checked_realloc(tree->blocks, tree->room, sizeof(*tree->blocks));
    }
    struct block *block = &tree->blocks[tree->count++];
    block->head = strcpy(checked_realloc(NULL, strlen(head) + 1, 1), head);
    block->root = new_call("", 0, false);
    return block;
}

void free_call(struct call *call)
{
    for (size_t i = 0; i < call->count; i++)
        free_call(call->children[i]);
    free(call->children);
    free(call->name);
    free(call);
}

void free_tree(struct calltree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        free_call(tree->blocks[i].root);
        free(tree->blocks[i].head);
    }
    free(tree->blocks);
    *tree = (struct calltree){0};
}

/* Takes the children away from CALL and gives them to the caller (who frees the array). */
static struct call **take_children(struct call *call, size_t *count)
{
    struct call **children = call->children;

    *count = call->count;
    call->children = NULL;
    call->count = call->room = 0;
    return children;
}

/* Puts CALL under PARENT again; its tail calls (and theirs) come behind it instead of below. */
static void put_back(struct call *parent, struct call *call, enum tails tails)
{
    size_t count;
    struct call **children = take_children(call, &count);

    call->tail = false;
    append_child(parent, call);
    for (size_t i = 0; i < count; i++)
        put_back(tails == TAILS_SIBLING && children[i]->tail ? parent : call, children[i], tails);
    free(children);
}

void change_tails(struct calltree *tree, enum tails tails)
{
    for (size_t i = 0; i < tree->count && tails != TAILS_KEEP; i++) {
        size_t count;
        struct call **children = take_children(tree->blocks[i].root, &count);
        for (size_t j = 0; j < count; j++)
            put_back(tree->blocks[i].root, children[j], tails);
        free(children);
    }
}

static void remove_below(struct call *parent, const char *name)
{
    size_t count;
    struct call **children = take_children(parent, &count);

    for (size_t i = 0; i < count; i++) {
        remove_below(children[i], name);
        if (strcmp(children[i]->name, name)) {
            append_child(parent, children[i]);
            continue;
        }
        for (size_t j = 0; j < children[i]->count; j++)
            append_child(parent, children[i]->children[j]);
        children[i]->count = 0;
        free_call(children[i]);
    }
    free(children);
}

void remove_calls(struct calltree *tree, const char *name)
{
    for (size_t i = 0; i < tree->count; i++)
        remove_below(tree->blocks[i].root, name);
}

static bool equal(const struct call *a, const struct call *b)
{
    if (a->tail != b->tail || a->count != b->count || strcmp(a->name, b->name))
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!equal(a->children[i], b->children[i]))
            return false;
    return true;
}

static void write_below(const struct call *parent, int depth, FILE *out)
{
    size_t same;

    for (size_t i = 0; i < parent->count; i += same) {
        const struct call *call = parent->children[i];
        for (same = 1; i + same < parent->count && equal(call, parent->children[i + same]); same++)
            ;
        fprintf(out, "%*s%s%s", 2 * depth, "", call->name, call->tail ? " [tail]" : "");
        if (same > 1)
            fprintf(out, " x%zu", same);
        fputc('\n', out);
        write_below(call, depth + 1, out);
    }
}

static int compare_heads(const void *a, const void *b)
{
    return strcmp(((const struct block *)a)->head, ((const struct block *)b)->head);
}

static void sort_blocks(struct calltree *tree)
{
    if (tree->count)
        qsort(tree->blocks, tree->count, sizeof(*tree->blocks), compare_heads);
}

void write_tree(struct calltree *tree, FILE *out)
{
    sort_blocks(tree);
    for (size_t i = 0; i < tree->count; i++) {
        if (!tree->blocks[i].root->count)
            continue;
        fprintf(out, "%s\n", tree->blocks[i].head);
        write_below(tree->blocks[i].root, 1, out);
    }
}

static void write_names(const struct call *parent, FILE *out)
{
    for (size_t i = 0; i < parent->count; i++) {
        fprintf(out, "%s\n", parent->children[i]->name);
        write_names(parent->children[i], out);
    }
}

void write_flat(struct calltree *tree, FILE *out)
{
    sort_blocks(tree);
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->count > 1)
            fprintf(out, "%s\n", tree->blocks[i].head);
        write_names(tree->blocks[i].root, out);
    }
}
