/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Gives one input, on standard input, to the function of a fuzzer, without libFuzzer. One that
 * takes longer than some seconds, the SIGALRM ends.
 */

#include <unistd.h>

#include "base/cleanup.h"
#include "fuzz.h"

#define INPUT_MAX   (1 << 20)
#define SECONDS_MAX 10

int main(void) {
        _cleanup_free_ uint8_t *input = malloc(INPUT_MAX), *exact = NULL;
        size_t size = 0;
        ssize_t n;

        fuzz_assert(input);
        while ((n = read(STDIN_FILENO, input + size, INPUT_MAX - size)) > 0)
                size += (size_t) n;
        fuzz_assert(n == 0 && size < INPUT_MAX);

        /* Of its own length, so that a sanitizer sees who reads behind its end. */
        exact = malloc(size > 0 ? size : 1);
        fuzz_assert(exact);
        memcpy(exact, input, size);
        (void) alarm(SECONDS_MAX);
        return LLVMFuzzerTestOneInput(exact, size);
}
