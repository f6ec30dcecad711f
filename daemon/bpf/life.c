/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How the BPF back end comes and goes: its parts, in the order in which they need each other, and
 * what the programs send, handed to the part that it is for. The scheduler hooks are attached as
 * long as the back end exists, so the manager makes one only when there is a binding for it.
 */

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>

#include "base/program.h"
#include "base/sentence.h"
#include "bpf/backend.h"
#include "bpf/hits.h"
#include "bpf/memory.h"
#include "bpf/skeleton.h"

int bpf_backend_probe(char **ret_reason) {
        static const struct {
                const char *path;
                const char *what;
        } needed[] = {
                { "/sys/kernel/btf/vmlinux", "type information (CONFIG_DEBUG_INFO_BTF)" },
                { "/sys/bus/event_source/devices/uprobe", "uprobes (CONFIG_UPROBE_EVENTS)" },
        };

        for (size_t i = 0; i < ELEMENTSOF(needed); i++)
                if (access(needed[i].path, R_OK) < 0 && (errno == ENOENT || errno == EACCES)) {
                        return sentence_error(-errno, ret_reason,
                                              "The kernel has no %s: %s is missing", needed[i].what,
                                              needed[i].path);
                }
        return 0;
}

/* An instance has taken a spare: told as coming from any of its bindings. */
static void on_instance(const struct tlob_instance_record *record, void *userdata) {
        BpfBackend *b = userdata;
        Report report = {
                .type = REPORT_INSTANCE,
                .cgroup_id = record->cgroup_id,
                .cgroup_path = record->path.path,
                .cgroup_level = record->level - b->programs.root_level,
        };

        if (unit_table_take_spare(&b->units, record) <= 0)
                return;
        for (size_t i = 0; i < b->n_entries; i++) {
                const Entry *entry = &b->entries[i];

                if (entry->generation && !entry->retired && !entry->inherited &&
                    entry->user.unit == record->unit) {
                        report.backend_index = (uint32_t) i;
                        b->handler(&report, b->userdata);
                        return;
                }
        }
}

static bool is_current(uint32_t index, uint64_t generation, void *userdata) {
        const BpfBackend *b = userdata;

        return index < b->n_entries && b->entries[index].generation == generation;
}

static void on_report(const Report *report, void *userdata) {
        BpfBackend *b = userdata;

        b->handler(report, b->userdata);
}

/* A process that is told of, and, once somebody has asked, whose it is; (uid_t) -1: it is gone. */
typedef struct Newcomer {
        const BpfBackend *b;
        uint32_t pid;
        uid_t user;
        bool has_user;
} Newcomer;

/* Of process 0, which is none, it is nobody. */
static uid_t user_of_newcomer(Newcomer *newcomer) {
        if (newcomer->has_user)
                return newcomer->user;
        newcomer->user = user_of_process(newcomer->pid);
        newcomer->has_user = true;
        return newcomer->user;
}

static bool can_admit(const Site *site, uint32_t tgid, void *userdata) {
        return !site->key.owner || site->key.owner == user_of_newcomer(userdata);
}

/* No window may open that cannot end. */
static bool can_stop(const Site *site, uint32_t tgid, void *userdata) {
        const BpfBackend *b = ((Newcomer *) userdata)->b;

        return site_table_has_process(&b->stop_sites, site->key.partner - 1, tgid) &&
               can_admit(site, tgid, userdata);
}

/* The stop first, as above. */
static void on_process(const struct tlob_process_record *record, void *userdata) {
        BpfBackend *b = userdata;
        Newcomer newcomer = { .b = b, .pid = record->pid };

        if (record->event == TLOB_PROCESS_UNWINDS) {
                unwind_table_add_process(&b->unwind, record);
                return;
        }
        if (record->event == TLOB_PROCESS_EXITED) {
                unwind_table_remove_process(&b->unwind, record->tgid);
                site_table_remove_process(&b->start_sites, record->tgid);
                site_table_remove_process(&b->stop_sites, record->tgid);
                return;
        }
        site_table_add_process(&b->stop_sites, record, can_admit, &newcomer);
        site_table_add_process(&b->start_sites, record, can_stop, &newcomer);
}

static void on_begin_round(void *userdata) {
        BpfBackend *b = userdata;

        site_table_begin_round(&b->stop_sites);
        site_table_begin_round(&b->start_sites);
        unwind_table_begin_round(&b->unwind);
}

static void on_end_round(void *userdata) {
        BpfBackend *b = userdata;

        site_table_end_round(&b->start_sites);
        site_table_end_round(&b->stop_sites);
        unwind_table_end_round(&b->unwind);
}

