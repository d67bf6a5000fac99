# guest_program.sh PROGRAM ARG...: runs a program in the machine as a test.
exec "$@"
