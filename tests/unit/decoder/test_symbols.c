/* Names of code. The ELF files are made here: .text is 0x200 bytes at address 0x401000, file offset 0x1000.
 */
#include "elf_maker.h"

#include "decoder/image/symbols.h"

#define ID "0123456789abcdefghij"

enum { TEXT = 0x401000 };

static char folder[] = "/tmp/st-symbols-XXXXXX";

static uint8_t code[0x200];

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
    return p;
}

static int setup(void **state)
{
    struct dec_images *images;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder) || dec_images_new(NULL, &images, NULL))
        return -1;
    *state = images;
    return 0;
}

static int teardown(void **state)
{
    char command[600];
    dec_images_free(*state);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static struct dec_image *get(struct dec_images *images, const char *path)
{
    struct dec_image_id id = {.path = path};
    struct dec_image *image;
    assert_int_equal(dec_images_get(images, &id, &image, NULL), 0);
    assert_int_equal(image->state, DEC_IMAGE_OK);
    return image;
}

static void assert_symbol(struct dec_image *image, uint64_t address, const char *name, uint64_t start,
                          uint64_t size)
{
    struct dec_symbol *symbol = dec_image_symbol(image, address);
    assert_string_equal(symbol->name, name);
    assert_int_equal(symbol->start, start);
    assert_int_equal(symbol->size, size);
    assert_ptr_equal(symbol->image, image);
    assert_ptr_equal(dec_image_symbol(image, address), symbol);
}

static void an_address_has_the_symbol_that_holds_it(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "second", TEXT + 0x40, 0x20, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "first", TEXT + 0x10, 0x10, STB_LOCAL, STT_FUNC, text);
    maker_symbol(&m, "data", TEXT + 0x80, 0x10, STB_GLOBAL, STT_OBJECT, text);
    maker_symbol(&m, "elsewhere", TEXT + 0x90, 0x10, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
    maker_close(&m, SHT_SYMTAB);
    struct dec_image *image = get(*state, in_folder("a"));
    assert_symbol(image, TEXT + 0x10, "first", TEXT + 0x10, 0x10);
    assert_symbol(image, TEXT + 0x1f, "first", TEXT + 0x10, 0x10);
    assert_symbol(image, TEXT + 0x5f, "second", TEXT + 0x40, 0x20);
}

static void what_no_symbol_holds_is_a_hole_with_a_name(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("lib.so"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "first", TEXT + 0x10, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "second", TEXT + 0x40, 0x20, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_SYMTAB);
    struct dec_image *image = get(*state, in_folder("lib.so"));
    assert_symbol(image, TEXT, "[lib.so+0x401000]", TEXT, 0x10);
    assert_symbol(image, TEXT + 0x20, "[lib.so+0x401020]", TEXT + 0x20, 0x20);
    assert_symbol(image, TEXT + 0x3f, "[lib.so+0x401020]", TEXT + 0x20, 0x20);
    assert_ptr_equal(dec_image_symbol(image, TEXT + 0x20), dec_image_symbol(image, TEXT + 0x3f));
    assert_symbol(image, TEXT + 0x100, "[lib.so+0x401060]", TEXT + 0x60, 0x1a0);
    assert_string_equal(dec_image_symbol(image, 0x999999)->name, "[lib.so]");
    assert_int_equal(dec_image_symbol(image, TEXT)->flags, DEC_SYM_MADE_UP);
}

/* Of several names for an address the one that perf takes. */
static void one_of_several_names_is_chosen(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "no_size_but_long_and_global", TEXT, 0, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "sized", TEXT, 0x10, STB_LOCAL, STT_FUNC, text);
    maker_symbol(&m, "weak_though_much_longer", TEXT + 0x10, 0x10, STB_WEAK, STT_FUNC, text);
    maker_symbol(&m, "local", TEXT + 0x10, 0x10, STB_LOCAL, STT_FUNC, text);
    maker_symbol(&m, "a_local_one", TEXT + 0x20, 0x10, STB_LOCAL, STT_FUNC, text);
    maker_symbol(&m, "global", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "__libc_work", TEXT + 0x30, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "_work", TEXT + 0x30, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "work", TEXT + 0x30, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "short", TEXT + 0x40, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "longer", TEXT + 0x40, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "same_b", TEXT + 0x50, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "same_a", TEXT + 0x50, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_SYMTAB);
    struct dec_image *image = get(*state, in_folder("a"));
    static const char *const best[] = {"sized", "local", "global", "work", "longer", "same_b"};
    for (size_t i = 0; i < sizeof(best) / sizeof(best[0]); i++)
        assert_symbol(image, TEXT + i * 0x10, best[i], TEXT + i * 0x10, 0x10);
}

