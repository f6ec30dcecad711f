/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_FORMATS_H
#define KERNEL_FORMATS_H

#include "kernel/event.h"

/*
 * The "format" files of the kernel on which tlob-v3.page was read, and the parts that they are made
 * of.
 */

#define FORMAT_COMMON                                                                              \
        "format:\n"                                                                                \
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
        "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
        "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FORMAT_INT(name, offset) "\tfield:int " #name ";\toffset:" #offset ";\tsize:4;\tsigned:1;\n"
#define FORMAT_U64(name, offset) "\tfield:u64 " #name ";\toffset:" #offset ";\tsize:8;\tsigned:0;\n"
#define FORMAT_TEXT(name, offset)                                                                  \
        "\tfield:__data_loc char[] " #name ";\toffset:" #offset ";\tsize:4;\tsigned:0;\n"
#define FORMAT_PRINT "\nprint fmt: \"%d\", REC->id\n"

#define FORMATS_V3                                                                                 \
        {                                                                                          \
                [KERNEL_EVENT_ERROR_ENV] =                                                         \
                        "name: error_env_tlob\nID: 466\n" FORMAT_COMMON FORMAT_INT(id, 8)          \
                                FORMAT_TEXT(state, 12) FORMAT_TEXT(event, 16) FORMAT_TEXT(env, 20) \
                                        FORMAT_PRINT,                                              \
                [KERNEL_EVENT_DETAIL] =                                                            \
                        "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_INT(id, 8)         \
                                FORMAT_U64(threshold_ns, 16) FORMAT_U64(running_ns, 24)            \
                                        FORMAT_U64(waiting_ns, 32) FORMAT_U64(sleeping_ns, 40)     \
                                                FORMAT_PRINT,                                      \
                [KERNEL_EVENT_ERROR] = "name: error_tlob\nID: 467\n" FORMAT_COMMON FORMAT_INT(     \
                        id, 8) FORMAT_TEXT(state, 12) FORMAT_TEXT(event, 16) FORMAT_PRINT,         \
        }

/*
 * What a version says that has no breakdown, with the event of changes as that kernel lays it out.
 */
#define FORMAT_CHANGE                                                                              \
        "name: event_tlob\nID: 468\n" FORMAT_COMMON                                                \
        FORMAT_INT(id, 8) FORMAT_TEXT(state, 12) FORMAT_TEXT(event, 16) FORMAT_TEXT(               \
                next_state,                                                                        \
                20) "\tfield:bool final_state;\toffset:24;\tsize:1;\tsigned:0;\n" FORMAT_PRINT

#endif
