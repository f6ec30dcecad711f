/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions that are left in ways of which the test knows the places: a label "NAME_1", "NAME_2" ... is at each way
 * out. Written as compilers write them, unwind information included. None of them is ever run.
 *
 * With UPGRADED, an instruction is longer; with GO, the file has a section by which Go's programs are known.
 */

#ifdef GO
        .section .gopclntab, "a", @progbits
        .quad 0
#endif

        .text

.macro function name
        .globl \name
        .type \name, @function
\name:
        .cfi_startproc
.endm

.macro end name
        .cfi_endproc
        .size \name, . - \name
.endm

.macro way name
        .globl \name
\name:
.endm

function other
.Lother:
way other_1
        ret
end other

function one_return
        endbr64
#ifdef UPGRADED
        push %r12
#else
        push %rbx
#endif
        .cfi_adjust_cfa_offset 8
        call .Lother
        pop %rbx
        .cfi_adjust_cfa_offset -8
way one_return_1
        ret
end one_return

function two_returns
        test %edi, %edi
        je 1f
way two_returns_1
        ret
1:      xor %eax, %eax
way two_returns_2
        rep ret
        nopl 0(%rax)
end two_returns

function tail_call
        test %edi, %edi
        je 1f
way tail_call_1
        jmp .Lother
1:
way tail_call_2
        jmp *other@GOTPCREL(%rip)
end tail_call

/* Not through a stub, which has no name. */
function calls_hidden
        xor %eax, %eax
way calls_hidden_1
        jmp hidden
end calls_hidden

        .type hidden, @function
hidden:
        .cfi_startproc
        ret
end hidden

/* The jumps lead on, because the frame is still there; or because of the name of where they lead. */
function in_parts
        test %edi, %edi
        je in_parts.cold
        push %rbx
        .cfi_adjust_cfa_offset 8
        jmp part_of_others
2:      pop %rbx
        .cfi_adjust_cfa_offset -8
3:
way in_parts_1
        ret
end in_parts

        .type part_of_others, @function
part_of_others:
        .cfi_startproc
        .cfi_adjust_cfa_offset 8
        test %esi, %esi
        je 2b
        pop %rbx
        .cfi_adjust_cfa_offset -8
way in_parts_2
        ret
end part_of_others

        .type in_parts.cold, @function
in_parts.cold:
        .cfi_startproc
        cmp $7, %edi
        je 1f
way in_parts_3
        ret
1:      jmp 3b
end in_parts.cold

/* Without a frame, only the name tells. */
function calls_cold
        test %edi, %edi
        jne 1f
        jmp calls_cold.cold
1:
way calls_cold_1
        ret
end calls_cold

        .type calls_cold.cold, @function
calls_cold.cold:
        .cfi_startproc
way calls_cold_2
        ret
end calls_cold.cold

/* Whether the jump to it is taken cannot be told at the jump. */
function conditional
        test %edi, %edi
        je rest
way conditional_1
        ret
end conditional

        .type rest, @function
rest:
        .cfi_startproc
        xor %eax, %eax
way conditional_2
        jmp .Lother
end rest

function switch_by_distance
        cmp $1, %edi
        ja 3f
        lea 9f(%rip), %rdx
        mov %edi, %edi
        movslq (%rdx,%rdi,4), %rax
        add %rdx, %rax
        jmp *%rax
1:
way switch_by_distance_1
        ret
2:      nop
way switch_by_distance_2
        ret
3:
way switch_by_distance_3
        jmp .Lother
end switch_by_distance

        .section .rodata
        .p2align 2
9:      .long 1b - 9b, 2b - 9b
        .text

function switch_without_track
        notrack jmp *%rdi
        nop
way switch_without_track_1
        ret
end switch_without_track

function pointer_in_frame
        push %rbx
        .cfi_adjust_cfa_offset 8
        jmp *%rdi
        pop %rbx
        .cfi_adjust_cfa_offset -8
way pointer_in_frame_1
        ret
end pointer_in_frame

function pointer
        test %rdi, %rdi
        je 1f
way pointer_1
        jmp *8(%rdi)
1:
way pointer_2
        ret
end pointer

/* goto *label */
function pointer_inside
        lea 1f(%rip), %rax
        jmp *%rax
        nop
1:      ret
end pointer_inside

function pointer_by_table
        jmp *%rdi
        nop
7:      ret
end pointer_by_table

        .data
        .p2align 3
        .quad 7b
        .text

/* An entry point of hand-written code: no unwind information. */
        .globl pointer_unknown
        .type pointer_unknown, @function
pointer_unknown:
        test %rdi, %rdi
        je 1f
        jmp *%rdi
1:      ret
        .size pointer_unknown, . - pointer_unknown

        .globl hand_written
        .type hand_written, @function
hand_written:
        test %rdi, %rdi
        je 1f
way hand_written_1
        jmp .Lother
