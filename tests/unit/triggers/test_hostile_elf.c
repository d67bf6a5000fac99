/* What a small ELF file tells, and that a damaged one tells less and no more: cut at each length, each byte
 * of its headers changed, with more sections than it has bytes, with sections of a terabyte, and where
 * something else stands in its place. */
#include "triggers/elf_read.h"
#include "triggers/functions.h"
#include "triggers/golang.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE = 200000 /* ms */, ADDRESS = 0x401000, DATA = 0x402000 };

#define ARGUMENTS "-4@$-7 8@%rbx 2@-12(%rbp) -1@(%rax)"

struct probe_note {
    Elf64_Nhdr head;

    char owner[8];

    uint64_t address, base, semaphore;

    char texts[56];
} __attribute__((packed));

/* Code at ADDRESS, data at DATA, from the same bytes of the file on. */
static struct small {
    Elf64_Ehdr head;

    Elf64_Phdr segments[2];

    char code[64];

    Elf64_Sym symbols[3];

    char strings[32];

    struct probe_note note;

    char names[64];

    Elf64_Shdr sections[6];
} whole;

static char path[] = "/tmp/hostile-elf-XXXXXX";

static const char probe[] = "st_test\0beat";

static void add_section(int i, const char *name, uint32_t type, const void *at, size_t size, uint32_t link,
                        size_t each)
{
    static size_t used = 1;

    memcpy(whole.names + used, name, strlen(name) + 1);
    whole.sections[i] = (Elf64_Shdr){.sh_name = (uint32_t)used,
                                     .sh_type = type,
                                     .sh_offset = (uint64_t)((const char *)at - (const char *)&whole),
                                     .sh_size = size,
                                     .sh_link = link,
                                     .sh_entsize = each,
                                     .sh_addralign = 1};
    used += strlen(name) + 1;
}

static void fill(void)
{
    const uint64_t code = offsetof(struct small, code);

    whole.head = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                              .e_type = ET_DYN,
                              .e_machine = EM_X86_64,
                              .e_version = EV_CURRENT,
                              .e_phoff = offsetof(struct small, segments),
                              .e_shoff = offsetof(struct small, sections),
                              .e_ehsize = sizeof(Elf64_Ehdr),
                              .e_phentsize = sizeof(Elf64_Phdr),
                              .e_phnum = 2,
                              .e_shentsize = sizeof(Elf64_Shdr),
                              .e_shnum = 6,
                              .e_shstrndx = 1};
    whole.segments[0] = (Elf64_Phdr){PT_LOAD, PF_R | PF_X, code, ADDRESS, ADDRESS, 64, 64, 1};
    whole.segments[1] = (Elf64_Phdr){PT_LOAD, PF_R | PF_W, code, DATA, DATA, 64, 64, 1};
    memcpy(whole.strings, "\0outer\0inner@@V1", 17);
    whole.symbols[1] = (Elf64_Sym){1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, ADDRESS + 16, 16};
    whole.symbols[2] = (Elf64_Sym){7, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, ADDRESS + 32, 16};
    whole.note = (struct probe_note){{8, 24 + sizeof(whole.note.texts), 3},
                                     "stapsdt",
                                     ADDRESS + 20,
                                     0,
                                     DATA + 8,
                                     "st_test\0beat\0" ARGUMENTS};
    add_section(1, ".shstrtab", SHT_STRTAB, whole.names, sizeof(whole.names), 0, 0);
    add_section(2, ".symtab", SHT_SYMTAB, whole.symbols, sizeof(whole.symbols), 3, sizeof(Elf64_Sym));
    add_section(3, ".strtab", SHT_STRTAB, whole.strings, sizeof(whole.strings), 0, 0);
    add_section(4, ".note.stapsdt", SHT_NOTE, &whole.note, sizeof(whole.note), 0, 0);
    add_section(5, ".dynamic", SHT_DYNAMIC, whole.code, sizeof(whole.code), 3, sizeof(Elf64_Dyn));
}

