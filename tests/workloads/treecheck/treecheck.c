/* treecheck: compares call trees, writes them in canonical form, makes them of a log. */
#include "calltree.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: treecheck [OPTION]... canon FILE             the tree in canonical form\n"
    "       treecheck [OPTION]... flat FILE              the names of the calls in their order\n"
    "       treecheck [OPTION]... log FILE               the tree of an instrumented program's log\n"
    "       treecheck [OPTION]... compare EXPECTED FILE  exit 1 and the first difference if they differ\n"
    "FILE - is the standard input.\n"
    "  --tails keep|nested|sibling   tail calls: marked children (default), plain children, siblings\n"
    "  --without NAME                drop the calls of NAME; their children take their place\n";

#define WITHOUT_MAX 16

struct options {
    enum tails tails;
    const char *without[WITHOUT_MAX];
    size_t without_count;
};

/* The tree of a file as canonical text, which the caller frees; NULL after a message. */
static char *canonical(const struct options *options, const char *path,
                       int (*read)(struct calltree *, const char *), void (*write)(struct calltree *, FILE *))
{
    struct calltree tree = {0};
    char *text = NULL;
    size_t bytes;

    if (!read(&tree, path)) {
        FILE *out = open_memstream(&text, &bytes);
        change_tails(&tree, options->tails);
        for (size_t i = 0; i < options->without_count; i++)
            remove_calls(&tree, options->without[i]);
        if (out) {
            write(&tree, out);
            fclose(out);
        }
    }
    free_tree(&tree);
    return text;
}

static int print(char *text)
{
    if (!text)
        return 1;
    fputs(text, stdout);
    free(text);
    return fflush(stdout) ? 1 : 0;
}

static void show_difference(const char *a, const char *b)
{
    size_t line = 1;

    while (*a && *b) {
        size_t length_a = strcspn(a, "\n"), length_b = strcspn(b, "\n");
        if (length_a != length_b || memcmp(a, b, length_a))
            break;
        a += length_a + (a[length_a] != '\0');
        b += length_b + (b[length_b] != '\0');
        line++;
    }
    fprintf(stderr, "treecheck: the trees differ in line %zu of the canonical form:\n- %.*s\n+ %.*s\n", line,
            (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

static int compare(const struct options *options, const char *expected_path, const char *path)
{
    char *expected = canonical(options, expected_path, read_tree, write_tree);
    char *found = expected ? canonical(options, path, read_tree, write_tree) : NULL;
    int result = 2;

    if (found) {
        result = strcmp(expected, found) ? 1 : 0;
        if (result)
            show_difference(expected, found);
    }
    free(expected);
    free(found);
    return result;
}

static int read_tails(const char *word, enum tails *tails)
{
    static const char *const words[] = {
        [TAILS_KEEP] = "keep", [TAILS_NESTED] = "nested", [TAILS_SIBLING] = "sibling"};

    for (unsigned i = 0; i < 3; i++) {
        if (!strcmp(word, words[i])) {
            *tails = (enum tails)i;
            return 0;
        }
    }
    return -1;
}

static int read_options(struct options *options, int argc, char **argv)
{
    static const struct option names[] = {{"tails", required_argument, NULL, 't'},
                                          {"without", required_argument, NULL, 'w'},
                                          {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 't' && !read_tails(optarg, &options->tails))
            continue;
        if (option != 'w' || options->without_count == WITHOUT_MAX)
            return -1;
        options->without[options->without_count++] = optarg;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {0};

    if (!read_options(&options, argc, argv)) {
        const char *command = optind < argc ? argv[optind] : "";
        int files = argc - optind - 1;
        if (!strcmp(command, "compare") && files == 2)
            return compare(&options, argv[optind + 1], argv[optind + 2]);
        if (!strcmp(command, "canon") && files == 1)
            return print(canonical(&options, argv[optind + 1], read_tree, write_tree));
        if (!strcmp(command, "flat") && files == 1)
            return print(canonical(&options, argv[optind + 1], read_tree, write_flat));
        if (!strcmp(command, "log") && files == 1)
            return print(canonical(&options, argv[optind + 1], read_log, write_tree));
    }
    fputs(usage, stderr);
    return 2;
}