Backend *bpf_backend_free(Backend *backend) {
        BpfBackend *b = BPF(backend);

        if (!b)
                return NULL;

        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].generation && !b->entries[i].retired && !b->entries[i].inherited)
                        (void) backend->ops->remove(backend, (uint32_t) i, NULL, NULL);
        unwind_table_done(&b->unwind);
        detacher_free(b->detacher);
        detacher_free(b->predecessor);
        site_table_done(&b->stop_sites);
        site_table_done(&b->start_sites);
        user_events_done(&b->user_events);
        calls_done(&b->calls);
        late_programs_done(&b->late);
        unit_table_done(&b->units);
        histogram_table_done(&b->histograms);
        join_server_free(b->joins);
        lane_table_done(&b->lanes);
        bpf_memory_done(&b->bindings);
        free(b->entries);
        safe_close(b->epoll_fd);
        process_reader_done(&b->processes);
        record_reader_done(&b->records);
        task_table_done(&b->tasks);
        bpf_programs_done(&b->programs);
        carried_free(b->carried);
        kept_free(b->kept);
        pins_free(b->pins);
        free(b);
        return NULL;
}

static int init_sites(BpfBackend *b, size_t n) {
        const struct tlob_bpf *bpf = b->programs.bpf;
        SiteProbes probes = {
                .multi = b->programs.multi,
                .detacher = b->detacher,
                .process_sites_fd = bpf_map__fd(bpf->maps.process_sites),
                .hits_fd = bpf_map__fd(bpf->maps.start_hits),
                .n_cpus = b->n_cpus,
                .pins = b->pins,
                .calls = &b->calls,
                .user_events = &b->user_events,
                .late = &b->late,
                .owned_crowds = b->owned_crowds,
        };
        uint32_t *generation = b->kept ? b->kept->common->site_generation : b->site_generation;
        int r;

        late_programs_init(&b->late, &b->programs);
        calls_init(&b->calls, &b->late, b->pins, b->n_cpus);
        user_events_init(&b->user_events, &b->late, b->pins, b->n_cpus);
        probes.prog_fd = bpf_programs_start_fd(&b->programs);
        r = site_table_init(&b->start_sites, n, &probes, bpf_map__fd(bpf->maps.start_sites),
                            bpf_map__fd(bpf->maps.start_scopes), &generation[0]);
        if (r < 0)
                return r;
        probes.prog_fd = bpf_programs_stop_fd(&b->programs);
        probes.hits_fd = bpf_map__fd(bpf->maps.stop_hits);
        probes.side = 1;
        return site_table_init(&b->stop_sites, n, &probes, bpf_map__fd(bpf->maps.stop_sites),
                               bpf_map__fd(bpf->maps.stop_scopes), &generation[1]);
}

static int settle_page(uint32_t page, void *userdata) {
        const BpfBackend *b = userdata;

        return bpf_programs_settle_page(&b->programs, page);
}

static void init_joins(BpfBackend *b, const BackendConfig *config) {
        static const JoinHandlers handlers = { .settle = settle_page };

        if (!config->marks_socket || b->lanes.n == 0)
                return;
        /* Without it all is measured, by probes. */
        (void) join_server_new(config->marks_socket, &b->lanes, &b->tasks, &handlers, b, &b->joins);
}

static int init_epoll(BpfBackend *b) {
        const int fds[] = {
                record_reader_get_fd(&b->records),
                process_reader_get_fd(&b->processes),
                b->joins ? join_server_get_fd(b->joins) : -EBADF,
        };

        b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (b->epoll_fd < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                if (fds[i] >= 0 && epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fds[i],
                                             &(struct epoll_event) { .events = EPOLLIN }) < 0)
                        return -errno;
        return 0;
}

static int init_entries(BpfBackend *b, const BackendConfig *config) {
        int n_cpus;

        b->entries = calloc(config->bindings_max, sizeof(*b->entries));
        if (!b->entries)
                return -ENOMEM;
        b->n_entries = config->bindings_max;

        n_cpus = libbpf_num_possible_cpus();
        if (n_cpus < 0)
                return n_cpus;
        b->n_cpus = (size_t) n_cpus;
        return 0;
}

static int init_units(BpfBackend *b, size_t n) {
        const struct tlob_bpf *bpf = b->programs.bpf;
        const UnitMaps maps = {
                .units = bpf_map__fd(bpf->maps.units),
                .by_cgroup = bpf_map__fd(bpf->maps.units_by_cgroup),
                .by_path = bpf_map__fd(bpf->maps.units_by_path),
                .instances = bpf_map__fd(bpf->maps.instances),
                .spares = bpf_map__fd(bpf->maps.spares),
        };

        KeptUnit *kept = b->kept ? b->kept->units : NULL;
        int r;

        /* Where there is nothing to be inherited, to look for it would take memory. */
        r = unit_table_init(&b->units, n, &maps, &bpf->bss->unit_levels,
                            &bpf->bss->n_units_followed, b->programs.root_level,
                            b->programs.inherits ? kept : NULL);
        b->units.kept = kept;
        return r;
}

