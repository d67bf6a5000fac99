/* The subcommands of this room (base/command.h). */
#ifndef ST_VIEWER_COMMANDS_H
#define ST_VIEWER_COMMANDS_H

#include "base/command.h"

st_command_fn st_cmd_view;
st_command_fn st_cmd_query;
st_command_fn st_cmd_report;
st_command_fn st_cmd_export;

#endif
