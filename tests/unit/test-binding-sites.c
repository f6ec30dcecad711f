/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which places in ways.S a binding can have, and how its windows end there. */

#include "binding/sites.h"

#include "binding/keys.h"
#include "binding/resolve.h"
#include "test.h"

static Binding *make(const char *start, const char *stop) {
        Binding *binding = NULL;

        assert_ok(binding_new("x", &binding));
        assert_ok(binding_set_key(binding, "Executable", WAYS_LIBRARY, NULL));
        assert_ok(binding_set_key(binding, "Start", start, NULL));
        assert_ok(binding_set_key(binding, "Stop", stop, NULL));
        assert_ok(binding_set_key(binding, "BudgetSec", "1s", NULL));
        return binding;
}

static void resolve(Binding *binding) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *sentence = NULL;

        if (binding_resolve(binding, &file, &sentence) < 0)
                fail_msg("%s", sentence);
}

static void assert_refused(Binding *binding, const char *words) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *sentence = NULL;

        assert_true(binding_resolve(binding, &file, &sentence) < 0);
        assert_non_null(sentence);
        if (!strstr(sentence, words))
                fail_msg("'%s' has no '%s'.", sentence, words);
}

static void refuse(const char *start, const char *stop, const char *words) {
        _cleanup_(binding_freep) Binding *binding = make(start, stop);

        assert_refused(binding, words);
}

static void accept(const char *start, const char *stop) {
        _cleanup_(binding_freep) Binding *binding = make(start, stop);

        resolve(binding);
}

static void assert_frame(const char *start, const char *stop, bool expected) {
        _cleanup_(binding_freep) Binding *binding = make(start, stop);

        resolve(binding);
        assert_int_equal(binding->resolved.sites.how, TLOB_STOP_PLACE);
        assert_int_equal(binding->resolved.sites.has_frame, expected);
}

static void assert_note(const char *start, const char *stop, const char *words) {
        _cleanup_(binding_freep) Binding *binding = make(start, stop);
        _cleanup_free_ char *note = NULL;

        resolve(binding);
        assert_ok(binding_describe_stop(binding, &note));
        if (!words)
                assert_null(note);
        else if (!note || !strstr(note, words))
                fail_msg("'%s' has no '%s'.", note, words);
}

static void test_inside_an_instruction(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("one_return+5", "other");
        char place[32];

        refuse("one_return+6", "other", "Start=one_return+6 in " WAYS_LIBRARY " is inside the");
        refuse("other", "one_return+0x7", "Stop=one_return+0x7 in " WAYS_LIBRARY " is inside the");
        resolve(binding);
        (void) snprintf(place, sizeof(place), "0x%llx",
                        (unsigned long long) binding->resolved.sites.start.offset + 1);
        refuse(place, "other", "is inside the instruction");

        /* That is known, whatever someone says. */
        assert_ok(binding_set_key(binding, "Start", "one_return+6", NULL));
        assert_ok(binding_set_key(binding, "Unsafe", "yes", NULL));
        assert_refused(binding, "is inside the instruction");
}

static void test_not_known(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("no_size+0", "with_data+3");

        assert_refused(binding, "Start=no_size+0");
        assert_refused(binding,
                       "it is not known which function that is in. If you know that one does, "
                       "write Unsafe=yes");
        refuse("other", "with_data+3", "has bytes that are not instructions");
        assert_ok(binding_set_key(binding, "Unsafe", "yes", NULL));
        resolve(binding);
        assert_false(binding->resolved.sites.has_frame);

        /* A name alone tells that something begins there. */
        assert_ok(binding_set_key(binding, "Unsafe", "", NULL));
        assert_ok(binding_set_key(binding, "Start", "no_size", NULL));
        assert_ok(binding_set_key(binding, "Stop", "other", NULL));
        resolve(binding);
}

