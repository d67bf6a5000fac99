/* The cache of decoded instructions. */
#include "recorder/sources/step/code.h"
#include "base/infile.h"

#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum {
    PAGE = 4096,
    BYTES = ZYDIS_MAX_INSTRUCTION_LENGTH,
    INT3 = 0xcc,
};

/* The instructions that begin in a page. In memory that the program may write (a JIT's), or that has no file,
 * the bytes that were decoded are kept too and compared at every look: such code can change under any
 * transition that still looks right. */
struct step_page {
    uint64_t key; /* page number * 2 + (1 when decoded as 32-bit code) */

    UT_hash_handle hh;

    uint8_t (*watched)[BYTES]; /* NULL: the page is not watched */

    struct step_insn insn[PAGE];
};

int step_code_open(struct step_code *code, pid_t tid, struct st_error *err)
{
    char path[64];

    memset(code, 0, sizeof(*code));
    snprintf(path, sizeof(path), "/proc/%d/mem", tid);
    code->tid = tid;
    code->memory = open(path, O_RDWR | O_CLOEXEC);
    if (code->memory < 0)
        return st_fail_errno(err, ST_EFAIL, "cannot open the memory of thread %d", tid);
    return 0;
}

void step_code_close(struct step_code *code)
{
    step_code_forget(code, 0, UINT64_MAX);
    if (code->memory >= 0)
        close(code->memory);
    code->memory = -1;
}

bool step_code_read(const struct step_code *code, uint64_t from, void *to, size_t n)
{
    return pread(code->memory, to, n, (off_t)from) == (ssize_t)n;
}

bool step_code_write(const struct step_code *code, uint64_t to, const void *from, size_t n)
{
    return pwrite(code->memory, from, n, (off_t)to) == (ssize_t)n;
}

/* As much of an instruction as is mapped at ip; 0 where nothing is. */
static size_t fetch(const struct step_code *code, uint64_t ip, uint8_t bytes[BYTES])
{
    ssize_t n = pread(code->memory, bytes, BYTES, (off_t)ip);

    return n > 0 ? (size_t)n : 0;
}

/* Opens the file whose code is mapped, unchangeable, at ip. Negative where there is none. */
static int open_mapped(pid_t tid, uint64_t ip, uint64_t *at)
{
    char line[512], path[96], perms[8] = "";
    uint64_t from = 0, to = 0, offset = 0, inode = 0;
    bool found = false;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", tid);
    maps = fopen(path, "re");
    if (!maps)
        return -1;
    while (!found && fgets(line, sizeof(line), maps))
        found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64, &from, &to, perms,
                       &offset, &inode) == 5 &&
                ip >= from && ip < to;
    fclose(maps);
    if (!found || !inode || perms[1] == 'w')
        return -1;
    *at = offset + (ip - from);
    snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, tid, from, to);
    return st_infile_open(path, ST_INFILE_FILE);
}

/* A uprobe's breakpoint is no instruction of the program's: the kernel executes there what the file has. */
static void see_through_probe(const struct step_code *code, uint64_t ip, uint8_t bytes[BYTES])
{
    uint64_t at;
    int file = open_mapped(code->tid, ip, &at);
    uint8_t first;

    if (file < 0)
        return;
    if (pread(file, &first, 1, (off_t)at) == 1)
        bytes[0] = first;
    close(file);
}

static size_t fetch_insn(const struct step_code *code, uint64_t ip, uint8_t bytes[BYTES])
{
    size_t n = fetch(code, ip, bytes);

    if (n && bytes[0] == INT3)
        see_through_probe(code, ip, bytes);
    return n;
}

bool step_code_probed(const struct step_code *code, uint64_t ip)
{
    uint8_t bytes[BYTES];

    if (!fetch(code, ip, bytes) || bytes[0] != INT3)
        return false;
    see_through_probe(code, ip, bytes);
    return bytes[0] != INT3;
}

/* ------------------------------------------------------------------ */
/* Decoding                                                            */

static const ZydisDecoder *decoder_for(enum ptenc_mode mode)
{
    static ZydisDecoder decoder64, decoder32;
    static bool ready;

    if (!ready) {
        ZydisDecoderInit(&decoder64, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        ZydisDecoderInit(&decoder32, ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
        ready = true;
    }
    return mode == PTENC_MODE_32 ? &decoder32 : &decoder64;
}

static bool is_direct(const ZydisDecodedInstruction *insn)
{
    return insn->raw.imm[0].is_relative;
}

static enum step_kind kind_of_interrupt(const ZydisDecodedInstruction *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_INT && insn->raw.imm[0].value.u == 0x80 ? STEP_SYSCALL
                                                                                    : STEP_TRAP;
}

static enum step_kind kind_of_plain(const ZydisDecodedInstruction *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFD:
    case ZYDIS_MNEMONIC_PUSHFQ:
        return STEP_PUSHF;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
        return STEP_POPF;
    default:
        break;
    }
    if (insn->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
        return STEP_REP;
    return STEP_PLAIN;
}

static enum step_kind kind_of(const ZydisDecodedInstruction *insn)
{
    /* Zydis counts XBEGIN and its kin as branches, of no type; for PT they are none. */
    bool branch = insn->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE;

    if (insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return STEP_FAR;
    switch (insn->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        return branch ? STEP_COND : STEP_PLAIN;
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (!branch)
            return STEP_PLAIN;
        return is_direct(insn) ? STEP_JUMP : STEP_JUMP_INDIRECT;
    case ZYDIS_CATEGORY_CALL:
        return is_direct(insn) ? STEP_CALL : STEP_CALL_INDIRECT;
    case ZYDIS_CATEGORY_RET:
        return insn->mnemonic == ZYDIS_MNEMONIC_RET ? STEP_RET : STEP_IRET;
    case ZYDIS_CATEGORY_SYSCALL:
        return STEP_SYSCALL;
    case ZYDIS_CATEGORY_SYSRET:
        return STEP_FAR;
    case ZYDIS_CATEGORY_INTERRUPT:
        return kind_of_interrupt(insn);
    default:
        return kind_of_plain(insn);
    }
}

static void decode(struct step_insn *to, const uint8_t *bytes, size_t n, enum ptenc_mode mode)
{
    ZydisDecodedInstruction insn;

    *to = (struct step_insn){.kind = STEP_BAD};
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder_for(mode), NULL, bytes, n, &insn)))
        return;
    to->length = insn.length;
    to->kind = (uint8_t)kind_of(&insn);
    if (is_direct(&insn))
        to->displacement = (int32_t)insn.raw.imm[0].value.s;
    if (to->kind == STEP_IRET)
        to->displacement = insn.operand_width / 8;
}

