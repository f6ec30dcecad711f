/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A stripped program, with the table that Go writes of its functions in the layout of Go 1.LAYOUT.
 * C code comes first, as with cgo. RELOCATED: the table is where a linker of C puts it in a program
 * that can be loaded anywhere.
 */

        .text
c_code:
        ret
        .balign 64
text:

/* As Go begins: with more stack if there is too little, and then again. */
work:
        cmp 0x10(%r14), %rsp
        jbe more
        push %rbp
        mov %rsp, %rbp
        call serve
        test %eax, %eax
        jne other
        pop %rbp
        ret
other:
        pop %rbp
        ret
more:
        call morestack
        jmp work
        .balign 64, 0xcc
serve:
        xor %eax, %eax
        ret
        .balign 32, 0xcc
morestack:
        ret
        .balign 32, 0xcc

/* To another goroutine: r14 is another one from the push on. */
mcall:
        mov %rax, %rdx
        mov %r14, %rax
        push %rbx
        mov %rsi, %r14
        push %rax
        mov (%rdx), %r12
        call *%r12
        pop %rax
        ret
        .balign 32, 0xcc
schedule:
        cmp 0x10(%r14), %rsp
        jbe 1f
        push %rbp
        pop %rbp
        ret
1:      call morestack
        jmp schedule
        .balign 32, 0xcc

/* Much stack: what it needs is computed first. */
large:
        lea -0x10000(%rsp), %r12
        cmp 0x10(%r14), %r12
        jbe 1f
        sub $0x10080, %rsp
        lea table_of_switch(%rip), %rcx
        jmp *(%rcx, %rax, 8)
large_case:
        add $0x10080, %rsp
        ret
1:      call morestack
        jmp large
        .balign 64, 0xcc
wrapper:
        mov 8(%rax), %rax
        jmp serve
        .balign 32, 0xcc

/* As nobody makes them. */
loop:
        dec %rax
        jne loop
        ret
        .balign 32, 0xcc
pointer:
        jmp *%rdx
        .balign 32, 0xcc

/* What is in r14: as after a call of code in assembler, and as such code does. */
reloads:
        mov %rax, %r14
        mov %fs:-8, %r14
        ret
        .balign 32, 0xcc
replaces:
        lea 8(%rax), %r14
        ret
        .balign 32, 0xcc
again:
        push %rbp
        pop %rbp
        test %eax, %eax
        jne 1f
        ret
1:      jmp again
        .balign 32, 0xcc
text_end:

#ifdef RELOCATED
        .section .data.rel.ro, "aw", @progbits
#else
        .section .rodata
#endif
table_of_switch:
        .quad large_case
        .text

#if LAYOUT >= 18
.macro address of
        .long \of - text
.endm
.macro place of
        .long \of - list
.endm
#else
.macro address of
        .quad \of
.endm
#if LAYOUT >= 16
.macro place of
        .quad \of - list
.endm
#else
.macro place of
        .quad \of - table
.endm
#endif
#endif

.macro details of, name
details_\of:
        address \of
        .long \name - names
.endm

#ifdef RELOCATED
        .section .go.buildinfo, "aw", @progbits
        .quad 0
        .section .data.rel.ro, "aw", @progbits
        .quad c_code, text, 0xfffffff1
        .balign 32
#else
        .section .gopclntab, "a", @progbits
#endif
table:
#if LAYOUT >= 20
        .long 0xfffffff1
#elif LAYOUT >= 18
        .long 0xfffffff0
#elif LAYOUT >= 16
        .long 0xfffffffa
#else
        .long 0xfffffffb
#endif
        .byte 0, 0, 1, 8
        .quad 12
#if LAYOUT >= 18
        .quad 1, text, names - table, 0, 0, 0, list - table
#elif LAYOUT >= 16
        .quad 1, names - table, 0, 0, 0, list - table
#else
        .set names, table
#endif

list:
        address work
        place details_work
        address serve
        place details_serve
        address morestack
        place details_morestack
        address mcall
        place details_mcall
        address schedule
        place details_schedule
        address large
        place details_large
        address wrapper
        place details_wrapper
        address loop
        place details_loop
        address pointer
        place details_pointer
        address reloads
        place details_reloads
        address replaces
        place details_replaces
        address again
        place details_again
        address text_end

        details work, name_work
        details serve, name_serve
        details morestack, name_morestack
        details mcall, name_mcall
        details schedule, name_schedule
        details large, name_large
        details wrapper, name_wrapper
        details loop, name_loop
        details pointer, name_pointer
        details reloads, name_reloads
        details replaces, name_replaces
        details again, name_again

#if LAYOUT >= 16
names:
#endif
name_work:
        .asciz "main.work"
name_serve:
        .asciz "net/http.(*conn).serve"
name_morestack:
        .asciz "runtime.morestack"
name_mcall:
        .asciz "runtime.mcall"
name_schedule:
        .asciz "runtime.schedule"
name_large:
        .asciz "main.large"
name_wrapper:
        .asciz "main.(*T).wrapper"
name_loop:
        .asciz "main.loop"
name_pointer:
        .asciz "main.pointer"
name_reloads:
        .asciz "main.reloads"
name_replaces:
        .asciz "main.replaces"
name_again:
        .asciz "main.again"