/* No probe would be there. */
static void test_prefixes(void **state) {
        refuse("padded_entry", "return",
               "'padded_entry' in " WAYS_LIBRARY
               " is entered or left at an instruction with a prefix");
        refuse("padded_exit", "return", "that this kernel puts no probe on. Measure another");
        refuse("padded_entry+0", "other",
               "Start=padded_entry+0 in " WAYS_LIBRARY " is an instruction");
}

static void assert_same_start(const char *start, const char *place) {
        _cleanup_(binding_freep) Binding *a = make(start, "other"), *b = make(place, "other");

        resolve(a);
        resolve(b);
        assert_int_equal(a->resolved.sites.start.offset, b->resolved.sites.start.offset);
}

/*
 * The kernel makes a call of it, to where children have no code, and which would overwrite what the
 * function keeps below its stack pointer.
 */
static void test_nop(void **state) {
        static const char *const places[] = { "nop_inside+0", "nop_inside+10", "nop_past_endbr+4" };
        static const char *const functions[] = { "nop_inside", "nop_past_endbr" };

        assert_same_start("nop_inside", "nop_inside+5");
        assert_same_start("nop_past_endbr", "nop_past_endbr+0");
        for (size_t i = 0; i < ELEMENTSOF(functions); i++)
                accept(functions[i], "return");
        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                _cleanup_(binding_freep) Binding *binding = make(places[i], "other");

                assert_refused(binding, "is a 5-byte nop");
                assert_ok(binding_set_key(binding, "Unsafe", "yes", NULL));
                assert_refused(binding, "is a 5-byte nop");
                assert_ok(binding_set_key(binding, "Start", "other", NULL));
                assert_ok(binding_set_key(binding, "Stop", places[i], NULL));
                assert_refused(binding, "is a 5-byte nop");
        }
        refuse("nop_loop", "return", "jumps back to its first instruction");
}

/* What runs is what the loader has made of it. */
static void test_relocated(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("nop_inside", "return");

        resolve(binding);
        assert_ok(binding_set_key(binding, "Executable", WAYS_RELOCATED, NULL));
        assert_refused(binding, "is changed when it is loaded (text relocations)");
        assert_ok(binding_set_key(binding, "Unsafe", "yes", NULL));
        assert_refused(binding, "is changed when it is loaded (text relocations)");
}

#ifdef __x86_64__

/* Not even by who writes Unsafe=yes. */
static void test_vector(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("vector_entry", "return");

        assert_refused(binding, "the kernel takes for another one");
        assert_ok(binding_set_key(binding, "Stop", "other", NULL));
        assert_ok(binding_set_key(binding, "Unsafe", "yes", NULL));
        assert_refused(binding, "the kernel takes for another one");
        assert_same_start("vector_past_endbr", "vector_past_endbr+0");
        accept("vector_past_endbr", "return");
        refuse("vector_past_endbr+4", "other", "the kernel takes for another one");
}

#endif

static void test_symbol_that_lies(void **state) {
        refuse("liar", "other", "Start=liar in " WAYS_LIBRARY " is inside the instruction at");
        refuse("other", "liar", "Stop=liar in " WAYS_LIBRARY " is inside the instruction at");
}

/* Nor if somebody insists. */
static void test_system_call(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("system_call+5", "other");

        assert_refused(binding, "Start=system_call+5 in " WAYS_LIBRARY " is an instruction that "
                                "enters the kernel");
        assert_ok(binding_set_key(binding, "Unsafe", "yes", NULL));
        assert_refused(binding, "enters the kernel");
        refuse("other", "system_call+5", "Stop=system_call+5 in " WAYS_LIBRARY);
        refuse("system_call_first", "return", "enters the kernel");
        refuse("vfork", "return", "returns twice");
}

/* What hands the flag of a single step to the program, and what takes a step for each byte. */
static void test_harmful_steps(void **state) {
        refuse("other", "saved_flags+2", "is an instruction that saves the flags");
        accept("other", "saved_flags+3");
        refuse("other", "repeated+2", "is an instruction that repeats itself");
        refuse("repeated+4", "other", "is an instruction that repeats itself");
        accept("other", "repeated+7");
}