/* ------------------------------------------------------------------ */
/* Pages                                                               */

/* Whether the mapping of ip can be written or is no file's. The vdso is neither but does not change. */
static bool is_changeable(pid_t tid, uint64_t ip)
{
    char line[512], path[64], perms[8] = "", name[16];
    uint64_t from, to, inode;
    bool changeable = true;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", tid);
    maps = fopen(path, "re");
    if (!maps)
        return true;
    while (fgets(line, sizeof(line), maps)) {
        name[0] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*x %*s %" SCNu64 " %15s", &from, &to, perms, &inode,
                   name) < 4 ||
            ip < from || ip >= to)
            continue;
        changeable = perms[1] == 'w' || !strncmp(name, "/memfd:", 7) || (!inode && strcmp(name, "[vdso]"));
        break;
    }
    fclose(maps);
    return changeable;
}

static struct step_page *new_page(struct step_code *code, uint64_t key, uint64_t ip)
{
    struct step_page *page = calloc(1, sizeof(*page));

    if (!page)
        return NULL;
    page->key = key;
    if (is_changeable(code->tid, ip)) {
        page->watched = calloc(PAGE, sizeof(*page->watched));
        if (!page->watched)
            goto fail;
    }
    HASH_ADD(hh, code->pages, key, sizeof(page->key), page);
    if (!page->hh.tbl)
        goto fail;
    return page;
fail:
    free(page->watched);
    free(page);
    return NULL;
}

static struct step_page *page_of(struct step_code *code, uint64_t ip, enum ptenc_mode mode)
{
    uint64_t key = ip / PAGE * 2 + (mode == PTENC_MODE_32);
    struct step_page *page = code->last;

    if (page && page->key == key)
        return page;
    HASH_FIND(hh, code->pages, &key, sizeof(key), page);
    if (!page)
        page = new_page(code, key, ip);
    code->last = page;
    return page;
}

static void drop_page(struct step_code *code, struct step_page *page)
{
    if (code->last == page)
        code->last = NULL;
    HASH_DEL(code->pages, page);
    free(page->watched);
    free(page);
}

void step_code_forget(struct step_code *code, uint64_t from, uint64_t to)
{
    struct step_page *page, *next;

    HASH_ITER(hh, code->pages, page, next)
    {
        uint64_t start = page->key / 2 * PAGE;

        /* An instruction that begins in the page before may reach into the range. */
        if (start < to && start + PAGE + BYTES > from)
            drop_page(code, page);
    }
}

static void read_insn(const struct step_code *code, struct step_page *page, uint64_t ip, enum ptenc_mode mode)
{
    uint8_t bytes[BYTES] = {0};
    size_t n = fetch_insn(code, ip, bytes);

    decode(&page->insn[ip % PAGE], bytes, n, mode);
    if (page->watched)
        memcpy(page->watched[ip % PAGE], bytes, BYTES);
}

static bool watched_changed(const struct step_code *code, const struct step_page *page, uint64_t ip)
{
    uint8_t bytes[BYTES] = {0};

    return !fetch(code, ip, bytes) || memcmp(bytes, page->watched[ip % PAGE], page->insn[ip % PAGE].length);
}

const struct step_insn *step_code_at(struct step_code *code, uint64_t ip, enum ptenc_mode mode)
{
    struct step_page *page = page_of(code, ip, mode);
    struct step_insn *insn;

    if (!page) {
        code->bad = (struct step_insn){.kind = STEP_BAD};
        return &code->bad;
    }
    insn = &page->insn[ip % PAGE];
    if (insn->kind == STEP_UNREAD || insn->kind == STEP_BAD ||
        (page->watched && watched_changed(code, page, ip)))
        read_insn(code, page, ip, mode);
    return insn;
}

bool step_code_changed(struct step_code *code, uint64_t ip, enum ptenc_mode mode)
{
    const struct step_insn old = *step_code_at(code, ip, mode);
    uint8_t bytes[BYTES];
    struct step_insn now;

    decode(&now, bytes, fetch_insn(code, ip, bytes), mode);
    if (now.kind == old.kind && now.length == old.length && now.displacement == old.displacement)
        return false;
    if (code->last)
        code->last->insn[ip % PAGE].kind = STEP_UNREAD;
    return true;
}
