/* libFuzzer: any bytes as a jit-PID.dump. */
#include "fuzz_perf_map.h"

#include "recorder/code/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_perf_map(data, size, rec_jitdump_read);
    return 0;
}
