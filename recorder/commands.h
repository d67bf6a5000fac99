/* The subcommands of this room (base/command.h). */
#ifndef ST_RECORDER_COMMANDS_H
#define ST_RECORDER_COMMANDS_H

#include "base/command.h"

st_command_fn st_cmd_arm;
st_command_fn st_cmd_snap;
st_command_fn st_cmd_watch;
st_command_fn st_cmd_doctor;

#endif