1:
way hand_written_2
        ret
        .size hand_written, . - hand_written

/* The same, by stubs of the linker, of which there is unwind information. */
        .globl hand_to_stub
        .type hand_to_stub, @function
hand_to_stub:
        test %edi, %edi
        je 1f
way hand_to_stub_1
        jmp elsewhere@PLT
1:      xor %eax, %eax
way hand_to_stub_2
        ret
        .size hand_to_stub, . - hand_to_stub

        .globl hand_to_stub_perhaps
        .type hand_to_stub_perhaps, @function
hand_to_stub_perhaps:
        test %edi, %edi
        je elsewhere@PLT
        ret
        .size hand_to_stub_perhaps, . - hand_to_stub_perhaps

        .globl no_size
        .type no_size, @function
no_size:
        ret

/* Only its unwind information tells its size. */
function only_unwind
        push %rbx
        .cfi_adjust_cfa_offset 8
        pop %rbx
        .cfi_adjust_cfa_offset -8
way only_unwind_1
        ret
        .cfi_endproc

function runs_on
        xor %eax, %eax
end runs_on

function never_returns
        endbr64
1:      pause
        jmp 1b
end never_returns

function calls_abort
        push %rbx
        .cfi_adjust_cfa_offset 8
        call .Lother
end calls_abort

function with_data
        jmp 1f
        .byte 0x06
1:      ret
end with_data

/* The data takes the first byte of what follows for its own. */
function with_hidden_data
        jmp 1f
        .byte 0xb8
1:      ret
        nopl 0(%rax)
end with_hidden_data

function with_kernel_code
        cli
        ret
end with_kernel_code

function to_itself
2:      dec %rdi
        je 1f
way to_itself_1
        jmp 2b
1:
way to_itself_2
        ret
end to_itself

function loop_at_start
1:      dec %rdi
        jne 1b
        ret
end loop_at_start

function loop_past_endbr
        endbr64
1:      dec %rdi
        jne 1b
way loop_past_endbr_1
        ret
end loop_past_endbr

function only_endbr
        endbr64
way only_endbr_1
        ret
end only_endbr

function nothing
        ret
end nothing

function only_jump
        jmp .Lother
end only_jump

function only_jump_in_cxx
        jmp _Z6deeperi
end only_jump_in_cxx

function only_jump_by_pointer
        jmp *other@GOTPCREL(%rip)
end only_jump_by_pointer

function only_itself
1:      jmp 1b
end only_itself

function calls_cxx
        xor %eax, %eax
way calls_cxx_1
        jmp _Z6deeperi
end calls_cxx

        .type _Z6deeperi, @function
_Z6deeperi:
        .cfi_startproc
        ret
end _Z6deeperi

function recursive
1:      push %rbx
        .cfi_adjust_cfa_offset 8
        call 1b
        pop %rbx
        .cfi_adjust_cfa_offset -8
way recursive_1
        ret
end recursive

function nop_inside
        .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
        mov %rdi, -8(%rsp)
        .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
        mov -8(%rsp), %rax
way nop_inside_1
        ret
end nop_inside

function nop_past_endbr
        endbr64
        .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
way nop_past_endbr_1
        ret
end nop_past_endbr

/* With a vector instruction, which the kernel takes for a jump. */
function vector_entry
        vmovdqa %xmm0, (%rdi)
        ret
end vector_entry

function vector_past_endbr
        endbr64
        vmovdqa %xmm0, (%rdi)
way vector_past_endbr_1
        ret
end vector_past_endbr

function nop_loop
1:      .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
        mov %rdi, -8(%rsp)
        dec %rdi
        jne 1b
        mov -8(%rsp), %rax
        ret
end nop_loop

/* Looks at the guard of the stack, and goes on to what is given if that is another one. */
.macro look_by_gcc failed
        mov 8(%rsp), %rdx
        sub %fs:0x28, %rdx
        jne \failed
.endm

.macro open_frame
        push %rbx
        .cfi_adjust_cfa_offset 8
        sub $24, %rsp
        .cfi_adjust_cfa_offset 24
.endm

.macro close_frame
        add $24, %rsp
        .cfi_remember_state
        .cfi_adjust_cfa_offset -24
        mov %rbx, %rax
        pop %rbx
        .cfi_adjust_cfa_offset -8
.endm

function guarded
        open_frame
        mov 8(%rsp), %rdx
        sub %fs:0x28, %rdx
way guarded_1
        jne 1f
        close_frame
        ret
        .cfi_restore_state
1:      call .Lother
end guarded

function guarded_twice
        open_frame
        test %edi, %edi
        je 2f
        mov %fs:0x28, %rax
        cmp 8(%rsp), %rax
way guarded_twice_1
        jne 1f
        close_frame
        ret
        .cfi_restore_state
2:      mov 8(%rsp), %rdx
        xor %fs:0x28, %rdx