static void a_symbol_without_size_reaches_to_the_next(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "_start", TEXT, 0, STB_GLOBAL, STT_NOTYPE, text);
    maker_symbol(&m, "next", TEXT + 0x30, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "last", TEXT + 0x80, 0, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_SYMTAB);
    struct dec_image *image = get(*state, in_folder("a"));
    assert_symbol(image, TEXT + 0x2f, "_start", TEXT, 0x30);
    assert_symbol(image, TEXT + 0x1ff, "last", TEXT + 0x80, 0x180);
}

static void the_innermost_of_nested_symbols_counts(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "outer", TEXT, 0x100, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "inner", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_SYMTAB);
    struct dec_image *image = get(*state, in_folder("a"));
    assert_symbol(image, TEXT + 0x25, "inner", TEXT + 0x20, 0x10);
    assert_symbol(image, TEXT + 0x35, "outer", TEXT, 0x100);
}

static void versions_and_mangling_do_not_show(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "memcpy@@GLIBC_2.14", TEXT, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "_ZN4pool4Work3runEPKcm", TEXT + 0x10, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "_ZN4core3fmt5write17h0123456789abcdefE", TEXT + 0x20, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "_RNvC6_123foo3bar", TEXT + 0x30, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_symbol(&m, "_Zwhatever", TEXT + 0x40, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_SYMTAB);
    struct dec_image *image = get(*state, in_folder("a"));
    assert_symbol(image, TEXT, "memcpy", TEXT, 0x10);
    assert_symbol(image, TEXT + 0x10, "pool::Work::run", TEXT + 0x10, 0x10);
    assert_symbol(image, TEXT + 0x20, "core::fmt::write", TEXT + 0x20, 0x10);
    assert_symbol(image, TEXT + 0x30, "123foo::bar", TEXT + 0x30, 0x10);
    assert_symbol(image, TEXT + 0x40, "_Zwhatever", TEXT + 0x40, 0x10);
}

static void dynamic_symbols_serve_where_there_are_no_others(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "exported", TEXT, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_DYNSYM);
    assert_symbol(get(*state, in_folder("a")), TEXT, "exported", TEXT, 0x10);
}

