/* libFuzzer: any bytes as a perf-PID.map. */
#include "fuzz_perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_perf_map(data, size, rec_perf_map_read);
    return 0;
}
