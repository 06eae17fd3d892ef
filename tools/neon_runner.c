/*
 * Runs generated AArch64 functions: `neon_runner JOBS RESULTS`.
 *
 * Both files are numbers of 64 bits, little-endian. The jobs begin with their number and then follow each
 * other:
 *
 *   bytes of code, bytes of data, number of words, FPCR at the call,
 *   the words, each a kind and a value (see `word_of`),
 *   the code, then the data, each filled up to 64 bytes.
 *
 * For each job the results have a state, a status and the data: state 0 has the status that the function
 * returned, state 1 the signal that ended it, and state 2 the broken rule of the calling convention (see
 * `call`).
 *
 * The data of a job ends, filled up to 64 bytes, where a page begins that cannot be touched. All code is
 * written first and then made executable once: QEMU before version 8 does not notice code that is written by
 * a second mapping.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint8_t u8;

enum { ROUND = 64, PAGE = 65536, SECONDS = 10 };

/* A job's numbers in front of its words. */
struct head {
    u64 code, data, words, fpcr;
};

static u64 filled(u64 bytes, u64 unit) {
    return (bytes + unit - 1) / unit * unit;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Loses all registers that a call may lose. */
static void clobber(void) {
    __asm__ volatile(
        ".irp r, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n"
        "mov x\\r, #-\\r\n"
        ".endr\n"
        ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "movi v\\r\\().16b, #0xa5\n"
        ".endr\n" ::
            : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
              "x15", "x16", "x17", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
              "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
              "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
}

/* Appends numbers to the context, which has how many there are in each call, the calls so far, and them. */
static u32 record(u64 *context, const u64 *args) {
    u64 *to = context + 2 + context[0] * context[1];
    for (u64 at = 0; at < context[0]; at++)
        to[at] = args[at];
    context[1]++;
    clobber();
    return 0;
}

/* Mixes bytes into others: the addresses of these and of those, and how many. */
static u32 mix(u64 *context, const u64 *args) {
    u8 *to = (u8 *)args[0];
    const u8 *from = (const u8 *)args[1];
    for (u64 at = 0; at < args[2]; at++)
        to[at] = (u8)(to[at] * 31 + from[at]);
    context[0] += args[2];
    clobber();
    return 0;
}

/* Returns its number as a status. */
static u32 status(u64 *context, const u64 *args) {
    context[0]++;
    clobber();
    return (u32)args[0];
}

static const void *const KERNELS[] = {(void *)record, (void *)mix, (void *)status};

/* What a word of a job is: a number, an address in the data, or a kernel. */
static u64 word_of(u64 kind, u64 value, u8 *data) {
    switch (kind) {
    case 0:
        return value;
    case 1:
        return (u64)(data + value);
    default:
        return (u64)KERNELS[value];
    }
}

/*
 * Calls a function with known values in the registers that it must keep, and says whether it has kept them:
 * 0, or 1 to 10 for x19 to x28, 11 to 18 for the low halves of v8 to v15, 19 for x29, 20 for the stack
 * pointer and 21 for FPCR.
 */
u32 call(const void *code, const u64 *args, u32 *status, u64 fpcr);
__asm__(
    ".text\n"
    ".global call\n"
    ".type call, %function\n"
    "call:\n"
    "stp x29, x30, [sp, #-208]!\n"
    "mov x29, sp\n"
    "stp x19, x20, [sp, #16]\n"
    "stp x21, x22, [sp, #32]\n"
    "stp x23, x24, [sp, #48]\n"
    "stp x25, x26, [sp, #64]\n"
    "stp x27, x28, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\n"
    "stp d10, d11, [sp, #112]\n"
    "stp d12, d13, [sp, #128]\n"
    "stp d14, d15, [sp, #144]\n"
    "str x2, [sp, #160]\n"
    "str x3, [sp, #168]\n"
    "adrp x4, call_sp\n"
    "add x4, x4, :lo12:call_sp\n"
    "mov x5, sp\n"
    "str x5, [x4]\n"
    "mov x16, x0\n"
    "mov x0, x1\n"
    ".irp r, 19,20,21,22,23,24,25,26,27,28\n"
    "mov x\\r, #(1000 + \\r)\n"
    ".endr\n"
    ".irp r, 8,9,10,11,12,13,14,15\n"
    "mov x1, #(2000 + \\r)\n"
    "fmov d\\r, x1\n"
    ".endr\n"
    ".irp r, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "mov x\\r, #-7\n"
    ".endr\n"
    "ldr x3, [sp, #168]\n"
    "msr fpcr, x3\n"
    "mov x3, #-7\n"
    "blr x16\n"
    "mov w9, w0\n"
    "mov w0, #0\n"
    ".irp r, 19,20,21,22,23,24,25,26,27,28\n"
    "mov x1, #(1000 + \\r)\n"
    "cmp x\\r, x1\n"
    "mov w2, #(\\r - 18)\n"
    "csel w0, w0, w2, eq\n"
    ".endr\n"
    ".irp r, 8,9,10,11,12,13,14,15\n"
    "mov x1, #(2000 + \\r)\n"
    "fmov x3, d\\r\n"
    "cmp x3, x1\n"
    "mov w2, #(\\r + 3)\n"
    "csel w0, w0, w2, eq\n"
    ".endr\n"
    "adrp x4, call_sp\n"
    "add x4, x4, :lo12:call_sp\n"
    "ldr x5, [x4]\n"
    "mov w2, #19\n"
    "cmp x29, x5\n"
    "csel w0, w0, w2, eq\n"
    "mov x6, sp\n"
    "mov w2, #20\n"
    "cmp x6, x5\n"
    "csel w0, w0, w2, eq\n"
    "mov sp, x5\n"
    "mrs x6, fpcr\n"
    "ldr x3, [sp, #168]\n"
    "mov w2, #21\n"
    "cmp x6, x3\n"
    "csel w0, w0, w2, eq\n"
    "msr fpcr, xzr\n"
    "ldr x2, [sp, #160]\n"
    "str w9, [x2]\n"
    "ldp x19, x20, [sp, #16]\n"
    "ldp x21, x22, [sp, #32]\n"
    "ldp x23, x24, [sp, #48]\n"
    "ldp x25, x26, [sp, #64]\n"
    "ldp x27, x28, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\n"
    "ldp d10, d11, [sp, #112]\n"
    "ldp d12, d13, [sp, #128]\n"
    "ldp d14, d15, [sp, #144]\n"
    "ldp x29, x30, [sp], #208\n"
    "ret\n"
    ".size call, . - call\n"
    ".local call_sp\n"
    ".comm call_sp, 8, 8\n");

static sigjmp_buf back;

static void on_signal(int number) {
    siglongjmp(back, number);
}

/* Signals end a job and not the runner. */
static void catch_signals(void) {
    static u8 stack[65536];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    if (sigaltstack(&other, NULL) != 0)
        fail("sigaltstack");
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM};
    for (unsigned at = 0; at < sizeof numbers / sizeof *numbers; at++)
        if (sigaction(numbers[at], &action, NULL) != 0)
            fail("sigaction");
}

static void *map(u64 bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        fail("mmap");
    return at;
}

/* Runs a job, whose data is at `data`. */
static void run(const struct head *head, const u64 *words, const u8 *code, u8 *data, u64 result[2]) {
    u64 *args = calloc(head->words + 1, sizeof *args);
    if (args == NULL)
        fail("calloc");
    for (u64 at = 0; at < head->words; at++)
        args[at] = word_of(words[2 * at], words[2 * at + 1], data);
    alarm(SECONDS);
    const int number = sigsetjmp(back, 1);
    if (number == 0) {
        u32 status = 0;
        const u32 broken = call(code, args, &status, head->fpcr);
        result[0] = broken == 0 ? 0 : 2;
        result[1] = broken == 0 ? status : broken;
    } else {
        __asm__ volatile("msr fpcr, xzr");
        result[0] = 1;
        result[1] = (u64)number;
    }
    alarm(0);
    free(args);
}

int main(int count, char **names) {
    if (count != 3) {
        fprintf(stderr, "usage: neon_runner JOBS RESULTS\n");
        return 2;
    }
    const int file = open(names[1], O_RDONLY);
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0)
        fail(names[1]);
    const u8 *jobs = mmap(NULL, (u64)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (jobs == MAP_FAILED)
        fail(names[1]);
    FILE *results = fopen(names[2], "wb");
    if (results == NULL)
        fail(names[2]);
    catch_signals();

    const u64 number = *(const u64 *)jobs;
    const struct head **heads = calloc(number + 1, sizeof *heads);
    if (heads == NULL)
        fail("calloc");
    u64 code_bytes = 0, most_data = 0;
    const u8 *at = jobs + 8;
    for (u64 job = 0; job < number; job++) {
        const struct head *head = heads[job] = (const struct head *)at;
        code_bytes += filled(head->code, ROUND);
        if (filled(head->data, ROUND) > most_data)
            most_data = filled(head->data, ROUND);
        at += sizeof *head + 16 * head->words + filled(head->code, ROUND) + filled(head->data, ROUND);
    }

    u8 *code = map(filled(code_bytes + 1, PAGE)), *to = code;
    for (u64 job = 0; job < number; job++) {
        memcpy(to, (const u8 *)(heads[job] + 1) + 16 * heads[job]->words, heads[job]->code);
        to += filled(heads[job]->code, ROUND);
    }
    if (mprotect(code, filled(code_bytes + 1, PAGE), PROT_READ | PROT_EXEC) != 0)
        fail("mprotect");
    __builtin___clear_cache((char *)code, (char *)to);

    /* Guards are in front of the data and behind it. */
    const u64 room = filled(most_data, PAGE);
    u8 *data = map(room + 2 * PAGE) + PAGE;
    if (mprotect(data - PAGE, PAGE, PROT_NONE) != 0 || mprotect(data + room, PAGE, PROT_NONE) != 0)
        fail("mprotect");
    for (u64 job = 0; job < number; job++) {
        const struct head *head = heads[job];
        const u64 *words = (const u64 *)(head + 1);
        u8 *block = data + room - filled(head->data, ROUND);
        memcpy(block, (const u8 *)(words + 2 * head->words) + filled(head->code, ROUND), head->data);
        u64 result[2];
        run(head, words, code, block, result);
        code += filled(head->code, ROUND);
        const int is_written = fwrite(result, sizeof result, 1, results) == 1;
        if (!is_written || fwrite(block, 1, head->data, results) != head->data)
            fail(names[2]);
    }
    if (fclose(results) != 0)
        fail(names[2]);
    return 0;
}