static void init_unwinding(BpfBackend *b) {
        const struct tlob_bpf *bpf = b->programs.bpf;

        unwind_table_init(&b->unwind,
                          &(const UnwindSpec) {
                                  .prog_fd = bpf_programs_unwind_fd(&b->programs),
                                  .multi = b->programs.multi,
                                  .by_process = b->programs.by_process,
                                  .pins = b->pins,
                                  .detacher = b->detacher,
                                  .epoch = &bpf->bss->unwinding_epoch,
                                  .processes_fd = bpf_map__fd(bpf->maps.unwinding_processes),
                          });
}

static int init_lanes(BpfBackend *b, const BackendConfig *config) {
        const struct tlob_bpf *bpf = b->programs.bpf;
        const LaneMaps maps = {
                .pages = bpf_map__fd(bpf->maps.pages),
                .processes = bpf_map__fd(bpf->maps.pages_by_process),
                .holders = bpf_map__fd(bpf->maps.lane_holders),
        };

        return lane_table_init(&b->lanes, config->mark_pages_max, &maps, &bpf->bss->n_pages);
}

/* What is shared with the programs. */
static int init_tables(BpfBackend *b, const BackendConfig *config) {
        const struct tlob_bpf *bpf = b->programs.bpf;
        int r;

        task_table_init(&b->tasks, bpf_map__fd(bpf->maps.tasks), config->tasks_max,
                        &bpf->bss->slots_end);
        r = init_units(b, config->bindings_max + 1);
        if (r < 0)
                return r;
        b->bindings = (BpfMemory) {
                .map_fd = bpf_map__fd(bpf->maps.bindings),
                .n = b->n_entries,
                .value_size = sizeof(struct tlob_binding),
        };
        r = b->programs.inherits ? bpf_memory_reach(&b->bindings, b->n_entries) : 0;
        if (r < 0)
                return r;
        r = histogram_table_init(&b->histograms, b->n_entries, b->n_cpus,
                                 bpf_map__fd(bpf->maps.histograms));
        if (r < 0)
                return r;
        r = init_sites(b, bpf_programs_sites_max(config));
        if (r < 0)
                return r;
        init_unwinding(b);
        return init_lanes(b, config);
}

/* What the programs send. */
static int init_readers(BpfBackend *b, const BackendConfig *config) {
        static const RecordHandlers handlers = {
                .is_current = is_current,
                .on_report = on_report,
                .on_instance = on_instance,
        };
        static const ProcessHandlers process_handlers = {
                .on_process = on_process,
                .on_begin_round = on_begin_round,
                .on_end_round = on_end_round,
        };
        const struct tlob_bpf *bpf = b->programs.bpf;
        int r;

        r = record_reader_init(&b->records, bpf_map__fd(bpf->maps.records),
                               config->ring_buffer_size, &handlers, b);
        if (r < 0)
                return r;
        if (b->kept)
                record_reader_note_taking(&b->records, &b->kept->common->taking);
        r = process_reader_init(&b->processes, bpf_map__fd(bpf->maps.process_records),
                                bpf_map__max_entries(bpf->maps.process_records),
                                bpf->progs.find_processes, &bpf->bss->n_processes_lost,
                                &process_handlers, b);
        if (r < 0)
                return r;
        if (b->programs.inherits)
                r = lane_table_inherit(&b->lanes);
        if (r < 0)
                return r;
        init_joins(b, config);
        return init_epoll(b);
}

static void init_price(BpfBackend *b) {
        struct tlob_bpf__bss *bss = b->programs.bpf->bss;

        price_find(&b->price, &b->programs, b->detacher);
        /* Whoever was before us may not have looked. */
        bss->hits_alarm = 0;
        bss->hits_pace_ns = hits_get_pace(b->price.hit.ns[PROBE_STEPPED]);
        bss->timers_pace_ns = hits_get_pace(b->price.timer_ns);
}

/* Everything but the programs. */
static int set_up_tables(BpfBackend *b, const BackendConfig *config) {
        int r;

        init_price(b);
        r = init_tables(b, config);
        return r < 0 ? r : init_readers(b, config);
}

/* What is measured can be left to a successor if all of it is pinned. */
static void prepare_successor(BpfBackend *b, const BackendConfig *config) {
        KeptFormat format;
        int r;

        if (!b->programs.pinned)
                return;
        bpf_programs_get_format(&b->programs, config, &format);
        r = config->keep_fd ? kept_new_map(&format, &b->kept) : kept_new(&format, &b->kept);
        if (r < 0) {
                b->keep_error = r;
                return;
        }
        b->kept->common->is_complete = true;
        if (b->carried)
                b->programs.bpf->bss->n_lost = carried_give_common(b->carried, b->kept);
}

