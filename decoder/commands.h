/* The subcommands of this room (base/command.h). */
#ifndef ST_DECODER_COMMANDS_H
#define ST_DECODER_COMMANDS_H

#include "base/command.h"

st_command_fn st_cmd_decode;

/* The process that `decode` starts to do it (decoder/cmd/worker.h): not for people. */
st_command_fn st_cmd_decode_worker;

#endif
