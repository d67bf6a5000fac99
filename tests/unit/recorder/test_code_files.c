/* Copies of code that nobody finds by its mapping's name. */
#include "recorder/code/elf.h"
#include "recorder/code/files.h"
#include "recorder/code/jitdump.h"
#include "recorder/code/names.h"
#include "recorder/code/perf_map.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const unsigned char code[] = {0x8d, 0x47, 0x01, 0xc3};

struct place {
    char folder[64], data[96], map_path[64];

    unsigned char *jit;

    uint64_t at;
};

static void write_map(struct place *p, const char *format)
{
    FILE *f = fopen(p->map_path, "w");

    assert_non_null(f);
    fprintf(f, format, (unsigned long)p->at);
    fclose(f);
}

/* The names of `size` bytes from `at` on. */
static struct rec_perf_map read_map(uint64_t at, uint64_t size)
{
    struct rec_perf_map map = {0};
    int fd = rec_perf_map_open(getpid());

    assert_int_equal(st_vec_push(&map.within, (struct rec_perf_range){at, at + size}), 0);
    if (fd >= 0)
        assert_int_equal(rec_perf_map_read(&map, fd), 0);
    return map;
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    strcpy(p->folder, "/tmp/stalltrap-unit.XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->data, sizeof(p->data), "%s/x.1.data", p->folder);
    snprintf(p->map_path, sizeof(p->map_path), "/tmp/perf-%d.map", getpid());
    p->jit = mmap(NULL, 3 * 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p->jit != MAP_FAILED);
    memcpy(p->jit + 16, code, sizeof(code));
    p->at = (uint64_t)(uintptr_t)p->jit;
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    munmap(p->jit, 3 * 65536);
    unlink(p->map_path);
    assert_int_equal(rmdir(p->folder), 0); /* nothing was left in it */
    free(p);
    return 0;
}

static void names_of_a_jit_compiler(void **state)
{
    struct place *p = *state;
    struct rec_perf_map map = read_map(p->at, 4096);

    assert_int_equal(map.symbols.n, 0);
    rec_perf_map_free(&map);
    write_map(p, "%1$lx 4 plain\n"
                 "0x%1$lx 4 with a 0x and spaces in the name\n"
                 "\n \nnonsense\n%1$lx\n%1$lx 4\n%1$lx 4 \n"
                 "ffffffffffffffff 4 elsewhere\n"
                 "%1$lx ffffffffffffffff longer than the mapping\n"
                 "%1$lx 1000 at the edge");
    map = read_map(p->at, 4096);
    assert_int_equal(map.symbols.n, 3);
    assert_int_equal(map.cut, REC_PERF_WHOLE);
    assert_string_equal(map.names.at + map.symbols.at[0].name, "plain");
    assert_string_equal(map.names.at + map.symbols.at[1].name, "with a 0x and spaces in the name");
    assert_string_equal(map.names.at + map.symbols.at[2].name, "at the edge");
    assert_int_equal(map.symbols.at[0].size, 4);
    rec_perf_map_free(&map);
}

static void a_map_that_is_a_link_is_not_followed(void **state)
{
    struct place *p = *state;

    assert_int_equal(symlink("/etc/passwd", p->map_path), 0);
    assert_int_equal(rec_perf_map_open(getpid()), -1);
    unlink(p->map_path);
    assert_int_equal(mkfifo(p->map_path, 0600), 0);
    assert_int_equal(rec_perf_map_open(getpid()), -1);
}

struct dump_code {
    uint32_t kind; /* 0: made, 1: moved, others are passed over */

    uint64_t from, address, size, index;

