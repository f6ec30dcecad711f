/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where the kernel has what: by the program that visits its symbols, as /proc/kallsyms has it for
 * root.
 */

#include "bpf/kernel-symbols.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "test.h"

/* The address of a symbol; or, without a name, of the first one after that address. */
static uint64_t listed(const char *wanted, uint64_t after) {
        _cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
        char line[1024], name[256];
        uint64_t address;

        assert_non_null(f);
        while (fgets(line, sizeof(line), f)) {
                assert_int_equal(sscanf(line, "%" SCNx64 " %*c %255s", &address, name), 2);
                if (wanted ? streq(name, wanted) : address > after)
                        return address;
        }
        return 0;
}

static void assert_function(const struct tlob_text *found, uint64_t begin) {
        assert_int_not_equal(begin, 0);
        assert_int_equal(found->begin, begin);
        assert_int_equal(found->end, listed(NULL, begin));
}

static void test_addresses_are_those_of_the_kernel(void **state) {
        struct tlob_symbols found = {};

        assert_ok(kernel_symbols_find(&found));
        assert_int_equal(found.interrupts.begin,
                         listed("asm_common_interrupt", 0) ?: listed("__irqentry_text_start", 0));
        assert_int_equal(found.interrupts.end, listed("__irqentry_text_end", 0));
        assert_function(&found.softirqs, listed("handle_softirqs", 0) ?: listed("__do_softirq", 0));
        assert_function(&found.network, listed("net_rx_action", 0));
        assert_int_equal(found.per_cpu_offset, listed("__per_cpu_offset", 0));
        assert_int_equal(found.steal_time, listed("steal_time", 0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_addresses_are_those_of_the_kernel),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