static void test_upgrade(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("one_return+5", "other");

        resolve(binding);
        assert_ok(binding_set_key(binding, "Executable", WAYS_UPGRADED, NULL));
        assert_refused(binding, "Start=one_return+5 in " WAYS_UPGRADED " is inside the");
        assert_string_equal(binding->resolved.path, WAYS_LIBRARY);
}

static void test_return(void **state) {
        static const char *const values[] = { "return", "ret-sites" };

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                _cleanup_(binding_freep) Binding *binding = make("two_returns", values[i]);

                resolve(binding);
                assert_int_equal(binding->resolved.sites.how, TLOB_STOP_EXITS);
                assert_int_equal(binding->resolved.sites.exits.n, 2);
                assert_true(binding->resolved.sites.has_frame);
        }
        refuse("one_return+5", "return", "Start=one_return+5 is not the beginning of 'one_return'");
        refuse("pointer_inside", "return", "Stop=return-probe, which breaks programs");
        refuse("no_size", "ret-sites", "neither a symbol nor unwind information");
}

static void refuse_without_probe(const char *start, const char *words) {
        _cleanup_(binding_freep) Binding *binding = make(start, "return");
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *sentence = NULL;

        assert_int_equal(binding_resolve(binding, &file, &sentence), -EOPNOTSUPP);
        if (!strstr(sentence, words) || strstr(sentence, "return-probe"))
                fail_msg("'%s' has no '%s'.", sentence, words);
}

/* Where neither a return probe nor another place in the function helps. */
static void test_no_way_out(void **state) {
        refuse_without_probe("only_jump", "consists only of a jump to 'other', so that a window "
                                          "would end where it begins. Name that one: "
                                          "Function=other");
        refuse_without_probe("only_jump_in_cxx", "Name that one: Function=deeper(int)");
        refuse_without_probe("only_jump_by_pointer", "a jump to another function, so that a window "
                                                     "would end where it begins. Name that one");
        refuse_without_probe("nothing", "only of its return, so that a window would end where it "
                                        "begins. Measure another function");
        refuse_without_probe("calls_abort", "never returns. If you want to know when its work is "
                                            "done, write Stop= with a place");
        refuse_without_probe("only_itself", "never returns. If");
}

static void test_return_probe(void **state) {
        static const char *const starts[] = { "one_return", "pointer_inside", "no_size" };

        for (size_t i = 0; i < ELEMENTSOF(starts); i++) {
                _cleanup_(binding_freep) Binding *binding = make(starts[i], "return-probe");

                resolve(binding);
                assert_int_equal(binding->resolved.sites.how, TLOB_STOP_RETURN_PROBE);
                assert_int_equal(binding->resolved.sites.exits.n, 0);
                assert_true(binding->resolved.sites.has_frame);
        }
        /* There, it would replace something else than the return address. */
        refuse("one_return+5", "return-probe", "is not the beginning of 'one_return'");
        refuse("no_size+0", "return-probe", "Unsafe=yes");
}

static void test_frame(void **state) {
        assert_frame("two_returns", "two_returns+4", true);
        assert_frame("one_return", "one_return+5", true);
        assert_frame("one_return+0", "one_return+5", true);
        assert_frame("one_return+5", "one_return+10", false);
        assert_frame("one_return", "other", false);
}

static void test_start_at_endbr(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("loop_past_endbr", "return");
        uint64_t start;

        resolve(binding);
        start = binding->resolved.sites.start.offset;
        assert_ok(binding_set_key(binding, "Start", "loop_past_endbr+0", NULL));
        resolve(binding);
        assert_int_equal(binding->resolved.sites.start.offset, start);
}

