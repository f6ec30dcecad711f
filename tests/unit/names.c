/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A library whose functions are named in every way: exported and not, in two versions, chosen when
 * it is loaded, the same twice, inlined. make-names makes files of it. Never run.
 */

#define NOINLINE __attribute__((noinline))

volatile int sink;

static NOINLINE int hidden(int n) {
        sink += n;
        return n * 3;
}

int kept(int n);
inline __attribute__((always_inline)) int kept(int n) {
        sink += 7 * n;
        return sink;
}

static inline __attribute__((always_inline)) int inlined(int n) {
        sink -= n;
        return n ^ sink;
}

int exported(int n) {
        sink++;
        return hidden(n) + inlined(n) + kept(n);
}

int again(int n) {
        return inlined(n) + inlined(n + 1) + kept(n) + kept(n + 2);
}

extern __typeof__(exported) same_as_exported __attribute__((alias("exported")));

int versioned_1(int n);
int versioned_1(int n) {
        sink = 1;
        return n;
}

int versioned_2(int n);
int versioned_2(int n) {
        sink = 2;
        return n;
}

__asm__(".symver versioned_1,versioned@V1");
__asm__(".symver versioned_2,versioned@@V2");

static int __chosen_slow(int n) {
        return n + sink;
}

static int __chosen_fast(int n) {
        return n - sink;
}

static __typeof__(exported) *choose(void) {
        return sink ? __chosen_slow : __chosen_fast;
}

int chosen(int n) __attribute__((ifunc("choose")));
