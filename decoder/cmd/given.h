/* The snapshot, its folder of code and the database. Whoever names them on the command line means their
 * paths. `arm` hands over descriptors of the snapshot and of the folder, since others may own what the path
 * leads through: then nothing is looked up but names in that folder, following no link, and paths are for
 * messages. */
#ifndef ST_DECODER_CMD_GIVEN_H
#define ST_DECODER_CMD_GIVEN_H

#include "base/infile.h"
#include "base/outfile.h"
#include "decoder/cmd/decode_job.h"

/* Opens the input for reading: as st_infile_open. */
int dec_given_input(const struct decode_options *o, enum st_infile_kind kind);

/* Looks at the input, and at what has the name of the output: 0, or -1 with errno. */
int dec_given_stat_input(const struct decode_options *o, struct stat *st);
int dec_given_stat_output(const struct decode_options *o, struct stat *st);

/* Starts the output: as st_outfile_open. */
int dec_given_output(const struct decode_options *o, struct st_outfile *out, struct st_error *err);

/* Opens the folder PREFIX.N.code beside a snapshot PREFIX.N.data, and tells the absolute name that the
 * snapshot has for it. Returns a descriptor, the caller's, or -1: there is none. */
int dec_given_code(const struct decode_options *o, char name[PATH_MAX]);

#endif
