/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Both sides of each packet stand below each other here. */

#include "backend/wire.h"

#include "binding/keys.h"

void wire_put_binding(Packet *packet, const Binding *binding) {
        packet_put_string(packet, binding->name);
        packet_put_string(packet, binding->unit);
        packet_put_string(packet, binding->cgroup.path);
        packet_put_number(packet, binding->cgroup.id != 0);
        packet_put_string(packet, binding->start);
        packet_put_string(packet, binding->stop);
        packet_put_string(packet, binding->build_id);
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                packet_put_number(packet, binding->budget_ns[i]);
        packet_put_string(packet, binding->resolved.path);
}

/* NULL: it has none. */
static int set_key(Binding *binding, const char *key, const char *value) {
        int r = value ? binding_set_key(binding, key, value, NULL) : 0;

        return r == 0 || r == -ENOMEM ? r : -EBADMSG;
}

int wire_take_binding(Packet *packet, Binding **ret) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        const char *name = packet_take_text(packet);
        int r;

        r = name ? binding_new(name, &binding) : -EBADMSG;
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        r = set_key(binding, "Unit", packet_take_text(packet));
        if (r >= 0)
                r = free_and_strdup(&binding->cgroup.path, packet_take_text(packet));
        /* Whether it runs: its id is for who looks. */
        binding->cgroup.id = packet_take_number(packet) != 0;
        if (r >= 0)
                r = set_key(binding, "Start", packet_take_text(packet));
        if (r >= 0)
                r = set_key(binding, "Stop", packet_take_text(packet));
        if (r >= 0)
                r = set_key(binding, "BuildID", packet_take_text(packet));
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                binding->budget_ns[i] = packet_take_number(packet);
        if (r >= 0)
                r = free_and_strdup(&binding->lent.file, packet_take_text(packet));
        if (r < 0)
                return r;
        if (packet->failed)
                return -EBADMSG;
        *ret = TAKE_PTR(binding);
        return 0;
}

/* Words of 64 bits without exception. */
_Static_assert(sizeof(Statistics) % sizeof(uint64_t) == 0, "statistics are no row of words");

static void put_statistics(Packet *packet, const Statistics *statistics) {
        uint64_t words[sizeof(*statistics) / sizeof(uint64_t)];

        memcpy(words, statistics, sizeof(words));
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                packet_put_number(packet, words[i]);
}

static void take_statistics(Packet *packet, Statistics *ret) {
        uint64_t words[sizeof(*ret) / sizeof(uint64_t)] = {};

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                words[i] = packet_take_number(packet);
        memcpy(ret, words, sizeof(words));
}

static void put_histogram(Packet *packet, const Histogram *histogram) {
        uint64_t n = 0;

        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                n += histogram->counts[i] > 0;
        packet_put_number(packet, n);
        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                if (histogram->counts[i] > 0) {
                        packet_put_number(packet, i);
                        packet_put_number(packet, histogram->counts[i]);
                }
}

static int take_histogram(Packet *packet, Histogram *ret) {
        uint64_t n = packet_take_number(packet);

        *ret = (Histogram) {};
        for (uint64_t i = 0; i < n && !packet->failed; i++) {
                uint64_t bucket = packet_take_number(packet);

                if (bucket >= TLOB_BUCKETS)
                        return -EBADMSG;
                ret->counts[bucket] = packet_take_number(packet);
        }
        return packet->failed ? -EBADMSG : 0;
}

void wire_put_books(Packet *packet, const Statistics *statistics, const Histogram *lengths) {
        put_statistics(packet, statistics);
        put_histogram(packet, lengths);
}

int wire_take_books(Packet *packet, Statistics *ret, Histogram *ret_lengths) {
        take_statistics(packet, ret);
        return take_histogram(packet, ret_lengths);
}

static void put_peer(Packet *packet, const Peer *peer) {
        packet_put_number(packet, peer->is_known);
        packet_put_number(packet, peer->kind);
        packet_put_number(packet, peer->tid);
        packet_put_number(packet, peer->pid);
        packet_put_string(packet, peer->comm);
}

/* A name of bytes, cut off where it is too long. */
static void take_name(Packet *packet, char *name, size_t size) {
        const char *s = packet_take_string(packet);

        (void) snprintf(name, size, "%s", s ?: "");
}

static void take_peer(Packet *packet, Peer *peer) {
        peer->is_known = packet_take_number(packet);
        peer->kind = (enum tlob_peer_kind) packet_take_number(packet);
        peer->tid = (uint32_t) packet_take_number(packet);
        peer->pid = (uint32_t) packet_take_number(packet);
        take_name(packet, peer->comm, sizeof(peer->comm));
}

void wire_put_report(Packet *packet, const Report *report) {
        packet_put_number(packet, report->type);
        packet_put_number(packet, report->id);
        packet_put_number(packet, report->time_ns);
        packet_put_number(packet, report->late_ns);
        packet_put_number(packet, report->elapsed_ns);
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                packet_put_number(packet, report->spent_ns[i]);
        packet_put_number(packet, report->stolen_ns);
        packet_put_number(packet, report->probes_ns);
        packet_put_number(packet, report->cgroup_id);
        packet_put_number(packet, report->budget);
        packet_put_number(packet, report->exceeded);
        packet_put_number(packet, report->state);
        packet_put_number(packet, report->end);
        packet_put_number(packet, report->tid);
        packet_put_number(packet, report->pid);
        packet_put_number(packet, report->is_repeated);
        packet_put_string(packet, report->comm);
        put_peer(packet, &report->peers.woken_by);
        put_peer(packet, &report->peers.preempted_by);
        packet_put_string(packet, report->stack ? stack_blocked_in(report->stack) : NULL);
        packet_put_string(packet, report->cgroup_path);
}

/* Words that are looked up in tables. */
static bool report_is_sound(const Report *report) {
        return report->type <= REPORT_COMPLETION && report->budget < TLOB_N_BUDGETS &&
               report->state <= TLOB_N_STATES && report->end < TLOB_N_ENDS;
}

int wire_take_report(Packet *packet, Report *ret, Stack *stack) {
        Report report = {};
        const char *frame;

        report.type = (ReportType) packet_take_number(packet);
        report.id = packet_take_number(packet);
        report.time_ns = packet_take_number(packet);
        report.late_ns = packet_take_number(packet);
        report.elapsed_ns = packet_take_number(packet);
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                report.spent_ns[i] = packet_take_number(packet);
        report.stolen_ns = packet_take_number(packet);
        report.probes_ns = packet_take_number(packet);
        report.cgroup_id = packet_take_number(packet);
        report.budget = (enum tlob_budget) packet_take_number(packet);
        report.exceeded = (unsigned) packet_take_number(packet);
        report.state = (enum tlob_state) packet_take_number(packet);
        report.end = (enum tlob_end) packet_take_number(packet);
        report.tid = (uint32_t) packet_take_number(packet);
        report.pid = (uint32_t) packet_take_number(packet);
        report.is_repeated = packet_take_number(packet);
        take_name(packet, report.comm, sizeof(report.comm));
        take_peer(packet, &report.peers.woken_by);
        take_peer(packet, &report.peers.preempted_by);
        frame = packet_take_string(packet);
        report.cgroup_path = packet_take_string(packet);
        if (packet->failed || !report_is_sound(&report))
                return -EBADMSG;
        if (frame) {
                stack->n = 1;
                (void) snprintf(stack->frames[0], sizeof(stack->frames[0]), "%s", frame);
                report.stack = stack;
        }
        *ret = report;
        return 0;
}
