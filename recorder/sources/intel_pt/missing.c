/* Why a machine has no intel_pt PMU. */
#include "recorder/sources/intel_pt/missing.h"

#include <stdio.h>
#include <string.h>

static bool has_word(const char *line, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = line; (at = strstr(at, word)); at += len)
        if ((at == line || at[-1] == ' ' || at[-1] == '\t') &&
            (at[len] == ' ' || at[len] == '\n' || !at[len]))
            return true;
    return false;
}

struct pt_cpu pt_cpu_read(const char *path)
{
    FILE *f = fopen(path, "re");
    struct pt_cpu cpu = {.vendor = "unknown"};
    char line[8192];

    while (f && fgets(line, sizeof(line), f) && strcmp(line, "\n") != 0) {
        sscanf(line, "vendor_id : %31s", cpu.vendor);
        if (!strncmp(line, "flags", 5)) {
            cpu.guest = has_word(line, "hypervisor");
            cpu.has_pt = has_word(line, "intel_pt");
        }
    }
    if (f)
        fclose(f);
    return cpu;
}

struct pt_missing pt_why_missing(const struct pt_cpu *cpu)
{
    const char *guest = cpu->guest ? ", in a virtual machine" : "";
    struct pt_missing m = {.why = ""};

    if (strcmp(cpu->vendor, "GenuineIntel") != 0) {
        snprintf(m.why, sizeof(m.why), "the processor is no Intel one (%s%s)", cpu->vendor, guest);
        m.advice = "record on a machine with an Intel processor, or use another source";
    } else if (cpu->has_pt) {
        snprintf(m.why, sizeof(m.why), "the processor has it%s, but the kernel offers no intel_pt PMU",
                 guest);
        m.advice = "it may be disabled by the firmware, or kept for virtual machines (kvm_intel pt_mode=1)";
    } else if (cpu->guest) {
        snprintf(m.why, sizeof(m.why),
                 "a guest without Intel PT: the virtual machine's processor does not "
                 "show it");
        m.advice = "record on the host, have the host pass it through (kvm_intel pt_mode=1), or use another "
                   "source";
    } else {
        snprintf(m.why, sizeof(m.why), "the processor does not have it");
        m.advice = "Intel Core from the fifth, Atom from Goldmont, Xeon from Broadwell have it";
    }
    return m;
}
