/* libFuzzer: any bytes as /proc/kallsyms, by the recorder's reader, and as the kallsyms of a recording, by
 * the decoder's. */
#include "fuzz.h"

#include "decoder/cmd/decode_job.h"
#include "perfdata/format.h"
#include "recorder/code/kallsyms.h"

#include "base/log.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static char folder[] = "/tmp/stalltrap-fuzz.XXXXXX";

static volatile size_t sink;

static void save(const char *name, const void *bytes, size_t n)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_must(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
}

static void remove_all(void)
{
    static const char *const names[] = {"kcore_dir/kcore", "kcore_dir/kallsyms", "kcore_dir", "data", ""};
    char path[128];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        remove(path);
    }
}

/* A recording of nothing, of a kernel with some code. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct {
        struct pd_pipe_header header;

        struct perf_event_header h;

        struct perf_event_attr attr;

        uint64_t id;
    } data = {{PD_MAGIC, sizeof(data.header)},
              {.type = PD_RECORD_HEADER_ATTR, .size = sizeof(data) - sizeof(data.header)},
              {.size = sizeof(data.attr), .sample_type = PERF_SAMPLE_TIME, .sample_id_all = 1},
              1};
    struct {
        Elf64_Ehdr head;

        Elf64_Phdr segment;

        uint8_t code[64];
    } kcore = {{.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                .e_type = ET_CORE,
                .e_machine = EM_X86_64,
                .e_version = EV_CURRENT,
                .e_phoff = sizeof(kcore.head),
                .e_ehsize = sizeof(kcore.head),
                .e_phentsize = sizeof(kcore.segment),
                .e_phnum = 1},
               {.p_type = PT_LOAD,
                .p_flags = PF_R | PF_X,
                .p_offset = offsetof(__typeof__(kcore), code),
                .p_vaddr = 0xffffffff81000000,
                .p_filesz = 64,
                .p_memsz = 64},
               {0}};
    char path[128];

    (void)argc;
    (void)argv;
    st_log_level(ST_LOG_QUIET);
    fuzz_must(mkdtemp(folder) != NULL);
    atexit(remove_all);
    snprintf(path, sizeof(path), "%s/kcore_dir", folder);
    fuzz_must(!mkdir(path, 0700));
    save("data", &data, sizeof(data));
    save("kcore_dir/kcore", &kcore, sizeof(kcore));
    return 0;
}

static void look_up(struct rec_kallsyms *table)
{
    for (uint64_t at = 0xffffffff81000000; at < 0xffffffff81000000 + 4096; at += 61) {
        uint64_t start = 0;
        const char *name = rec_kallsyms_find(table, at, &start);

        fuzz_must(!name || start <= at);
        sink += name ? strlen(name) : 0;
    }
    rec_kallsyms_close(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct decode_options options = {.input = folder, .listing = DECODE_CALLS};
    struct rec_kallsyms *table;
    struct st_error err = {0};
    char path[128];

    save("kcore_dir/kallsyms", data, size);
    snprintf(path, sizeof(path), "%s/kcore_dir/kallsyms", folder);
    table = rec_kallsyms_open(path);
    if (table)
        look_up(table);
    fuzz_must(!decode_run(&options, &err) || err.text[0]);
    return 0;
}
