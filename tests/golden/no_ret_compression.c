/* Linked into the program for tests: the step source writes every return as a TIP packet. */
#include "recorder/sources/step/step.h"

__attribute__((constructor)) static void switch_off(void)
{
    step_no_ret_compression = true;
}
