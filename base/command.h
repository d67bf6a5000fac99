/* Subcommands: main() holds their table, each room declares its own in ROOM/commands.h. */
#ifndef ST_BASE_COMMAND_H
#define ST_BASE_COMMAND_H

/* argv[0] is the subcommand's name. Returns the exit status (see the manual page stalltrap(1)). */
typedef int st_command_fn(int argc, char **argv);

struct st_command {
    const char *name;

    st_command_fn *run;

    const char *synopsis;

    const char *summary; /* one line */
};

#endif
