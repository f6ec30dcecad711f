/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Refused are events that say nothing of the task that the kernel names as the current one, because
 * they are hit in interrupts or while it leaves its CPU, and those that our own programs hit while
 * they are in the middle of something: a window that began there would begin while another one
 * does. Which events are hit in interrupts now and then is not known here: the programs leave out
 * those hits (events.bpf.h).
 */

#include "base/trace-event.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "base/near-name.h"
#include "base/sentence.h"
#include "base/system-call.h"

#define TRACEFS "/sys/kernel/tracing"

#define USER_EVENTS "user_events" /* the group */

#define NAME_LENGTH_MAX                                                                            \
        64 /* of a group or an event; the kernel's own limit for those that we see */

#define OUR_OWN       "is hit by tlobd's own BPF programs too"
#define IN_INTERRUPTS "is hit in interrupts, which belong to no task"
#define IN_SWITCHES   "is hit while the kernel switches from one task to another"

/* name: NULL: all of the group. */
static const struct {
        const char *group;
        const char *name;
        const char *why;
} refused[] = {
        { "sched", "sched_switch",
          "is where tlobd itself tells running from waiting and sleeping: measure between others" },
        { "bpf_trace", NULL, OUR_OWN },
        { "exceptions", NULL, OUR_OWN },
        { "kmem", NULL, OUR_OWN },
        { "lock", NULL, OUR_OWN },
        { "mmap_lock", NULL, OUR_OWN },
        { "percpu", NULL, OUR_OWN },
        { "preemptirq", NULL, OUR_OWN },
        { "rcu", NULL, OUR_OWN },
        { "timer", NULL, OUR_OWN },
        { "csd", NULL, IN_INTERRUPTS },
        { "ipi", NULL, IN_INTERRUPTS },
        { "irq", NULL, IN_INTERRUPTS },
        { "irq_vectors", NULL, IN_INTERRUPTS },
        { "nmi", NULL, IN_INTERRUPTS },
        { "msr", NULL, IN_SWITCHES },
        { "tlb", NULL, IN_SWITCHES },
        { "x86_fpu", NULL, IN_SWITCHES },
        { "xen", NULL, IN_SWITCHES },
        { "ftrace", NULL, "is not a tracepoint" },
};

typedef struct EventName {
        char group[NAME_LENGTH_MAX];
        char name[NAME_LENGTH_MAX];
} EventName;

const char *trace_event_of_place(const char *place) {
        size_t n = strlen(TRACE_EVENT_PLACE);

        if (strncmp(place, TRACE_EVENT_USER_PLACE, strlen(TRACE_EVENT_USER_PLACE)) == 0)
                return place;
        return strncmp(place, TRACE_EVENT_PLACE, n) == 0 ? place + n : NULL;
}

/* So that it can be part of a path. */
static bool take_part(const char *text, size_t n, char part[static NAME_LENGTH_MAX]) {
        if (n == 0 || n >= NAME_LENGTH_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!isascii(text[i]) ||
                    (!isalnum((unsigned char) text[i]) && text[i] != '_' && text[i] != '-'))
                        return false;
        memcpy(part, text, n);
        part[n] = '\0';
        return true;
}

static bool parse(const char *event, EventName *ret) {
        const char *colon = strchr(event, ':');
        size_t n = strlen(TRACE_EVENT_USER_PLACE);

        if (strncmp(event, TRACE_EVENT_USER_PLACE, n) == 0) {
                strcpy(ret->group, USER_EVENTS);
                return take_part(event + n, strlen(event + n), ret->name);
        }
        return colon && take_part(event, (size_t) (colon - event), ret->group) &&
               take_part(colon + 1, strlen(colon + 1), ret->name);
}

static int check(const char *event, EventName *ret, char **ret_why) {
        if (!parse(event, ret))
                return sentence_error(-EINVAL, ret_why,
                                      "is not an event: write event:GROUP:NAME, as in "
                                      "event:block:block_rq_issue");
        for (size_t i = 0; i < ELEMENTSOF(refused); i++)
                if (streq(refused[i].group, ret->group) &&
                    (!refused[i].name || streq(refused[i].name, ret->name)))
                        return sentence_error(-EOPNOTSUPP, ret_why, "%s", refused[i].why);
        return 0;
}