static void test_notes(void **state) {
        assert_note("one_return", "other", NULL);
        assert_note("one_return", "return", "1 way out: 1 return");
        assert_note("in_parts", "return", "3 ways out: 3 returns");
        assert_note("to_itself", "return", "2 ways out: 1 return, 1 tail call (to to_itself),");
        assert_note("tail_call", "return",
                    "2 ways out: 2 tail calls (to other), whose time is not measured");
        assert_note("calls_hidden", "return",
                    "1 way out: 1 tail call (to hidden), whose time is not measured");
        assert_note("calls_cxx", "return", "1 tail call (to deeper(int)), whose");
        assert_note("one_return", "return-probe", "breaks programs that unwind");
}

static void assert_kinds(const char *start, const char *stop, ProbeKind at_start,
                         ProbeKind at_stop) {
        _cleanup_(binding_freep) Binding *binding = make(start, stop);

        resolve(binding);
        assert_int_equal(binding->resolved.start_kind, at_start);
        assert_int_equal(binding->resolved.stop_kind, at_stop);
}

/* Of the instructions that the probes are on: not endbr64, and of several ways out the dearest. */
static void test_kinds(void **state) {
        assert_kinds("one_return", "return", PROBE_EMULATED, PROBE_RETURN);
        assert_kinds("one_return", "return-probe", PROBE_EMULATED, PROBE_EMULATED);
        assert_kinds("two_returns", "two_returns+2", PROBE_STEPPED, PROBE_EMULATED);
        assert_kinds("calls_hidden", "return", PROBE_STEPPED, PROBE_EMULATED);
        assert_kinds("to_itself", "return", PROBE_STEPPED, PROBE_RETURN);
}

static void test_go(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("one_return", "return");

        assert_ok(binding_set_key(binding, "Executable", WAYS_GO, NULL));
        assert_refused(binding, WAYS_GO " is Go code whose table of functions tlobd does not know");
        assert_ok(binding_set_key(binding, "Stop", "other", NULL));
        assert_refused(binding, "goroutines move from thread to thread");
        assert_ok(binding_set_key(binding, "Unsafe", "yes", NULL));
        assert_refused(binding, "goroutines move from thread to thread");
        assert_ok(binding_set_key(binding, "Stop", "return-probe", NULL));
        assert_refused(binding, "which a return probe would end when a stack is moved");
}

/* Not the frame bounds its windows, but the goroutine. */
static void test_go_function(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("main.work", "return");
        _cleanup_free_ char *note = NULL;

        assert_ok(binding_set_key(binding, "Executable", GO_PROGRAM, NULL));
        resolve(binding);
        assert_int_equal(binding->resolved.sites.how, TLOB_STOP_GO);
        assert_false(binding->resolved.sites.has_frame);
        assert_ok(binding_describe_stop(binding, &note));
        assert_non_null(strstr(note, "2 ways out: 2 returns. Calls in which the "
                                     "goroutine waits"));
        assert_ok(binding_set_key(binding, "Start", "main.work+6", NULL));
        assert_refused(binding, "is not the beginning of 'main.work'");
        assert_ok(binding_set_key(binding, "Start", "main.pointer", NULL));
        assert_refused(binding, "Measure another function, or system calls: Syscall=");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_inside_an_instruction),
                cmocka_unit_test(test_not_known),
                cmocka_unit_test(test_prefixes),
                cmocka_unit_test(test_nop),
                cmocka_unit_test(test_relocated),
#ifdef __x86_64__
                cmocka_unit_test(test_vector),
#endif
                cmocka_unit_test(test_system_call),
                cmocka_unit_test(test_harmful_steps),
                cmocka_unit_test(test_symbol_that_lies),
                cmocka_unit_test(test_upgrade),
                cmocka_unit_test(test_return),
                cmocka_unit_test(test_no_way_out),
                cmocka_unit_test(test_return_probe),
                cmocka_unit_test(test_frame),
                cmocka_unit_test(test_start_at_endbr),
                cmocka_unit_test(test_notes),
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_go),
                cmocka_unit_test(test_go_function),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