    const char *name;
};

static void put_code(FILE *out, const struct dump_code *c)
{
    size_t length = c->kind == 0 ? strlen(c->name) + 1 : 0;
    uint32_t head[] = {c->kind, (uint32_t)((c->kind == 1 ? 64 : 56) + length), 0, 0, 1, 1};
    uint64_t body[] = {c->address, c->from, c->address, c->size, c->index};

    fwrite(head, sizeof(head), 1, out);
    if (c->kind == 1)
        fwrite(body, sizeof(body), 1, out);
    else
        fwrite((uint64_t[]){c->address, c->address, c->size, c->index}, 32, 1, out);
    fwrite(c->name, length, 1, out);
}

/* A dump of these codes, mapped as a compiler does; the names of [p->at, p->at + 4096), "" where it is
 * refused. */
static struct rec_perf_map read_dump(const struct place *p, const struct dump_code *codes, size_t n,
                                     size_t cut)
{
    const uint32_t header[10] = {0x4A695444, 1, 40, 62, 0, (uint32_t)getpid()};
    struct rec_perf_map map = {0};
    char path[128];
    void *mapped;
    FILE *out;
    int fd;

    snprintf(path, sizeof(path), "%s/jit-%d.dump", p->folder, getpid());
    out = fopen(path, "w+");
    assert_non_null(out);
    fwrite(header, sizeof(header), 1, out);
    for (size_t i = 0; i < n; i++)
        put_code(out, &codes[i]);
    fflush(out);
    assert_int_equal(ftruncate(fileno(out), ftello(out) - (off_t)cut), 0);
    mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(out), 0);
    assert_true(mapped != MAP_FAILED);
    fclose(out);
    fd = rec_jitdump_open(getpid());
    assert_true(fd >= 0);
    assert_int_equal(st_vec_push(&map.within, (struct rec_perf_range){p->at, p->at + 4096}), 0);
    assert_int_equal(rec_jitdump_read(&map, fd), 0);
    munmap(mapped, 4096);
    unlink(path);
    return map;
}

static void assert_symbol(const struct rec_perf_map *map, size_t i, const char *name, uint64_t start,
                          uint64_t size)
{
    assert_true(i < map->symbols.n);
    assert_string_equal(map->names.at + map->symbols.at[i].name, name);
    assert_int_equal(map->symbols.at[i].start, start);
    assert_int_equal(map->symbols.at[i].size, size);
}

static void names_of_a_jitdump(void **state)
{
    struct place *p = *state;
    const struct dump_code codes[] = {
        {0, 0, p->at + 64, 32, 1, "first"},
        {0, 0, p->at + 128, 64, 2, "moved"},
        {3, 0, 0, 0, 0, ""},
        {0, 0, p->at + 80, 16, 3, "in its place"},
        {1, p->at + 128, p->at + 256, 64, 2, ""},
        {0, 0, p->at + 128, 8, 4, "where moved was"},
        {0, 0, p->at + 8192, 8, 5, "elsewhere"},
        {0, 0, p->at + 4090, 64, 6, "over the end"},
    };
    struct rec_perf_map map = read_dump(p, codes, sizeof(codes) / sizeof(codes[0]), 0);

    assert_int_equal(map.symbols.n, 3);
    assert_symbol(&map, 0, "in its place", p->at + 80, 16);
    assert_symbol(&map, 1, "where moved was", p->at + 128, 8);
    assert_symbol(&map, 2, "moved", p->at + 256, 64);
    rec_perf_map_free(&map);
}

/* The compiler writes on while it is read. */
static void a_jitdump_that_is_cut_anywhere(void **state)
{
    struct place *p = *state;
    const struct dump_code codes[] = {{0, 0, p->at, 8, 1, "one"}, {0, 0, p->at + 8, 8, 2, "two"}};

    for (size_t cut = 1; cut <= 160; cut++) {
        struct rec_perf_map map = read_dump(p, codes, 2, cut);

        assert_int_equal(map.symbols.n, cut <= 60 ? 1 : 0);
        rec_perf_map_free(&map);
    }
}

