/* Runs a script of branches through the stack builder and prints the tree, for the tests of the stack
 * builder.
 *
 * A line of a script: "TIME KIND FROM TO [FLAG...]"; a place is NAME, NAME+OFFSET (decimal) or "-" (0). Calls
 * are 5 bytes long, system calls 2. A line of the tree: two blanks a level, "NAME START+DURATION self SELF
 * [FLAG...]"; "--" ends a segment. */
#ifndef ST_TEST_STACK_SCRIPT_H
#define ST_TEST_STACK_SCRIPT_H

#include "decoder/callstack/stack.h"

#include <stdbool.h>

struct script_options {
    struct dec_offcpu *offcpu;

    size_t noffcpu;

    const uint64_t *execs;

    size_t nexecs;

    uint64_t end; /* for dec_stack_finish */

    struct dec_inline_tree
        *inlined; /* in function "a" and its part a.cold, by their addresses; NULL: nothing */

    bool no_length; /* events do not carry the length of the instruction; it is asked for */
};

/* The tree as text, in a static buffer. NULL options: none. */
const char *script_run(const char *script, const struct script_options *options);

/* Counts of the last run. */
struct dec_stack_counts script_counts(void);

#endif
