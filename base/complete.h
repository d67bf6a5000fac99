/* What may stand next on a command line, for the shells. `stalltrap complete WORD...` asks for what the last
 * word may become; the options' tables answer, so nothing is written down twice. */
#ifndef ST_BASE_COMPLETE_H
#define ST_BASE_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

/* The word that is being written. */
struct st_completion {
    const char *whole; /* the word so far, without the shell's quotes */

    const char *text; /* points into `whole`: the part that is looked for, as behind "--format=" */

    int operand; /* how many operands stand before it */

    bool dashes; /* it stands behind "--" */

    int command; /* behind "--": where the command's first word stands among all; the program's name is 0 */
};

/* Names words that may stand there, by the functions below. */
typedef void st_complete_fn(struct st_completion *c);

/* A subcommand's table of what its arguments may be. */
struct st_completer {
    const char *option; /* without the dashes; NULL: the operands */

    st_complete_fn *fn; /* NULL ends the table */
};

/* Prints "WORD<tab>ABOUT" where WORD begins with c->text; `about` may be NULL. A word that holds control
 * characters is left out. No blank follows a word that ends in one of ":>=/". */
void st_complete_word(struct st_completion *c, const char *word, const char *about);

/* A copy of c that looks only for what stands behind the last of `separators` in c->text. */
struct st_completion st_complete_behind(const struct st_completion *c, const char *separators);

/* Files that the shell knows to list; `suffix` as ".db", "": all. */
void st_complete_files(const char *suffix);

/* Folders, as above. */
void st_complete_folders(void);

/* A command and its arguments, which the shell completes as if they stood alone. */
void st_complete_command(const struct st_completion *c);

/* Completers: processes that are no kernel threads (several with commas), their names, cgroups of version 2,
 * containers by name and by id, the processes or the command of TARGET, and trace databases as the first
 * operand. */
void st_complete_pids(struct st_completion *c);
void st_complete_comms(struct st_completion *c);
void st_complete_cgroups(struct st_completion *c);
void st_complete_containers(struct st_completion *c);
void st_complete_target(struct st_completion *c);
void st_complete_trace(struct st_completion *c);

/* From here on st_opt_parse answers for words[0..n), which follow the subcommand's name, and returns 0. */
void st_complete_begin(int n, char **words);

struct st_opt_usage;
struct st_option;

/* For st_opt_parse: whether st_complete_begin was called; and the answer, to stdout. */
bool st_completing(void);
void st_complete_options(const struct st_opt_usage *usage, const struct st_option *table);

#endif
