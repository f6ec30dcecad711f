/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DAEMON_H
#define DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "backend/backend.h"
#include "base/cleanup.h"
#include "scenario.h"
#include "tlob-bus.h"

/*
 * A daemon in this process, and a client on the other side of its bus. Only what the daemon does
 * counts, and fails.
 */

/* Whatever is found wrong: written to standard error; ends the process with status 1. */
_Noreturn void wrong(const char *format, ...) _printf_(1, 2);

#define must(condition)                                                                            \
        do {                                                                                       \
                if (!(condition))                                                                  \
                        wrong("%s:%i: %s does not hold", __FILE__, __LINE__, #condition);          \
        } while (0)

/* Whether this was what failed: with EINTR and parts of files all must go well. */
bool may_fail(void);

/* This program, which all bindings are on. */
const char *daemon_program(void);

/* Makes its directories in that one. */
void daemon_prepare(const char *directory);

/* Writes its settings, and its file of bindings. */
void daemon_write_config(const char *settings, const char *bindings);

/* ops: its back ends. Returns whether it runs. */
bool daemon_start(const BackendOps *const *ops);

/* It ends, as after SIGTERM, and has lost no descriptor. Then nothing fails any more. */
void daemon_stop(void);

/* Its loop is over, or has never begun. */
bool daemon_is_over(void);
ScenarioEnd daemon_end(void);

/* What it does from now on may fail; then, no more. */
void daemon_arm(void);
void daemon_spare(void);

/* Until there is nothing left to do, on either side. */
void daemon_settle(void);

/* One turn of each side, which waits for that long at most; returns whether anything was done. */
bool daemon_turn(uint64_t usec);

/* How many entries the journal was sent by now. */
unsigned daemon_count_entries(void);

/* Calls a method. NULL: the daemon has ended, or refused it with a sentence. */
sd_bus_message *daemon_call(const char *path, const char *interface, const char *member,
                            const char *types, ...);

/* One of its manager; returns whether it was done. It must be, if nothing has failed. */
#define daemon_do(...)                                                                             \
        ({                                                                                         \
                sd_bus_message *_answer =                                                          \
                        daemon_call(TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, __VA_ARGS__);       \
                must(_answer || may_fail());                                                       \
                sd_bus_message_unref(_answer);                                                     \
                _answer;                                                                           \
        })

/* Whether it was removed; may fail. */
bool daemon_remove(const char *name);

/* The name of the last error that was an answer. */
const char *daemon_refusal(void);

/* A property of the manager of type t or u; 0: that was what failed. */
uint64_t daemon_get(const char *property);

/* Reloads until so many bindings are active; returns whether they were in the end. */
bool daemon_reload_until_active(uint64_t n);

/* It says that it cannot go on until somebody restarts it. */
void daemon_give_up(void);

#endif