static void memory_as_an_elf_file(void **state)
{
    struct place *p = *state;
    char path[128];
    unsigned char bytes[sizeof(code)];
    Elf64_Ehdr e;
    Elf64_Shdr s[5];
    Elf64_Sym symbols[2];
    char name[8];
    int memory = open("/proc/self/mem", O_RDONLY), fd;
    struct rec_perf_map map;

    write_map(p, "%lx 14 jitted\n");
    map = read_map(p->at, (uint64_t)3 * 65536);
    snprintf(path, sizeof(path), "%s/elf", p->folder);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_int_equal(rec_code_elf_write(fd, memory, p->at, p->at + 3 * 65536, &map, NULL), 0);
    rec_perf_map_free(&map);
    assert_int_equal(pread(fd, bytes, sizeof(bytes), REC_CODE_ELF_TEXT + 16), sizeof(bytes));
    assert_memory_equal(bytes, code, sizeof(code));
    assert_int_equal(pread(fd, &e, sizeof(e), 0), sizeof(e));
    assert_memory_equal(e.e_ident, ELFMAG, SELFMAG);
    assert_int_equal(e.e_shnum, 5);
    assert_int_equal(pread(fd, s, sizeof(s), (off_t)e.e_shoff), sizeof(s));
    assert_int_equal(s[1].sh_size, 3 * 65536);
    assert_int_equal(s[2].sh_size, sizeof(symbols));
    assert_int_equal(pread(fd, symbols, sizeof(symbols), (off_t)s[2].sh_offset), sizeof(symbols));
    assert_int_equal(symbols[1].st_value, REC_CODE_ELF_TEXT);
    assert_int_equal(symbols[1].st_size, 0x14);
    assert_int_equal(pread(fd, name, 7, (off_t)(s[3].sh_offset + symbols[1].st_name)), 7);
    assert_string_equal(name, "jitted");
    close(fd);
    close(memory);
    unlink(path);
}

static void bounds_are_told(void **state)
{
    struct place *p = *state;
    struct rec_perf_map map = {0};
    FILE *f = fopen(p->map_path, "w");
    int fd;

    assert_non_null(f);
    fprintf(f, "%lx 4 old\n", (unsigned long)p->at);
    assert_int_equal(fseeko(f, 100ll << 30, SEEK_SET), 0);
    fprintf(f, "\n%lx 4 new\n", (unsigned long)p->at);
    fclose(f);
    map = read_map(p->at, 4096);
    assert_int_equal(map.symbols.n, 1);
    assert_string_equal(map.names.at, "new");
    assert_int_equal(map.cut, REC_PERF_CUT_BYTES);
    rec_perf_map_free(&map);

    f = fopen(p->map_path, "w");
    for (int i = 0; i < 4000; i++)
        fprintf(f, "%lx 4 name\n", (unsigned long)p->at);
    fclose(f);
    fd = rec_perf_map_open(getpid());
    assert_int_equal(st_vec_push(&map.within, (struct rec_perf_range){p->at, p->at + 4096}), 0);
    map.stop_at = 1;
    assert_int_equal(rec_perf_map_read(&map, fd), 0);
    assert_in_range(map.symbols.n, 1, 3999);
    assert_int_equal(map.cut, REC_PERF_CUT_TIME);
    rec_perf_map_free(&map);
}

/* By the child: of several mappings, in order, and nothing where there is no time. */
static void names_by_a_child(void **state)
{
    struct place *p = *state;
    struct rec_perf_map map;
    char why[112];
    size_t i;

    write_map(p, "%1$lx 8 second\nfff 4 elsewhere\n%1$lx 4 third\n");
    rec_code_names_read(getpid(), 60000, &map, why, sizeof(why));
    assert_string_equal(why, "");
    i = rec_perf_map_find(&map, p->at);
    assert_true(i + 2 == map.symbols.n);
    assert_string_equal(map.names.at + map.symbols.at[i].name, "second");
    assert_string_equal(map.names.at + map.symbols.at[i + 1].name, "third");
    rec_perf_map_free(&map);
    assert_int_equal(rec_code_names_read(getpid(), 0, &map, why, sizeof(why)), 0);
    assert_string_not_equal(why, "");
    assert_int_equal(map.symbols.n, 0);
    rec_perf_map_free(&map);
}

