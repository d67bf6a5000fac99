/* Raw input: its options, and decoding of files written here. */
#include "flow_script.h"

#include "decoder/cmd/dump.h"
#include "decoder/cmd/raw.h"
#include "decoder/cmd/stats.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/st-raw-XXXXXX";

static struct st_error err;

static int setup(void **state)
{
    struct dec_raw *raw = calloc(1, sizeof(*raw));
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    memset(&err, 0, sizeof(err));
    *state = raw;
    return raw && mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[600];
    dec_raw_free(*state);
    free(*state);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void assert_image(const struct dec_raw *raw, size_t i, const char *file, uint64_t offset,
                         uint64_t size, uint64_t address)
{
    assert_true(i < raw->images.n);
    assert_string_equal(raw->images.at[i].file, file);
    assert_int_equal(raw->images.at[i].offset, offset);
    assert_int_equal(raw->images.at[i].size, size);
    assert_int_equal(raw->images.at[i].address, address);
}

static void an_image_has_a_file_and_an_address(void **state)
{
    struct dec_raw *raw = *state;
    assert_int_equal(dec_raw_image(raw, "a.out@0x400000", &err), 0);
    assert_int_equal(dec_raw_image(raw, "dump:0x1000@4096", &err), 0);
    assert_int_equal(dec_raw_image(raw, "dump:0x1000:256@0x7fff00000000", &err), 0);
    assert_int_equal(dec_raw_image(raw, "odd:name@home@0x10", &err), 0);
    assert_image(raw, 0, "a.out", 0, 0, 0x400000);
    assert_image(raw, 1, "dump", 0x1000, 0, 4096);
    assert_image(raw, 2, "dump", 0x1000, 256, 0x7fff00000000);
    assert_image(raw, 3, "odd:name@home", 0, 0, 0x10);
}

static void a_senseless_image_is_refused(void **state)
{
    static const char *const wrong[] = {"a.out",    "a.out@",        "@0x1000", "a.out@here",
                                        "a.out@-1", "a.out@0x1000 ", ""};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(dec_raw_image(*state, wrong[i], &err), ST_EUSAGE);
        assert_non_null(strstr(err.text, "FILE[:OFFSET[:SIZE]]@ADDRESS"));
    }
    assert_int_equal(((struct dec_raw *)*state)->images.n, 0);
}

static void a_list_of_images_is_relative_to_its_folder(void **state)
{
    static const char list[] =
        "# comment\n\npages.dump 0 4096 0x400000\n/abs/two words 0x10 16\t0x7f0000000000\n";
    char expected[600];
    write_file("images.list", list, sizeof(list) - 1);
    assert_int_equal(dec_raw_images(*state, in_folder("images.list"), &err), 0);
    snprintf(expected, sizeof(expected), "%s/pages.dump", folder);
    assert_image(*state, 0, expected, 0, 4096, 0x400000);
    assert_image(*state, 1, "/abs/two words", 0x10, 16, 0x7f0000000000);
}

static void a_wrong_line_is_named(void **state)
{
    static const char list[] = "a 0 4096 0x400000\nb 0 0x400000\n";
    write_file("images.list", list, sizeof(list) - 1);
    assert_int_equal(dec_raw_images(*state, in_folder("images.list"), &err), ST_EUSAGE);
    assert_non_null(strstr(err.text, "line 2"));
    assert_int_equal(dec_raw_images(*state, in_folder("nothing.list"), &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "nothing.list"));
}

static void the_cpu_and_its_clocks(void **state)
{
    struct dec_raw *raw = *state;
    assert_int_equal(dec_raw_cpu(raw, "6/158/9", &err), 0);
    assert_int_equal(dec_raw_time(raw, "1076264588:31:18433473881008870804", &err), 0);
    assert_int_equal(dec_raw_mtc_freq(raw, "3", &err), 0);
    assert_int_equal(dec_raw_nom_freq(raw, "37", &err), 0);
    assert_int_equal(dec_raw_cpuid15(raw, "2/308", &err), 0);
    assert_int_equal(dec_raw_bits(raw, "32", &err), 0);
    assert_int_equal(raw->config.family, 6);
    assert_int_equal(raw->config.model, 158);
    assert_int_equal(raw->config.stepping, 9);
    assert_int_equal(raw->config.clock.mult, 1076264588);
    assert_int_equal(raw->config.clock.shift, 31);
    assert_int_equal(raw->config.clock.zero, 18433473881008870804u);
    assert_true(raw->config.clock.known);
    assert_int_equal(raw->config.mtc_freq, 3);
    assert_int_equal(raw->config.nom_freq, 37);
    assert_int_equal(raw->config.cpuid15_eax, 2);
    assert_int_equal(raw->config.cpuid15_ebx, 308);
    assert_int_equal(raw->config.bits, 32);
}

