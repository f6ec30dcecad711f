/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DEBUG_SERVERS_H
#define DEBUG_SERVERS_H

#include "base/cleanup.h"
#include "elf/file.h"

/*
 * The debug files of stripped programs, from the servers that DEBUGINFOD_URLS names: see
 * debuginfod(8). Where that is not set, nothing is asked; no library is loaded before something is.
 */
typedef struct DebugServers DebugServers;

/* NULL if none are to be asked. */
DebugServers *debug_servers_new(void);
DebugServers *debug_servers_free(DebugServers *servers);
DEFINE_CLEANUP(DebugServers, debug_servers_free);

/*
 * As ElfDebugFinder; userdata: DebugServers. Shows the progress on a terminal. Says once what does
 * not work, and asks no more then; ^C ends the program.
 */
char *debug_servers_find(const ElfFile *elf, void *userdata);

/* How there could be names, besides by what is installed here: to be put after that. */
const char *debug_servers_advise(const DebugServers *servers);

#endif