way guarded_twice_2
        jne 1f
        close_frame
        ret
        .cfi_restore_state
1:      call .Lother
end guarded_twice

/* Something gets to the return past the guard. */
function guard_bypassed
        open_frame
        test %edi, %edi
        je 2f
        look_by_gcc 1f
2:      close_frame
way guard_bypassed_1
        ret
        .cfi_restore_state
1:      call .Lother
end guard_bypassed

/* The same from a part of the function that lies elsewhere. */
function guard_bypassed_from_cold
        open_frame
        test %edi, %edi
        je .Lguard_bypassed_cold
        look_by_gcc 1f
.Lguard_bypassed_back:
        close_frame
way guard_bypassed_from_cold_1
        ret
        .cfi_restore_state
1:      call .Lother
end guard_bypassed_from_cold

        .type guard_bypassed_from_cold.cold, @function
guard_bypassed_from_cold.cold:
        .cfi_startproc
        .cfi_def_cfa_offset 40
.Lguard_bypassed_cold:
        inc %rbx
        jmp .Lguard_bypassed_back
end guard_bypassed_from_cold.cold

/* Not before every return. */
function guard_before_one
        open_frame
        test %edi, %edi
        je 2f
        look_by_gcc 1f
        close_frame
way guard_before_one_1
        ret
        .cfi_restore_state
2:      close_frame
way guard_before_one_2
        ret
        .cfi_restore_state
1:      call .Lother
end guard_before_one

/* Frames of two sizes. */
function guard_in_two_frames
        test %edi, %edi
        je 2f
        open_frame
        look_by_gcc 1f
        close_frame
way guard_in_two_frames_1
        ret
2:      sub $24, %rsp
        .cfi_adjust_cfa_offset 24
        look_by_gcc 1f
        add $24, %rsp
        .cfi_adjust_cfa_offset -24
way guard_in_two_frames_2
        ret
1:      call .Lother
end guard_in_two_frames

/* How deep the stack is, only the frame pointer tells. */
function guard_in_frame_of_any_size
        push %rbp
        .cfi_adjust_cfa_offset 8
        mov %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub %rdi, %rsp
        mov -8(%rbp), %rdx
        sub %fs:0x28, %rdx
way guard_in_frame_of_any_size_1
        jne 1f
        leave
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_restore_state
1:      call .Lother
end guard_in_frame_of_any_size

/* What comes after it is measured, too. */
function guard_before_call
        open_frame
        look_by_gcc 1f
        call .Lother
        close_frame
way guard_before_call_1
        ret
        .cfi_restore_state
1:      call .Lother
end guard_before_call

/* Only the first return is behind one. */
function guard_before_first
        open_frame
        look_by_gcc 1f
        close_frame
way guard_before_first_1
        ret
        .cfi_restore_state
        mov %rdi, %rax
        close_frame
way guard_before_first_2
        ret
        .cfi_restore_state
1:      call .Lother
end guard_before_first

/* Another word of the thread, another branch, and another comparison. */
function no_guard
        open_frame
        mov 8(%rsp), %rdx
        sub %fs:0x30, %rdx
        jne 1f
        mov 8(%rsp), %rdx
        sub %fs:0x28, %rdx
        jb 1f
        mov 8(%rsp), %rdx
        sub %fs:0x28, %rdx
        test %edi, %edi
        jne 1f
        mov %fs:0x28, %rdx
        cmp $7, %eax
        jne 1f
        close_frame
way no_guard_1
        ret
        .cfi_restore_state
1:      call .Lother
end no_guard

/* A symbol that lies: it is in the middle of the first instruction. */
        .globl liar
        .type liar, @function
        .set liar, lied_about + 2
        .size liar, 4
function lied_about
        mov $39, %eax
        nop
        ret
end lied_about

function system_call
        mov $39, %eax
        syscall
        ret
end system_call

function system_call_first
        syscall
        ret
end system_call_first

function saved_flags
        xor %eax, %eax
        pushf
        popf
        ret
end saved_flags

function repeated
        xor %eax, %eax
        rep stosb
        rep stosq
        stosq
        ret
end repeated

function vfork
        push %rbx
        .cfi_adjust_cfa_offset 8
        pop %rbx
        .cfi_adjust_cfa_offset -8
        ret
end vfork

/* Padded by prefixes of a segment, as assemblers do for branches. */
function padded_entry
        .byte 0x2e
        xor %eax, %eax
way padded_entry_1
        ret
end padded_entry

function padded_exit
        test %edi, %edi
        je 1f
way padded_exit_1
        ret
1:      xor %eax, %eax
way padded_exit_2
        .byte 0x3e
        ret
end padded_exit

#ifdef RELOCATED
function relocated
        movabs $relocated, %rax
        ret
end relocated
#endif

        .section .note.GNU-stack, "", @progbits