static void write_file(const struct small *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static struct st_confined child = {.patience = PATIENCE};

static ssize_t ask(st_confined_fn *fn, const void *question, size_t size, void *answer, size_t room)
{
    return trg_elf_ask(&child, path, "ask", fn, question, size, answer, room, NULL, NULL);
}

/* Everything that is asked of a file. Whatever it holds, the child lives and answers. */
static void ask_all(void)
{
    const uint64_t offset = offsetof(struct small, code) + 20;
    struct trg_probe_site sites[8];
    struct trg_elf_function functions[8];
    char text[TRG_ELF_NAME];
    ssize_t n;

    ask(trg_elf_functions, "outer", 6, functions, sizeof(functions));
    n = ask(trg_elf_name, &offset, sizeof(offset), text, sizeof(text));
    assert_true(n <= 0 || !text[n - 1]);
    n = ask(trg_elf_nearest, "outr", 5, text, sizeof(text));
    assert_true(n <= 0 || !text[n - 1]);
    n = ask(trg_elf_needed, NULL, 0, text, sizeof(text));
    assert_true(n <= 0 || !text[n - 1]);
    ask(trg_elf_golang, NULL, 0, text, 1);
    ask(trg_elf_probes, probe, sizeof(probe), sites, sizeof(sites));
    assert_int_equal(child.failed, 0);
}

static void the_whole_tells_all(void **state)
{
    const uint64_t code = offsetof(struct small, code), offset = code + 20;
    struct trg_probe_site sites[8] = {0};
    struct trg_elf_function functions[8];
    char text[TRG_ELF_NAME];

    (void)state;
    write_file(&whole, sizeof(whole));
    assert_int_equal(ask(trg_elf_functions, "outer", 6, functions, sizeof(functions)), sizeof(functions[0]));
    assert_int_equal(functions[0].offset, code + 16);
    assert_int_equal(ask(trg_elf_functions, "inner", 6, functions, sizeof(functions)), sizeof(functions[0]));
    assert_int_equal(functions[0].offset, code + 32);
    assert_int_equal(ask(trg_elf_functions, "oute", 5, functions, sizeof(functions)), 0);
    assert_int_equal(ask(trg_elf_functions, "outer", 6, functions, sizeof(functions[0]) - 1), ST_EBADFILE);
    assert_int_equal(ask(trg_elf_functions, "outer", 5, functions, sizeof(functions)), ST_EBADFILE);
    assert_int_equal(ask(trg_elf_name, &offset, sizeof(offset), text, sizeof(text)), sizeof("outer+0x4"));
    assert_string_equal(text, "outer+0x4");
    assert_int_equal(ask(trg_elf_nearest, "iner", 5, text, sizeof(text)), 0);
    assert_int_equal(ask(trg_elf_nearest, "outr", 5, text, sizeof(text)), 6);
    assert_string_equal(text, "outer");
    assert_int_equal(ask(trg_elf_probes, probe, sizeof(probe), sites, sizeof(sites)), sizeof(sites[0]));
    assert_int_equal(sites[0].offset, code + 20);
    assert_int_equal(sites[0].semaphore, code + 8);
    assert_int_equal(sites[0].n, 4);
    static const struct trg_probe_argument expected[] = {{-7, TRG_PROBE_CONSTANT, 0, -4},
                                                         {0, TRG_PROBE_REGISTER, 5, 8},
                                                         {-12, TRG_PROBE_MEMORY, 4, 2},
                                                         {0, TRG_PROBE_MEMORY, 10, -1}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sites[0].arguments[i].value, expected[i].value);
        assert_int_equal(sites[0].arguments[i].kind, expected[i].kind);
        assert_int_equal(sites[0].arguments[i].reg, expected[i].reg);
        assert_int_equal(sites[0].arguments[i].size, expected[i].size);
    }
    assert_true(trg_probe_are_sound(sites, 1, sizeof(whole)));
    ask_all();
}

/* Who was taken over answers what he likes: what would be read of the kernel, or outside the file. */
static void answers_are_looked_at(void **state)
{
    const struct trg_probe_site good = {.offset = 8, .n = 1, .arguments = {{0, TRG_PROBE_REGISTER, 20, 8}}};
    struct trg_probe_site bad[6] = {good, good, good, good, good, good};

    (void)state;
    assert_true(trg_probe_are_sound(&good, 1, 9));
    bad[0].offset = 9;
    bad[1].semaphore = UINT64_MAX;
    bad[2].n = TRG_PROBE_ARGUMENTS + 1;
    bad[3].arguments[0].kind = TRG_PROBE_KINDS;
    bad[4].arguments[0].reg = TRG_PROBE_REGISTERS;
    bad[5].arguments[0].size = 3;
    for (size_t i = 0; i < 6; i++)
        assert_false(trg_probe_are_sound(&bad[i], 1, 9));
    bad[0] = good;
    assert_false(trg_probe_are_sound(bad, 2, 9));
}

static void arguments_that_cannot_be_read(void **state)
{
    static const char *const texts[] = {"8@(%rax,%rbx,4)",
                                        "3@%rax",
                                        "8@%xmm0",
                                        "8@",
                                        "x",
                                        "1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1"};
    struct trg_probe_site sites[2];
    struct st_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct {
            struct small file;

            struct probe_note note;

            char more[64];
        } long_one = {.file = whole, .note = whole.note};
        const size_t room = sizeof(long_one.note.texts) + sizeof(long_one.more);
        int fd;

        long_one.file.sections[4].sh_offset = offsetof(__typeof__(long_one), note);
        long_one.file.sections[4].sh_size += sizeof(long_one.more);
        long_one.note.head.n_descsz = (uint32_t)(24 + room);
        memset(long_one.note.texts + 13, 0, sizeof(long_one.note.texts) - 13);
        memcpy((char *)&long_one + offsetof(__typeof__(long_one), note) + offsetof(struct probe_note, texts) +
                   13,
               texts[i], strlen(texts[i]) + 1);
        write_file(&whole, 0);
        fd = open(path, O_WRONLY);
        assert_int_equal(write(fd, &long_one, sizeof(long_one)), sizeof(long_one));
        close(fd);
        err = (struct st_error){0};
        assert_int_equal(trg_elf_ask(&child, path, "look for st_test:beat in", trg_elf_probes, probe,
                                     sizeof(probe), sites, sizeof(sites), NULL, &err),
                         ST_EBADFILE);
        if (!strstr(err.text, "Operation not supported"))
            fail_msg("%s: %s", texts[i], err.text);
    }
}

