/* The names of record types, for messages. */
#include "perfdata/reader.h"

#include <string.h>

static const char *const kernel_names[] = {
    [PERF_RECORD_MMAP] = "MMAP",
    [PERF_RECORD_LOST] = "LOST",
    [PERF_RECORD_COMM] = "COMM",
    [PERF_RECORD_EXIT] = "EXIT",
    [PERF_RECORD_THROTTLE] = "THROTTLE",
    [PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
    [PERF_RECORD_FORK] = "FORK",
    [PERF_RECORD_READ] = "READ",
    [PERF_RECORD_SAMPLE] = "SAMPLE",
    [PERF_RECORD_MMAP2] = "MMAP2",
    [PERF_RECORD_AUX] = "AUX",
    [PERF_RECORD_ITRACE_START] = "ITRACE_START",
    [PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
    [PERF_RECORD_SWITCH] = "SWITCH",
    [PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
    [PERF_RECORD_NAMESPACES] = "NAMESPACES",
    [PERF_RECORD_KSYMBOL] = "KSYMBOL",
    [PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
    [PERF_RECORD_CGROUP] = "CGROUP",
    [PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
    [PERF_RECORD_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
};

static const char *const user_names[] = {
    [PD_RECORD_HEADER_ATTR - 64] = "HEADER_ATTR",
    [PD_RECORD_HEADER_EVENT_TYPE - 64] = "HEADER_EVENT_TYPE",
    [PD_RECORD_HEADER_TRACING_DATA - 64] = "HEADER_TRACING_DATA",
    [PD_RECORD_HEADER_BUILD_ID - 64] = "HEADER_BUILD_ID",
    [PD_RECORD_FINISHED_ROUND - 64] = "FINISHED_ROUND",
    [PD_RECORD_ID_INDEX - 64] = "ID_INDEX",
    [PD_RECORD_AUXTRACE_INFO - 64] = "AUXTRACE_INFO",
    [PD_RECORD_AUXTRACE - 64] = "AUXTRACE",
    [PD_RECORD_AUXTRACE_ERROR - 64] = "AUXTRACE_ERROR",
    [PD_RECORD_THREAD_MAP - 64] = "THREAD_MAP",
    [PD_RECORD_CPU_MAP - 64] = "CPU_MAP",
    [PD_RECORD_STAT_CONFIG - 64] = "STAT_CONFIG",
    [PD_RECORD_STAT - 64] = "STAT",
    [PD_RECORD_STAT_ROUND - 64] = "STAT_ROUND",
    [PD_RECORD_EVENT_UPDATE - 64] = "EVENT_UPDATE",
    [PD_RECORD_TIME_CONV - 64] = "TIME_CONV",
    [PD_RECORD_HEADER_FEATURE - 64] = "HEADER_FEATURE",
    [PD_RECORD_COMPRESSED - 64] = "COMPRESSED",
    [PD_RECORD_FINISHED_INIT - 64] = "FINISHED_INIT",
    [PD_RECORD_COMPRESSED2 - 64] = "COMPRESSED2",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *pd_record_name(uint32_t type)
{
    const char *name = NULL;

    if (type < COUNT(kernel_names))
        name = kernel_names[type];
    else if (type >= 64 && type - 64 < COUNT(user_names))
        name = user_names[type - 64];
    return name ? name : "?";
}