/* Entries of the two forms: jmp *slot(%rip), and with endbr64 and a prefix before it. */
static void plt_entries_have_the_name_of_what_they_jump_to(void **state)
{
    struct maker m;
    uint8_t plt[0x40];
    static Elf64_Rela relocations[] = {
        {.r_offset = 0x404018, .r_info = ELF64_R_INFO(1, R_X86_64_JUMP_SLOT)},
        {.r_offset = 0x404020, .r_info = ELF64_R_INFO(2, R_X86_64_JUMP_SLOT)},
        {.r_offset = 0x404028, .r_info = ELF64_R_INFO(0, R_X86_64_IRELATIVE), .r_addend = TEXT + 0x10},
    };
    memset(plt, 0x90, sizeof(plt));
    memcpy(plt + 0x10, "\xff\x25\x02\x30\x00\x00", 6);                      /* at 401210: *404218 */
    memcpy(plt + 0x20, "\xf3\x0f\x1e\xfa\xf2\xff\x25\x00\x00\x00\x00", 11); /* at 401220 */
    memcpy(plt + 0x30, "\xff\x25\x00\x00\x00\x00", 6);                      /* at 401230 */
    uint32_t displacement = 0x404018 - 0x401216;
    memcpy(plt + 0x12, &displacement, 4);
    displacement = 0x404020 - 0x40122b;
    memcpy(plt + 0x27, &displacement, 4);
    displacement = 0x404028 - 0x401236;
    memcpy(plt + 0x32, &displacement, 4);
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_section(&m, ".plt",
                  (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                               .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                               .sh_offset = 0x1200,
                               .sh_addr = 0x401200,
                               .sh_size = 0x40,
                               .sh_entsize = 16,
                               .sh_addralign = 16},
                  plt);
    /* sections so far: 1 .text, 2 .plt; to come: 3 .rela.plt, 4 .strtab, 5 .dynsym */
    maker_section(&m, ".rela.plt",
                  (Elf64_Shdr){.sh_type = SHT_RELA,
                               .sh_flags = SHF_ALLOC,
                               .sh_offset = 0x2800,
                               .sh_addr = 0x402800,
                               .sh_size = sizeof(relocations),
                               .sh_entsize = sizeof(Elf64_Rela),
                               .sh_link = 5,
                               .sh_addralign = 8},
                  relocations);
    maker_symbol(&m, "puts", 0, 0, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
    maker_symbol(&m, "_ZN4pool4Work3runEPKcm", 0, 0, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
    maker_symbol(&m, "strlen", TEXT + 0x10, 0x10, STB_GLOBAL, STT_GNU_IFUNC, text);
    assert_int_equal(maker_close(&m, SHT_DYNSYM), 5);
    struct dec_image *image = get(*state, in_folder("a"));
    assert_symbol(image, 0x401213, "puts@plt", 0x401210, 0x10);
    assert_symbol(image, 0x401220, "pool::Work::run@plt", 0x401220, 0x10);
    assert_symbol(image, 0x401230, "strlen@plt", 0x401230, 0x10);
    assert_int_equal(dec_image_symbol(image, 0x401213)->flags, DEC_SYM_PLT);
    assert_symbol(image, 0x401200, "[a+0x401200]", 0x401200,
                  0x10); /* the first entry goes to the dynamic linker */
}

/* A stripped file still has its unwind table, which knows where functions begin. */
static void functions_of_a_stripped_file_are_told_apart(void **state)
{
    struct maker m;
    uint8_t table[12 + 3 * 8] = {1, 0x1b, 0x03, 0x3b};
    uint32_t n = 3;
    memcpy(table + 8, &n, 4);
    for (int i = 0; i < 3; i++) {
        int32_t relative = TEXT + i * 0x40 - 0x402100;
        memcpy(table + 12 + i * 8, &relative, 4);
    }
    maker_open(&m, in_folder("stripped"));
    maker_text(&m, code);
    maker_section(&m, ".eh_frame_hdr",
                  (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                               .sh_flags = SHF_ALLOC,
                               .sh_offset = 0x2100,
                               .sh_addr = 0x402100,
                               .sh_size = sizeof(table),
                               .sh_addralign = 4},
                  table);
    maker_close(&m, 0);
    struct dec_image *image = get(*state, in_folder("stripped"));
    assert_symbol(image, TEXT + 0x3f, "[stripped+0x401000]", TEXT, 0x40);
    assert_symbol(image, TEXT + 0x40, "[stripped+0x401040]", TEXT + 0x40, 0x40);
    assert_symbol(image, TEXT + 0x1f0, "[stripped+0x401080]", TEXT + 0x80, 0x180);
}

static void make_debug(const char *path, const char *id, const char *name)
{
    struct maker m;
    uint8_t note[36];
    maker_open(&m, path);
    size_t text = maker_text(&m, code);
    maker_build_id(&m, note, id);
    maker_symbol(&m, name, TEXT, 0x10, STB_LOCAL, STT_FUNC, text);
    maker_close(&m, SHT_SYMTAB);
}

static void make_stripped(const char *path, const char *id, const char *link)
{
    struct maker m;
    uint8_t note[36];
    char bytes[64] = {0};
    strcpy(bytes, link);
    maker_open(&m, path);
    size_t text = maker_text(&m, code);
    maker_build_id(&m, note, id);
    maker_section(&m, ".gnu_debuglink",
                  (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                               .sh_offset = 0x2200,
                               .sh_size = ((strlen(link) + 4) & ~(size_t)3) + 4,
                               .sh_addralign = 4},
                  bytes);
    maker_symbol(&m, "exported", TEXT, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_DYNSYM);
}

/* As the linker of Go 1.18 and later lays it out: two functions, of 0x30 and 0x10 bytes, from 0x80 in .text
 * on. */
struct go_pclntab {
    uint32_t magic;

    uint8_t zero[2], smallest, pointer;

    uint64_t functions, files, text, names_at, units_at, files_at, pcs_at, functions_at;

    char names[32];

    uint32_t table[5];

    uint32_t about[2][2];
};

static struct go_pclntab go_table(void)
{
    struct go_pclntab t = {
        .magic = 0xfffffff0, .smallest = 1, .pointer = 8, .functions = 2, .text = TEXT + 0x80};

    memcpy(t.names, "main.main\0main.(*T).wait", 25);
    t.names_at = offsetof(struct go_pclntab, names);
    t.functions_at = offsetof(struct go_pclntab, table);
    t.table[1] = sizeof(t.table);
    t.table[2] = 0x30;
    t.table[3] = sizeof(t.table) + sizeof(t.about[0]);
    t.table[4] = 0x40;
    t.about[1][1] = 10;
    return t;
}

static struct dec_image *go_program(struct dec_images *images, const char *name, const struct go_pclntab *t,
                                    size_t size, uint64_t relocation)
{
    static Elf64_Rela rela;
    struct maker m;

    maker_open(&m, in_folder(name));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "_cgo_topofstack", TEXT + 0x10, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_section(
        &m, ".gopclntab",
        (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_offset = 0x2000, .sh_addr = 0x402000, .sh_size = size}, t);
    if (relocation) {
        rela = (Elf64_Rela){0x402000 + offsetof(struct go_pclntab, text), ELF64_R_INFO(0, R_X86_64_RELATIVE),
                            (Elf64_Sxword)relocation};
        maker_section(&m, ".rela.dyn",
                      (Elf64_Shdr){.sh_type = SHT_RELA,
                                   .sh_offset = 0x2800,
                                   .sh_size = sizeof(rela),
                                   .sh_entsize = sizeof(rela)},
                      &rela);
    }
    maker_close(&m, SHT_DYNSYM);
    return get(images, in_folder(name));
}

static void a_stripped_go_program_has_its_names(void **state)
{
    struct go_pclntab t = go_table();
    struct dec_image *image = go_program(*state, "go", &t, sizeof(t), 0);

    assert_symbol(image, TEXT + 0x80, "main.main", TEXT + 0x80, 0x30);
    assert_symbol(image, TEXT + 0xaf, "main.main", TEXT + 0x80, 0x30);
    assert_symbol(image, TEXT + 0xb0, "main.(*T).wait", TEXT + 0xb0, 0x10);
    assert_symbol(image, TEXT + 0x10, "_cgo_topofstack", TEXT + 0x10, 0x10);
    assert_symbol(image, TEXT + 0xc0, "[go+0x4010c0]", TEXT + 0xc0, 0x140);
    t.text = 0;
    image = go_program(*state, "pie", &t, sizeof(t), TEXT + 0x40);
    assert_symbol(image, TEXT + 0x41, "main.main", TEXT + 0x40, 0x30);
    image = go_program(*state, "nowhere", &t, sizeof(t), 0);
    assert_symbol(image, TEXT + 0x80, "[nowhere+0x401020]", TEXT + 0x20, 0x1e0);
}

/* Wherever it is cut off, and whatever it says of its parts. */
static void a_damaged_table_of_go_is_no_danger(void **state)
{
    struct go_pclntab t;
    char name[32];

    for (size_t size = 0; size < sizeof(t); size += 3) {
        t = go_table();
        snprintf(name, sizeof(name), "cut%zu", size);
        assert_non_null(dec_image_symbol(go_program(*state, name, &t, size, 0), TEXT + 0x80));
    }
    for (size_t at = 0; at < sizeof(t) / 4; at++) {
        t = go_table();
        memset((char *)&t + 4 * at, 0xff, 4);
        snprintf(name, sizeof(name), "bad%zu", at);
        assert_non_null(dec_image_symbol(go_program(*state, name, &t, sizeof(t), 0), TEXT + 0x80));
    }
}

static void names_come_from_a_debug_file_by_build_id(void **state)
{
    char debug[512];
    const char *dirs[] = {debug};
    struct dec_images_options options = {.debug_dirs = dirs, .ndebug_dirs = 1};
    struct dec_images *images;
    (void)state;
    strcpy(debug, in_folder("debug"));
    mkdir(debug, 0700);
    mkdir(in_folder("debug/.build-id"), 0700);
    mkdir(in_folder("debug/.build-id/30"), 0700);
    make_debug(in_folder("debug/.build-id/30/3132333435363738396162636465666768696a.debug"), ID, "hidden");
    make_stripped(in_folder("lib.so"), ID, "x.debug");
    assert_int_equal(dec_images_new(&options, &images, NULL), 0);
    assert_symbol(get(images, in_folder("lib.so")), TEXT, "hidden", TEXT, 0x10);
    dec_images_free(images);
}

static void names_come_from_a_debug_file_by_link(void **state)
{
    make_debug(in_folder("lib.debug"), ID, "hidden");
    make_stripped(in_folder("lib.so"), ID, "lib.debug");
    assert_symbol(get(*state, in_folder("lib.so")), TEXT, "hidden", TEXT, 0x10);
}

static void a_debug_file_of_another_build_is_not_believed(void **state)
{
    make_debug(in_folder("lib.debug"), "ABCDEFGHIJabcdefghij", "wrong");
    make_stripped(in_folder("lib.so"), ID, "lib.debug");
    assert_symbol(get(*state, in_folder("lib.so")), TEXT, "exported", TEXT, 0x10);
}

static void file_offsets_become_addresses(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("a"));
    maker_text(&m, code);
    maker_close(&m, 0);
    struct dec_image *image = get(*state, in_folder("a"));
    assert_int_equal(dec_image_address(image, 0x1010), 0x401010);
    assert_int_equal(dec_image_address(image, 0x1fff), 0x401fff);
    assert_int_equal(dec_image_address(image, 0x5000), 0x5000); /* in no segment */
}

static void added_symbols_join_those_of_the_file(void **state)
{
    struct maker m;
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "own", TEXT, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_SYMTAB);
    struct dec_image *image = get(*state, in_folder("a"));
    struct dec_symbol *own = dec_image_symbol(image, TEXT);
    assert_int_equal(dec_image_add_symbol(image, TEXT + 0x20, 0, "LFoo;::bar@1", NULL, NULL), 0);
    assert_int_equal(dec_image_add_symbol(image, TEXT + 0x40, 8, "_ZN4pool4Work3runEPKcm", NULL, NULL), 0);
    assert_symbol(image, TEXT + 0x30, "LFoo;::bar@1", TEXT + 0x20, 0x20); /* as it is */
    assert_symbol(image, TEXT + 0x41, "_ZN4pool4Work3runEPKcm", TEXT + 0x40, 8);
    assert_int_equal(dec_image_add_symbol(image, TEXT + 0x60, 8, "veth_xmit", "[veth]", NULL), 0);
    assert_string_equal(dec_image_symbol(image, TEXT + 0x61)->name, "veth_xmit");
    assert_string_equal(dec_image_symbol(image, TEXT + 0x61)->module, "[veth]");
    assert_null(dec_image_symbol(image, TEXT + 0x41)->module);
    assert_ptr_equal(dec_image_symbol(image, TEXT), own);
}