static void cut_at_each_length(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(whole); n++) {
        write_file(&whole, n);
        ask_all();
    }
}

static void each_byte_changed(void **state)
{
    static const unsigned char to[] = {0, 1, 0x7f, 0x80, 0xff};
    const size_t code = offsetof(struct small, code);

    (void)state;
    for (size_t at = 4; at < sizeof(whole); at++) {
        if (at == code)
            at += sizeof(whole.code);
        for (size_t i = 0; i < sizeof(to); i++) {
            struct small other = whole;

            ((unsigned char *)&other)[at] = to[i];
            write_file(&other, sizeof(other));
            ask_all();
        }
    }
}

/* Words of a file's header and of its sections, set to what adds up to no address. */
static void words_that_overflow(void **state)
{
    static const uint64_t to[] = {UINT64_MAX,        UINT64_MAX - 63, (uint64_t)1 << 63,
                                  (uint64_t)1 << 40, UINT32_MAX,      (uint64_t)1 << 31};

    (void)state;
    for (size_t at = 24; at + 8 <= sizeof(whole); at += 8)
        for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
            struct small other = whole;

            memcpy((char *)&other + at, &to[i], 8);
            write_file(&other, sizeof(other));
            ask_all();
        }
}

/* The file has room for what its headers say, and holes in its place. */
static void sections_without_end(void **state)
{
    struct small other = whole;

    (void)state;
    other.head.e_shnum = 65535;
    write_file(&other, sizeof(other));
    ask_all();
    other.head.e_shnum = 0;
    other.sections[0].sh_size = (uint64_t)1 << 40;
    write_file(&other, sizeof(other));
    assert_int_equal(truncate(path, (off_t)1 << 42), 0);
    ask_all();
    for (int i = 1; i < 6; i++) {
        other = whole;
        other.sections[i].sh_size = (uint64_t)1 << 40;
        other.segments[0].p_filesz = other.segments[0].p_memsz = (uint64_t)1 << 40;
        write_file(&other, sizeof(other));
        assert_int_equal(truncate(path, (off_t)1 << 42), 0);
#ifndef ST_SANITIZED /* memory has no bound there */
        ask_all();
#endif
    }
}

/* As the trigger looks for it. */
static int find(struct st_error *err)
{
    const struct st_target target = {.kind = ST_TARGET_NONE};
    const struct trg_config config = {.target = &target};
    struct trg_function f = {0};
    char what[64];
    int rc;

    *err = (struct st_error){0};
    snprintf(what, sizeof(what), "%s!outer", path);
    rc = trg_find_function(what, &config, &f, err);
    trg_function_free(&f);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1); /* no child is left */
    return rc;
}

static void what_is_no_file(void **state)
{
    char *argv[] = {path, NULL};
    const struct st_target target = {.kind = ST_TARGET_COMMAND, .argv = argv};
    struct st_error err;

    (void)state;
    st_confined_close(&child);
    write_file(&whole, sizeof(whole));
    assert_int_equal(find(&err), 0);
    write_file(&whole, 100);
    assert_int_equal(find(&err), ST_EUSAGE);
    for (int kind = 0; kind < 3; kind++) {
        unlink(path);
        if (kind == 2 && geteuid())
            break;
        assert_int_equal(kind == 0   ? mkfifo(path, 0600)
                         : kind == 1 ? mkdir(path, 0700)
                                     : mknod(path, S_IFCHR | 0600, makedev(1, 5)),
                         0);
        assert_int_equal(find(&err), ST_EUSAGE);
        assert_non_null(strstr(err.text, "no file"));
        assert_false(trg_is_golang(&target));
        assert_int_equal(ask(trg_elf_probes, probe, sizeof(probe), &err, sizeof(err)), ST_EFAIL);
        assert_int_equal(errno, ENODEV);
        assert_int_equal(child.pid, 0); /* it was not even asked */
        if (kind == 1)
            rmdir(path);
    }
    unlink(path);
}

static int make(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    fill();
    return fd < 0 || close(fd);
}

static int end(void **state)
{
    (void)state;
    st_confined_close(&child);
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_tells_all),
        cmocka_unit_test(answers_are_looked_at),
        cmocka_unit_test(arguments_that_cannot_be_read),
        cmocka_unit_test(cut_at_each_length),
        cmocka_unit_test(each_byte_changed),
        cmocka_unit_test(words_that_overflow),
        cmocka_unit_test(sections_without_end),
        cmocka_unit_test(what_is_no_file),
    };

    return cmocka_run_group_tests(tests, make, end);
}