int trace_event_check(const char *event, char **ret_why) {
        EventName name;

        return check(event, &name, ret_why);
}

static int is_shown(const struct dirent *entry) {
        return entry->d_type == DT_DIR && entry->d_name[0] != '.';
}

/* "; near names: ..." of what is in that directory, or nothing; NULL: no memory. */
static char *list_near(const char *directory, const char *wanted) {
        _cleanup_free_ char *list = NULL;
        struct dirent **entries = NULL;
        NearNames near;
        int n;

        near_names_init(&near, wanted, strlen(wanted));
        n = scandir(directory, &entries, is_shown, alphasort);
        for (int i = 0; i < n; i++)
                near_names_offer(&near, entries[i]->d_name);
        list = near_names_list(&near, NULL, NULL);
        for (int i = 0; i < n; i++)
                free(entries[i]);
        free(entries);
        return list ? sentence_make("%s%s", *list != '\0' ? "; near names: " : "", list) : NULL;
}

static bool is_of_user(const EventName *event) {
        return streq(event->group, USER_EVENTS);
}

static int complain_unregistered(char **ret_why) {
        if (access(TRACEFS "/user_events_data", F_OK) < 0)
                return sentence_error(-EOPNOTSUPP, ret_why,
                                      "is an event of programs, and this kernel has none "
                                      "(CONFIG_USER_EVENTS)");
        return sentence_error(-EAGAIN, ret_why, "is not there: no program has registered it yet");
}

static int complain_unknown(const EventName *event, char **ret_why) {
        char directory[sizeof(TRACEFS "/events/") + NAME_LENGTH_MAX];
        _cleanup_free_ char *near = NULL;

        if (is_of_user(event))
                return complain_unregistered(ret_why);
        (void) snprintf(directory, sizeof(directory), TRACEFS "/events/%s", event->group);
        if (access(directory, F_OK) == 0) {
                near = list_near(directory, event->name);
                return near ? sentence_error(-ENOENT, ret_why, "is no event of this kernel%s", near)
                            : -ENOMEM;
        }
        near = list_near(TRACEFS "/events", event->group);
        return near ? sentence_error(-ENOENT, ret_why,
                                     "is no event of this kernel, which has no group '%s'%s",
                                     event->group, near)
                    : -ENOMEM;
}

static int open_attribute(const EventName *event, const char *attribute, FILE **ret) {
        char path[sizeof(TRACEFS "/events//") + sizeof(EventName) + 16];

        (void) snprintf(path, sizeof(path), TRACEFS "/events/%s/%s/%s", event->group, event->name,
                        attribute);
        *ret = fopen(path, "re");
        return *ret ? 0 : -errno;
}

/* Does a line of that file have that text in it, or at its beginning? */
static int has_line(FILE *f, const char *text, bool begins) {
        _cleanup_free_ char *line = NULL;
        size_t size = 0;

        while (getline(&line, &size, f) >= 0) {
                const char *found = strstr(line, text);

                if (found && (!begins || found == line))
                        return 1;
        }
        return ferror(f) ? -EIO : 0;
}

/* Has somebody defined it, by a probe in a program or in the kernel? */
static int is_probe(const EventName *event) {
        _cleanup_fclose_ FILE *format = NULL;
        int r;

        r = open_attribute(event, "format", &format);
        return r < 0 ? r : has_line(format, " __probe_", false);
}

static int is_in_program(const EventName *event) {
        _cleanup_fclose_ FILE *uprobes = fopen(TRACEFS "/uprobe_events", "re");
        char line[sizeof(EventName) + 8];
        int r = 0;

        if (!uprobes)
                return errno == ENOENT ? 0 : -errno;
        for (const char *kind = "pr"; r == 0 && *kind != '\0'; kind++) {
                (void) snprintf(line, sizeof(line), "%c:%s/%s ", *kind, event->group, event->name);
                if (fseek(uprobes, 0, SEEK_SET) < 0)
                        return -errno;
                r = has_line(uprobes, line, true);
        }
        return r;
}