/*
 * All is there for a successor. In a directory it finds that from now on, and no longer what our
 * predecessor had there.
 */
static void complete_pins(BpfBackend *b) {
        if (!b->kept)
                return;
        b->keep_error = pin_directory_complete(pins_get_fd(b->pins), b->kept->fd);
        if (b->keep_error >= 0)
                pin_directory_remove_others(pins_get_fd(b->pins));
}

static int set_up_anew(BpfBackend *b, const BackendConfig *config) {
        int r;

        /* Without them all is well until this process dies. */
        b->keep_error = pins_new(config->keep_fd, &b->pins);
        r = bpf_programs_load(&b->programs, config, b->pins, NULL);
        if (r >= 0)
                r = bpf_programs_attach(&b->programs, NULL);
        if (r < 0)
                return r;
        prepare_successor(b, config);
        r = set_up_tables(b, config);
        if (r >= 0 && config->keep_fd)
                complete_pins(b);
        return r;
}

/* Copies: if it fails, the back end goes with them, and the caller has his. */
static int inherit_descriptors(BpfBackend *b, const int *kept_fds) {
        _cleanup_close_ int pins_fd = -EBADF, memory_fd = -EBADF;
        int r;

        pins_fd = fcntl(kept_fds[0], F_DUPFD_CLOEXEC, 3);
        memory_fd = fcntl(kept_fds[1], F_DUPFD_CLOEXEC, 3);
        if (pins_fd < 0 || memory_fd < 0)
                return -errno;
        r = kept_inherit(memory_fd, &b->kept);
        if (r < 0)
                return r;
        (void) TAKE_FD(memory_fd);
        r = pins_inherit(pins_fd, &b->pins);
        if (r < 0)
                return r;
        (void) TAKE_FD(pins_fd);
        return 0;
}

static int set_up_inherited(BpfBackend *b, const BackendConfig *config) {
        int r;

        r = inherit_descriptors(b, config->kept_fds);
        if (r >= 0 && !bpf_programs_fit(&b->kept->common->format, config))
                r = -ESTALE;
        if (r >= 0)
                r = bpf_programs_load(&b->programs, config, b->pins, &b->kept->common->format);
        if (r >= 0)
                r = bpf_programs_attach(&b->programs, &b->kept->common->format);
        if (r >= 0)
                r = set_up_tables(b, config);
        if (r >= 0)
                r = bpf_backend_inherit(b);
        if (r >= 0)
                pin_directory_remove_others(pins_get_fd(b->pins));
        for (size_t i = 0; r >= 0 && i < BACKEND_N_KEPT; i++)
                config->kept_fds[i] = safe_close(config->kept_fds[i]);
        return r;
}

static BpfBackend *backend_alloc(const BackendConfig *config) {
        BpfBackend *b;

        b = calloc(1, sizeof(*b));
        if (!b)
                return NULL;
        b->backend.ops = &backend_bpf_ops;
        b->epoll_fd = -EBADF;
        if (init_entries(b, config) < 0 || detacher_new(&b->detacher) < 0) {
                bpf_backend_free(&b->backend);
                return NULL;
        }
        return b;
}

/*
 * What it has inherited goes with it, but for what was counted; what is in a directory stays until
 * there is another one. NULL: no memory.
 */
static BpfBackend *begin_anew(BpfBackend *b, const BackendConfig *config) {
        Carried *carried = NULL;

        if (b->kept && b->pins)
                (void) carried_take(b->kept, b->pins, &carried);
        if (b->pins)
                pins_leave(b->pins);
        bpf_backend_free(&b->backend);
        b = backend_alloc(config);
        if (b)
                b->carried = carried;
        else
                carried_free(carried);
        return b;
}

int bpf_backend_new(const BackendConfig *config, Backend **ret, char **ret_reason) {
        BpfBackend *b;
        int r;

        b = backend_alloc(config);
        if (!b)
                return -ENOMEM;
        r = -ESTALE;
        if (config->kept_fds && config->kept_fds[0] >= 0 && config->kept_fds[1] >= 0)
                r = set_up_inherited(b, config);
        if (r < 0) {
                b = begin_anew(b, config);
                if (!b)
                        return -ENOMEM;
                r = set_up_anew(b, config);
        }
        if (r < 0) {
                bpf_backend_free(&b->backend);
                return sentence_error(
                        r, ret_reason,
                        "The kernel refused the BPF programs: %s; tlobd needs Linux 6.1 or "
                        "newer, and CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN; if it has them, "
                        "restart it: libbpf does not ask again for what it was refused once",
                        strerror(-r));
        }

        /* libbpf had the type information of the whole kernel in memory. */
        (void) malloc_trim(0);
        skeleton_leave();
        *ret = &b->backend;
        return 0;
}