/* Two files of one name in different folders, both gone, and the anonymous mapping. */
static void *map_gone(struct place *p, const char *folder, char fill)
{
    char path[128], page[4096];
    void *at;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", p->folder, folder);
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/lib.so");
    memset(page, fill, sizeof(page));
    fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
    at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_true(at != MAP_FAILED);
    close(fd);
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    return at;
}

static const struct rec_code_file *find(const struct rec_code_files *files, const void *at, const char *name)
{
    uint64_t buffer[64] = {0};
    struct rec_mmap2_record *m = (struct rec_mmap2_record *)buffer;

    m->pid = (uint32_t)getpid();
    m->addr = (uint64_t)(uintptr_t)at;
    strcpy(m->filename, name);
    return rec_code_files_find(files, m);
}

static int first_byte(const struct rec_code_file *f)
{
    unsigned char byte = 0;
    int fd = open(f->path, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)f->pgoff), 1);
    close(fd);
    return byte;
}

static void what_nobody_finds_is_copied(void **state)
{
    struct place *p = *state;
    struct rec_code_files files;
    void *one = map_gone(p, "one", 1), *two = map_gone(p, "two", 2);
    char name_one[128], name_two[128];
    const struct rec_code_file *f, *g, *h;
    struct stat st;

    snprintf(name_one, sizeof(name_one), "%s/one/lib.so", p->folder); /* as when it was mapped */
    snprintf(name_two, sizeof(name_two), "%s/two/lib.so (deleted)", p->folder);
    assert_int_equal(rec_code_files_open(&files, p->data, NULL), 0);
    assert_int_equal(rec_code_files_add(&files, getpid(), NULL), 0);
    f = find(&files, one, name_one);
    g = find(&files, two, name_two);
    h = find(&files, p->jit + 4096, "//anon");
    assert_true(f && g && h);
    assert_string_not_equal(f->path, g->path);
    assert_int_equal(first_byte(f), 1);
    assert_int_equal(first_byte(g), 2);
    assert_null(find(&files, one, "/another/name"));
    assert_null(find(&files, (char *)one + (1 << 30), name_one));
    assert_int_equal(stat(files.folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    rec_code_files_abort(&files);
    assert_int_equal(access(files.folder, F_OK), -1);
    munmap(one, 4096);
    munmap(two, 4096);
}

static void a_process_that_is_gone_needs_nothing(void **state)
{
    struct place *p = *state;
    struct rec_code_files files;

    assert_int_equal(rec_code_files_open(&files, p->data, NULL), 0);
    assert_int_equal(rec_code_files_add(&files, 999999999, NULL), 0);
    assert_int_equal(access(files.folder, F_OK), -1);
    rec_code_files_free(&files);
}

static void too_much_is_left_out(void **state)
{
    struct place *p = *state;
    struct rec_code_files files;

    assert_int_equal(rec_code_files_open(&files, p->data, NULL), 0);
    files.left = 4096;
    assert_int_equal(rec_code_files_add(&files, getpid(), NULL), 0);
    assert_null(find(&files, p->jit, "//anon"));
    assert_int_equal(files.left_out.n, 1);
    assert_string_equal(files.left_out.at[0].why,
                        "the code of 1 mapping was not copied: there is more than 512 MiB of it");
    rec_code_files_abort(&files);
}

/* ---- a process that maps many files ---- */

/* Maps a page of a file FOLDER/NAME that has no name any more. */
static unsigned char *map_named(const struct place *p, const char *name, int fill)
{
    unsigned char page[4096];
    char path[128];
    void *at;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", p->folder, name);
    memset(page, fill, sizeof(page));
    fd = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
    assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
    at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_true(at != MAP_FAILED);
    close(fd);
    unlink(path);
    return at;
}

static size_t files_in(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void add_all(struct rec_code_files *files)
{
    assert_int_equal(rec_code_files_add(files, getpid(), NULL), 0);
    assert_int_equal(rec_code_files_sync(files, NULL), 0);
}

/* All of one name. The recorder's own bound, but as long as it takes. */
static void many_files_are_bounded(void **state)
{
    enum { FILES = REC_CODE_MOST_COPIES + 300 };
    static unsigned char *at[FILES];
    struct place *p = *state;
    struct rec_code_files files;
    char name[128];
    size_t found = 0;

    snprintf(name, sizeof(name), "%s/lib.so", p->folder);
    for (int i = 0; i < FILES; i++)
        at[i] = map_named(p, "lib.so", i % 251);
    assert_int_equal(rec_code_files_open(&files, p->data, NULL), 0);
    files.until = UINT64_MAX / 2; /* the time that names take is added to it */
    add_all(&files);
    assert_int_equal(files_in(files.folder), REC_CODE_MOST_COPIES);
    for (int i = 0; i < FILES; i++) {
        const struct rec_code_file *f = find(&files, at[i], name);

        if (f)
            assert_int_equal(first_byte(f), i % 251);
        found += f != NULL;
    }
    found += find(&files, p->jit, "//anon") != NULL;
    assert_int_equal(found, REC_CODE_MOST_COPIES);
    assert_int_equal(files.left_out.n, 1);
    assert_int_equal(files.left_out.at[0].pid, getpid());
    assert_string_equal(files.left_out.at[0].why,
                        "the code of 301 mappings was not copied: there are more than 4096 files of it");
    rec_code_files_abort(&files);
    for (int i = 0; i < FILES; i++)
        munmap(at[i], 4096);
}

static void there_is_an_end_of_the_time(void **state)
{
    struct place *p = *state;
    struct rec_code_files files;
    unsigned char *lib = map_named(p, "lib.so", 1);

    assert_int_equal(rec_code_files_open(&files, p->data, NULL), 0);
    files.until = 1;
    add_all(&files);
    assert_int_equal(access(files.folder, F_OK), -1);
    assert_int_equal(files.left_out.n, 1);
    assert_string_equal(files.left_out.at[0].why,
                        "the code of 2 mappings was not copied: copying takes longer than 4 s");
    rec_code_files_abort(&files);
    munmap(lib, 4096);
}

/* Names that look like those which copies get. */
static void every_copy_has_a_name(void **state)
{
    static const char *const names[] = {"2-x", "3-x", "2-x", "x", "x", "x", "3-2-x", ".x", ".x", "4-"};
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    struct place *p = *state;
    struct rec_code_files files;
    unsigned char *at[NAMES];
    char name[128];

    for (int i = 0; i < NAMES; i++)
        at[i] = map_named(p, names[i], i + 1);
    assert_int_equal(rec_code_files_open(&files, p->data, NULL), 0);
    files.until = UINT64_MAX / 2; /* the time that names take is added to it */
    add_all(&files);
    assert_int_equal(files.left_out.n, 0);
    assert_int_equal(files_in(files.folder), NAMES + 1);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof(name), "%s/%s", p->folder, names[i]);
        assert_non_null(find(&files, at[i], name));
        assert_int_equal(first_byte(find(&files, at[i], name)), i + 1);
    }
    rec_code_files_abort(&files);
    for (int i = 0; i < NAMES; i++)
        munmap(at[i], 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_of_a_jit_compiler, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_map_that_is_a_link_is_not_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_of_a_jitdump, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_jitdump_that_is_cut_anywhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_by_a_child, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_as_an_elf_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_nobody_finds_is_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_is_gone_needs_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_much_is_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_files_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(there_is_an_end_of_the_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_copy_has_a_name, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