static int complain_unreadable(int error, char **ret_why) {
        if (access(TRACEFS "/events", F_OK) < 0)
                return sentence_error(-EAGAIN, ret_why,
                                      "cannot be found: tracefs is not mounted at " TRACEFS);
        return sentence_error(error, ret_why, "cannot be read in " TRACEFS ": %s",
                              strerror(-error));
}

static int read_id(const EventName *event, uint32_t *ret) {
        _cleanup_fclose_ FILE *f = NULL;
        int r;

        r = open_attribute(event, "id", &f);
        if (r < 0)
                return r;
        return fscanf(f, "%" SCNu32, ret) == 1 ? 0 : -EIO;
}

/* Some events are named as functions of the kernel are, and not as the calls that lead there. */
static const char *name_of_call(const char *event) {
        static const struct {
                const char *event;
                const char *call;
        } others[] = {
                { "newfstat", "fstat" }, { "newlstat", "lstat" },      { "newstat", "stat" },
                { "newuname", "uname" }, { "sendfile64", "sendfile" }, { "umount", "umount2" },
        };

        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (streq(others[i].event, event))
                        return others[i].call;
        return event;
}

static bool is_of_call(const EventName *event, TraceEventKind *ret_kind, const char **ret_call) {
        static const struct {
                const char *prefix;
                TraceEventKind kind;
        } kinds[] = {
                { "sys_enter_", TRACE_EVENT_CALL_BEGIN },
                { "sys_exit_", TRACE_EVENT_CALL_END },
        };

        if (!streq(event->group, "syscalls"))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                size_t n = strlen(kinds[i].prefix);

                if (strncmp(event->name, kinds[i].prefix, n) != 0)
                        continue;
                *ret_kind = kinds[i].kind;
                *ret_call = name_of_call(event->name + n);
                return true;
        }
        return false;
}

static bool never_ends(const char *call) {
        return streq(call, "exit") || streq(call, "exit_group") || streq(call, "rt_sigreturn");
}

/* Who sees all system calls tells them by their numbers, which no event has. */
static int find_call(const char *call, TraceEvent *found, char **ret_why) {
        if (found->kind == TRACE_EVENT_CALL_END && never_ends(call))
                return sentence_error(-EOPNOTSUPP, ret_why,
                                      "is never hit: who makes that call does not come back to "
                                      "where it was made");
        if (system_call_find_number(call, &found->id) >= 0)
                return 0;
        return sentence_error(-EOPNOTSUPP, ret_why,
                              "is of a system call that is newer than the libseccomp that tlobd "
                              "has here, or that only programs of another architecture make");
}

static int find_kind(const EventName *event, TraceEventKind *ret_kind, char **ret_why) {
        int r, in_program;

        *ret_kind = TRACE_EVENT_USER;
        if (is_of_user(event))
                return 0;
        *ret_kind = TRACE_EVENT_TRACEPOINT;
        r = is_probe(event);
        if (r <= 0)
                return r;
        in_program = is_in_program(event);
        if (in_program < 0)
                return in_program;
        if (!in_program)
                return sentence_error(-EOPNOTSUPP, ret_why,
                                      "is a probe in the kernel, and there it may be hit by "
                                      "tlobd's own BPF programs too: only probes in programs can "
                                      "be measured between");
        *ret_kind = TRACE_EVENT_PROBE;
        return 0;
}

int trace_event_find(const char *event, TraceEvent *ret, char **ret_why) {
        TraceEvent found = {};
        const char *call;
        EventName name;
        int r;

        r = check(event, &name, ret_why);
        if (r < 0)
                return r;
        r = read_id(&name, &found.id);
        if (r == -ENOENT && access(TRACEFS "/events", F_OK) == 0)
                return complain_unknown(&name, ret_why);
        if (r >= 0)
                r = is_of_call(&name, &found.kind, &call) ? find_call(call, &found, ret_why)
                                                          : find_kind(&name, &found.kind, ret_why);
        if (r < 0)
                return r == -EOPNOTSUPP ? r : complain_unreadable(r, ret_why);
        *ret = found;
        return 0;
}