static void bytes_without_structure_have_one_name(void **state)
{
    struct dec_image *image;
    uint8_t *bytes = calloc(1, 100);
    assert_int_equal(dec_images_add_bytes(*state, "jit-1.bin", bytes, 100, &image, NULL), 0);
    assert_string_equal(dec_image_symbol(image, 5)->name, "[jit-1.bin]");
    assert_int_equal(dec_image_address(image, 5), 5);
    struct dec_image_id id = {.path = "//anon", .pid = 4};
    assert_int_equal(dec_images_get(*state, &id, &image, NULL), 0);
    assert_string_equal(dec_image_symbol(image, 5)->name, "[anon]");
    id.path = "[vdso]";
    assert_int_equal(dec_images_get(*state, &id, &image, NULL), 0);
    assert_string_equal(dec_image_symbol(image, 5)->name, "[vdso]");
}

/* Every byte of a small file changed in turn: names may be lost, nothing else may happen. */
static void a_damaged_file_is_no_danger(void **state)
{
    struct maker m;
    uint8_t file[0x6200];
    (void)state;
    maker_open(&m, in_folder("a"));
    size_t text = maker_text(&m, code);
    maker_symbol(&m, "first", TEXT, 0x10, STB_GLOBAL, STT_FUNC, text);
    maker_close(&m, SHT_SYMTAB);
    FILE *in = fopen(in_folder("a"), "r");
    size_t size = fread(file, 1, sizeof(file), in);
    fclose(in);
    assert_true(size > 0x6000);
    for (size_t at = 0; at < size; at++) {
        if (at == 0x78)
            at = 0x3000; /* between lie zeros and code */
        for (int step = 0; step < 3; step++) {
            struct dec_images *images;
            struct dec_image *image;
            uint8_t *copy = malloc(size);
            memcpy(copy, file, size);
            copy[at] = step == 0 ? 0xff : step == 1 ? 0 : (uint8_t)(copy[at] + 1);
            assert_int_equal(dec_images_new(NULL, &images, NULL), 0);
            assert_int_equal(dec_images_add_bytes(images, "x", copy, size, &image, NULL), 0);
            assert_non_null(dec_image_symbol(image, TEXT + 5)->name);
            dec_image_address(image, 0x1000);
            dec_images_free(images);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_has_the_symbol_that_holds_it, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_symbol_holds_is_a_hole_with_a_name, setup, teardown),
        cmocka_unit_test_setup_teardown(one_of_several_names_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(a_symbol_without_size_reaches_to_the_next, setup, teardown),
        cmocka_unit_test_setup_teardown(the_innermost_of_nested_symbols_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_and_mangling_do_not_show, setup, teardown),
        cmocka_unit_test_setup_teardown(dynamic_symbols_serve_where_there_are_no_others, setup, teardown),
        cmocka_unit_test_setup_teardown(plt_entries_have_the_name_of_what_they_jump_to, setup, teardown),
        cmocka_unit_test_setup_teardown(functions_of_a_stripped_file_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stripped_go_program_has_its_names, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_table_of_go_is_no_danger, setup, teardown),
        cmocka_unit_test_setup_teardown(names_come_from_a_debug_file_by_build_id, setup, teardown),
        cmocka_unit_test_setup_teardown(names_come_from_a_debug_file_by_link, setup, teardown),
        cmocka_unit_test_setup_teardown(a_debug_file_of_another_build_is_not_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(file_offsets_become_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(added_symbols_join_those_of_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_without_structure_have_one_name, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_no_danger, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