static void wrong_figures_are_refused_with_an_example(void **state)
{
    struct dec_raw *raw = *state;
    assert_int_equal(dec_raw_cpu(raw, "6/158", &err), ST_EUSAGE);
    assert_int_equal(dec_raw_cpu(raw, "6/158/9/1", &err), ST_EUSAGE);
    assert_int_equal(dec_raw_cpu(raw, "6/999/9", &err), ST_EUSAGE);
    assert_non_null(strstr(err.text, "6/158/9"));
    assert_int_equal(dec_raw_time(raw, "0:31:5", &err), ST_EUSAGE);
    assert_int_equal(dec_raw_time(raw, "5:64:5", &err), ST_EUSAGE);
    assert_int_equal(dec_raw_mtc_freq(raw, "16", &err), ST_EUSAGE);
    assert_int_equal(dec_raw_nom_freq(raw, "x", &err), ST_EUSAGE);
    assert_int_equal(dec_raw_cpuid15(raw, "2", &err), ST_EUSAGE);
    assert_int_equal(dec_raw_bits(raw, "16", &err), ST_EUSAGE);
    assert_int_equal(raw->config.family, 0);
    assert_false(raw->config.clock.known);
}

/* 1000 nop; call 1008; 1006 jne 1006; 1008 ret */
static const uint8_t program[] = {0x90, 0xe8, 0x02, 0, 0, 0, 0x75, 0xfe, 0xc3};

static void write_trace(const char *name, uint64_t tsc)
{
    struct script s;
    script_open(&s);
    put_psb(&s, 0x1000, tsc);
    put_tnt(&s, "TTN");
    write_file(name, s.trace, script_size(&s));
    script_close(&s);
}

static char *slurp(FILE *in, char *text, size_t size)
{
    rewind(in);
    text[fread(text, 1, size - 1, in)] = '\0';
    fclose(in);
    return text;
}

static const struct dec_space *space_of(void *ctx, int32_t pid, int32_t tid, uint64_t time)
{
    assert_int_equal(pid, 1);
    assert_true(tid == 1 || tid == 2);
    (void)time;
    return ((struct dec_raw_result *)ctx)->space;
}

static void every_trace_is_a_thread(void **state)
{
    struct dec_raw *raw = *state;
    struct dec_raw_result result;
    char one[512], two[512], image[600], text[4096];
    write_file("program", program, sizeof(program));
    write_trace("one.pt", 5000);
    write_trace("two.pt", 7000);
    strcpy(one, in_folder("one.pt"));
    strcpy(two, in_folder("two.pt"));
    snprintf(image, sizeof(image), "%s@0x1000", in_folder("program"));
    assert_int_equal(dec_raw_trace(raw, one, &err), 0);
    assert_int_equal(dec_raw_trace(raw, two, &err), 0);
    assert_int_equal(dec_raw_image(raw, image, &err), 0);
    assert_int_equal(dec_raw_open(raw, &result, &err), 0);
    FILE *out = tmpfile();
    assert_non_null(out);
    struct dec_dump dump = {.out = out, .raw_time = true, .space_of = space_of, .ctx = &result};
    assert_int_equal(dec_raw_run(raw, dec_dump_branches, &dump, &result, &err), 0);
    assert_string_equal(slurp(out, text, sizeof(text)), "5000 1 -1 0 1000 tr-start [program]+0x0\n"
                                                        "5002 1 -1 1001 1008 call [program]+0x8\n"
                                                        "5003 1 -1 1008 1006 return+indirect [program]+0x6\n"
                                                        "5004 1 -1 1006 1006 jcc [program]+0x6\n"
                                                        "7000 2 -1 0 1000 tr-start [program]+0x0\n"
                                                        "7002 2 -1 1001 1008 call [program]+0x8\n"
                                                        "7003 2 -1 1008 1006 return+indirect [program]+0x6\n"
                                                        "7004 2 -1 1006 1006 jcc [program]+0x6\n");
    struct dec_stats stats = {.flow = result.counts, .calls = 2, .returns = 2, .seconds = 0.25};
    out = tmpfile();
    assert_int_equal(dec_stats_print(out, &stats, &err), 0);
    slurp(out, text, sizeof(text));
    assert_non_null(strstr(
        text,
        "{\"instructions\": 10, \"branches\": {\"cond_jump\": 4, \"jump\": 0, \"call\": 2, \"return\": 2, "
        "\"far_call\": 0, \"far_return\": 0, \"far_jump\": 0, \"taken\": 6, \"indirect\": 2}, \"calls\": 2, "
        "\"returns\": 2, \"errors\": 0, \"gaps\": 0, \"bytes\": "));
    assert_non_null(strstr(text, "\"seconds\": 0.250000}\n"));
    dec_raw_result_free(&result);
}

