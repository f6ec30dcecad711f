/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* file/patches.h, of this process. */

#include "file/patches.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "elf/changed-code.h"
#include "temporary.h"
#include "test.h"

#define SIZE  8192
#define PLACE 5000 /* in the second page: that of the exit is in the first */
#define EXIT  100

#if defined(__x86_64__)
#define ENTRY      0x55, 0x48, 0x89, 0xe5, 0x90, 0x90 /* push %rbp; mov %rsp, %rbp; nop; nop */
#define BREAKPOINT 0xcc
#elif defined(__aarch64__)
#define ENTRY      0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91
#define BREAKPOINT 0xa0, 0x00, 0x20, 0xd4
#endif

#ifdef ENTRY

static const uint8_t entry[] = { ENTRY };
static const uint8_t breakpoint[] = { BREAKPOINT };

typedef struct Patched {
        Temporary tmp;
        Binding *binding;
        uint64_t exits[1];
        int fd;
        uint8_t *code;
} Patched;

static int set_up(void **state) {
        Patched *patched = calloc(1, sizeof(*patched));
        uint8_t bytes[SIZE];
        BindingResolved *resolved;

        assert_non_null(patched);
        temporary_init(&patched->tmp);
        memset(bytes, 0, sizeof(bytes));
        memcpy(bytes + PLACE, entry, sizeof(entry));
        memcpy(bytes + EXIT, entry, sizeof(entry));
        patched->fd =
                open(temporary_path(&patched->tmp, "code"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(patched->fd, bytes, sizeof(bytes)), sizeof(bytes));
        patched->code =
                mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, patched->fd, 0);
        assert_true(patched->code != MAP_FAILED);

        assert_ok(binding_new("patched", &patched->binding));
        patched->binding->view.main_pid = (uint32_t) getpid();
        patched->exits[0] = EXIT;
        resolved = &patched->binding->resolved;
        resolved->mapped = file_identify_mapping(patched->fd);
        resolved->sites.start.offset = PLACE;
        resolved->sites.how = TLOB_STOP_EXITS;
        resolved->sites.exits = (FunctionExits) { .offsets = patched->exits, .n = 1 };
        *state = patched;
        return 0;
}

static int tear_down(void **state) {
        Patched *patched = *state;

        patched->binding->resolved.sites.exits = (FunctionExits) {};
        binding_free(patched->binding);
        assert_ok(munmap(patched->code, SIZE));
        (void) close(patched->fd);
        temporary_done(&patched->tmp);
        free(patched);
        return 0;
}

static void expect(const Patched *patched, uint64_t offset) {
        Patch found = {};

        assert_int_equal(patches_find(patched->binding, patched->fd, &found), offset > 0);
        assert_int_equal(found.offset, offset);
        assert_int_equal(found.pid, offset > 0 ? getpid() : 0);
}

static void test_hook(void **state) {
        static const uint8_t jump[] = { 0xe9, 0x12, 0x34, 0x56, 0x78 };
        Patched *patched = *state;

        expect(patched, 0);
        memcpy(patched->code + PLACE, jump, sizeof(jump));
        expect(patched, PLACE);
        memcpy(patched->code + PLACE, entry, sizeof(entry));
        expect(patched, 0);
        memcpy(patched->code + EXIT, jump, sizeof(jump));
        expect(patched, EXIT);
        /* Nothing is to go there. */
        patched->binding->resolved.sites.exits.n = 0;
        expect(patched, 0);
}

/* Of whoever has set it. */
static void test_breakpoint(void **state) {
        Patched *patched = *state;

        memcpy(patched->code + PLACE, breakpoint, sizeof(breakpoint));
        expect(patched, 0);
}

static void test_other_code(void **state) {
        Patched *patched = *state;

        /* Data, and what is no place. */
        patched->code[PLACE - 1] = 0xe9;
        patched->code[PLACE + sizeof(entry)] = 0xe9;
        expect(patched, 0);
        patched->code[PLACE] = 0xe9;
        assert_ok(mprotect(patched->code, SIZE, PROT_READ | PROT_WRITE));
        expect(patched, 0);
        assert_ok(mprotect(patched->code, SIZE, PROT_READ | PROT_EXEC));
        expect(patched, PLACE);
        /* In another file. */
        patched->binding->resolved.mapped.inode++;
        expect(patched, 0);
        patched->binding->resolved.mapped.inode = 0;
        expect(patched, 0);
}

/* What a process keeps of a file that was written to since; or of another layer of an overlay. */
static void test_older_than_the_file(void **state) {
        Patched *patched = *state;
        FileStamp *stamp = &patched->binding->resolved.stamp;
        Patch found = {};

        patched->code[PLACE] = 0xe9;
        stamp->mtime_ns = UINT64_C(1000000000);
        assert_int_equal(patches_find(patched->binding, patched->fd, &found), 1);
        assert_false(found.is_outdated);
        stamp->mtime_ns = ((uint64_t) time(NULL) + 2) * UINT64_C(1000000000);
        assert_int_equal(patches_find(patched->binding, patched->fd, &found), 1);
        assert_true(found.is_outdated);
        stamp->born_ns = stamp->mtime_ns;
        expect(patched, 0);
}

static void test_no_process(void **state) {
        Patched *patched = *state;

        patched->code[PLACE] = 0xe9;
        patched->binding->view.main_pid = 0;
        expect(patched, 0);
        patched->binding->view.main_pid = UINT32_C(1) << 30;
        expect(patched, 0);
}

/* Behind the instruction, there may be another probe, or anything. */
static void test_instruction(void **state) {
        uint8_t memory[sizeof(entry)];

        memcpy(memory, entry, sizeof(entry));
        assert_false(code_is_changed(entry, memory, sizeof(entry)));
        memcpy(memory, breakpoint, sizeof(breakpoint));
        assert_false(code_is_changed(entry, memory, sizeof(entry)));
        memcpy(memory, entry, sizeof(entry));
#if defined(__x86_64__)
        memory[1] = 0xcc;
        assert_false(code_is_changed(entry, memory, sizeof(entry)));
        memory[0] = 0xe9;
        assert_true(code_is_changed(entry, memory, sizeof(entry)));

        /* Under a breakpoint there can be a part of a hook that begins before it. */
        memcpy(memory, entry, sizeof(entry));
        memory[1] = 0xcc;
        memory[2] = 0x34;
        assert_true(code_is_changed(entry + 1, memory + 1, sizeof(entry) - 1));
        memory[2] = entry[2];
        assert_false(code_is_changed(entry + 1, memory + 1, sizeof(entry) - 1));

        /* The kernel's own calls. */
        assert_false(code_is_changed((const uint8_t[]) { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
                                     (const uint8_t[]) { 0xe8, 0x12, 0x34, 0x56, 0x78 }, 5));
#else
        memory[4] = 0x12;
        assert_false(code_is_changed(entry, memory, sizeof(entry)));
        memory[0] = 0x12;
        assert_true(code_is_changed(entry, memory, sizeof(entry)));
#endif
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_hook, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_breakpoint, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_other_code, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_older_than_the_file, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_no_process, set_up, tear_down),
                cmocka_unit_test(test_instruction),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* What code is there is not known on other machines. */
int main(void) {
        return 0;
}

#endif