static void packets_are_listed_with_their_offsets(void **state)
{
    struct dec_raw *raw = *state;
    struct script s;
    char path[512], text[4096];
    script_open(&s);
    put_psb(&s, 0x1000, 0x5000);
    put_tnt(&s, "TTN");
    put_ip(&s, ppt_tip_pgd, 0);
    put_plain(&s, ppt_ovf);
    put_cyc(&s, 77);
    size_t bad = script_size(&s);
    put_plain(&s, ppt_pad);
    put_plain(&s, ppt_pad);
    put_psb(&s, 0, 0);
    s.trace[bad] = 0x02;
    s.trace[bad + 1] = 0xff;
    write_file("one.pt", s.trace, script_size(&s));
    script_close(&s);
    strcpy(path, in_folder("one.pt"));
    assert_int_equal(dec_raw_trace(raw, path, &err), 0);
    FILE *out = tmpfile();
    assert_non_null(out);
    assert_int_equal(dec_raw_packets(raw, out, &err), 0);
    assert_string_equal(slurp(out, text, sizeof(text)), "# ring 0, 63 bytes\n"
                                                        "00000000 psb\n"
                                                        "00000010 tsc 5000\n"
                                                        "00000018 mode exec csl=1 csd=0\n"
                                                        "0000001a fup 6:1000\n"
                                                        "00000023 psbend\n"
                                                        "00000025 tnt.8 !!.\n"
                                                        "00000026 tip.pgd none\n"
                                                        "00000027 ovf\n"
                                                        "00000029 cyc 77\n"
                                                        "0000002b bad: unknown opcode\n"
                                                        "0000002d psb\n"
                                                        "0000003d psbend\n");
}

static void what_cannot_be_opened_is_named(void **state)
{
    struct dec_raw *raw = *state;
    struct dec_raw_result result;
    char missing[600];
    assert_int_equal(dec_raw_open(raw, &result, &err), ST_EUSAGE); /* no trace */
    snprintf(missing, sizeof(missing), "%s", in_folder("nothing.pt"));
    assert_int_equal(dec_raw_trace(raw, missing, &err), 0);
    assert_int_equal(dec_raw_open(raw, &result, &err), 0);
    assert_int_equal(dec_raw_run(raw, NULL, NULL, &result, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "nothing.pt"));
    dec_raw_result_free(&result);
    assert_int_equal(dec_raw_image(raw, "/nonexistent/image@0x1000", &err), 0);
    assert_int_equal(dec_raw_open(raw, &result, &err), ST_EFAIL);
    assert_non_null(strstr(err.text, "/nonexistent/image"));
    assert_null(result.images);
    assert_null(result.space);
}

static void images_must_fit(void **state)
{
    struct dec_raw *raw = *state;
    struct dec_raw_result result;
    char image[600];
    write_file("program", program, sizeof(program));
    assert_int_equal(dec_raw_trace(raw, "x", &err), 0);
    snprintf(image, sizeof(image), "%s:100@0x1000", in_folder("program"));
    assert_int_equal(dec_raw_image(raw, image, &err), 0);
    assert_int_equal(dec_raw_open(raw, &result, &err), ST_EUSAGE);
    assert_non_null(strstr(err.text, "0x64"));
    raw->images.at[0].offset = 0;
    snprintf(image, sizeof(image), "%s@0x1004", in_folder("program"));
    assert_int_equal(dec_raw_image(raw, image, &err), 0);
    assert_int_equal(dec_raw_open(raw, &result, &err), ST_EUSAGE);
    assert_non_null(strstr(err.text, "overlap"));
    raw->images.at[1].address = 0x1009; /* directly behind */
    assert_int_equal(dec_raw_open(raw, &result, &err), 0);
    dec_raw_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_image_has_a_file_and_an_address, setup, teardown),
        cmocka_unit_test_setup_teardown(a_senseless_image_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_list_of_images_is_relative_to_its_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_line_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(the_cpu_and_its_clocks, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_figures_are_refused_with_an_example, setup, teardown),
        cmocka_unit_test_setup_teardown(every_trace_is_a_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(packets_are_listed_with_their_offsets, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_opened_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(images_must_fit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
