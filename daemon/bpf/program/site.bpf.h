/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_SITE_BPF_H
#define BPF_PROGRAM_SITE_BPF_H

#include "bpf/program/hits.bpf.h"

/*
 * From a hit of a probe to the bindings that it is for: those of the site whose unit the current
 * task belongs to. What is then done with each of them is start_hit() or stop_hit(), in
 * probe.bpf.h. Each side has functions of its own: the verifier would look at those of the other,
 * too.
 */

enum side {
	SIDE_START,
	SIDE_STOP,
};

/* A probe that was hit. Small, as it lies on the stack below all else. */
struct hit {
	__u64 cookie;
	__u64 stack_pointer;
	__u64 goroutine; /* if it is in a program of Go; else it means nothing */
	/* The task's cgroup at one depth, its own at first: most are in that of the unit. */
	__u64 cgroup_id;
	__u8 level;
	__u8 scratch;
	/*
	 * How many bindings with keys were found that the hit is for, and how many of these are
	 * done. They come last, one by one: their work needs much room on the stack.
	 */
	__u8 n_keyed;
	__u8 keyed_done;
	__u32 binding; /* the next of these; if there are none, the last that the hit is for */
	__u32 slot;
	__u32 call; /* as in tlob_window; the site is the call's then */
};

#define LEVEL_UNKNOWN 0xff /* deeper than TLOB_UNIT_LEVELS */

/*
 * A hit in the current task. Its cgroup is looked up here, and not where it is first asked for: for
 * each pointer that is followed so, Linux 6.18 searches the types of the whole kernel, on each way
 * by which the verifier comes to it.
 */
static __always_inline void hit_init(struct hit *hit)
{
	struct cgroup *own = bpf_get_current_task_btf()->cgroups->dfl_cgrp;
	int level = own->level;

	*hit = (struct hit){
		.cgroup_id = own->kn->id,
		.level = level < TLOB_UNIT_LEVELS ? level : LEVEL_UNKNOWN,
		.slot = NO_SLOT,
	};
}

static __always_inline struct tlob_site *site_find(void *sites, __u64 cookie)
{
	__u32 index = (__u32)cookie;
	struct tlob_site *site = bpf_map_lookup_elem(sites, &index);

	return site && cookie >> 32 && READ_ONCE(site->generation) == cookie >> 32 ? site : NULL;
}

/*
 * A hit, whoever it is for: it has cost what it costs. Global, so that it takes no room on the
 * stack of what else a probe does.
 */
__noinline int site_count_hit(__u32 side, __u32 site)
{
	struct tlob_hits *hits;

	if (side == SIDE_START)
		hits = bpf_map_lookup_elem(&start_hits, &site);
	else
		hits = bpf_map_lookup_elem(&stop_hits, &site);
	if (hits)
		hits_count(hits, READ_ONCE(hits_pace_ns));
	return 0;
}

/*
 * What the probe that was hit says of its site; if the process has a probe of its own there, for
 * which the program runs once more, no site's cookie and no binding's. 0 is that of bindings whose
 * daemon had none before it (start_cookie_before).
 */
static __always_inline __u64 hit_cookie(void *ctx, __u32 side)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct tlob_process_site key = {
		.tgid = bpf_get_current_pid_tgid() >> 32,
		.site = (__u32)cookie,
		.side = side,
	};

	if (!(cookie & TLOB_COOKIE_WIDE))
		return cookie;
	return bpf_map_lookup_elem(&process_sites, &key) ? TLOB_NO_COOKIE
							 : cookie & ~TLOB_COOKIE_WIDE;
}

static __always_inline __u64 cgroup_at(struct hit *hit, __u32 level)
{
	if (hit->level != level) {
		hit->cgroup_id = bpf_get_current_ancestor_cgroup_id(level);
		hit->level = level;
	}
	return hit->cgroup_id;
}

static __always_inline bool in_instance_at(struct hit *hit, __u32 unit, __u32 level)
{
	__u64 cgroup_id = cgroup_at(hit, level);
	__u32 *template = bpf_map_lookup_elem(&instances, &cgroup_id);

	return template && *template == unit;
}

/* What bpf_loop() goes over, as the verifier would take long to look at so many levels. */
struct depths {
	struct hit *hit;
	__u32 unit;
	__u32 levels; /* a bit for each that has instances */
	bool found;
};

static long depth_judge(__u32 level, void *context)
{
	struct depths *depths = context;
	__u32 left = depths->levels >> (level & 31);

	if (!left)
		return 1;
	if (!(left & 1) || !in_instance_at(depths->hit, depths->unit, level))
		return 0;
	depths->found = true;
	return 1;
}

/* Is the task in an instance of that template? Mostly they are all at one depth. */
static __always_inline bool in_instance(struct hit *hit, __u32 unit, const struct tlob_unit *u)
{
	__u32 level = READ_ONCE(u->level);
	struct depths depths = {
		.hit = hit,
		.unit = unit,
		.levels = READ_ONCE(u->levels) & ~(1U << (level & 31)),
	};

	if (in_instance_at(hit, unit, level))
		return true;
	if (depths.levels)
		bpf_loop(TLOB_UNIT_LEVELS, depth_judge, &depths, 0);
	return depths.found;
}

static __always_inline bool in_unit(struct hit *hit, __u32 unit)
{
	struct tlob_unit *u;
	__u64 id;

	if (unit == TLOB_UNIT_NONE)
		return true;
	u = bpf_map_lookup_elem(&units, &unit);
	if (!u)
		return false;
	id = READ_ONCE(u->cgroup_id);
	if (id == TLOB_CGROUP_MANY)
		return in_instance(hit, unit, u);
	return id && cgroup_at(hit, u->level) == id;
}

static __always_inline bool is_stop_of(const struct tlob_binding *b, __u64 cookie)
{
	return cookie == READ_ONCE(b->stop_cookie) || cookie == READ_ONCE(b->stop_cookie_before);
}

static __always_inline bool is_start_of(const struct tlob_binding *b, __u64 cookie)
{
	return cookie == READ_ONCE(b->start_cookie) || cookie == READ_ONCE(b->start_cookie_before);
}

/* That binding, if the hit is for it. */
static __always_inline struct tlob_binding *binding_of_hit(struct hit *hit, __u32 binding,
							   enum side side)
{
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);

	if (!b || !READ_ONCE(b->generation))
		return NULL;
	if (!(side == SIDE_START ? is_start_of(b, hit->cookie) : is_stop_of(b, hit->cookie)))
		return NULL;
	return in_unit(hit, b->unit) ? b : NULL;
}

/*
 * Both return whether the hit is for that binding. Global, so that the verifier looks at them once
 * and not for each place in a list.
 */
int start_hit(struct hit *hit, __u32 binding);
int stop_hit(struct hit *hit, __u32 binding);

static __always_inline int binding_hit(struct hit *hit, __u32 binding, enum side side)
{
	return side == SIDE_START ? start_hit(hit, binding) : stop_hit(hit, binding);
}

static __always_inline int scope_hit(struct hit *hit, __u32 unit, enum side side)
{
	struct tlob_scope_key key = { .site = (__u32)hit->cookie, .unit = unit };
	struct tlob_scope *scope;
	__u32 i, n = 0;

	if (side == SIDE_START)
		scope = bpf_map_lookup_elem(&start_scopes, &key);
	else
		scope = bpf_map_lookup_elem(&stop_scopes, &key);
	if (!scope)
		return 0;
	for (i = 0; i < TLOB_SCOPE_BINDINGS_MAX && i < scope->n; i++)
		n += binding_hit(hit, scope->binding[i], side);
	return n;
}

/* Global, as above. */
__noinline int start_scope_hit(struct hit *hit, __u32 unit)
{
	return hit ? scope_hit(hit, unit, SIDE_START) : 0;
}

__noinline int stop_scope_hit(struct hit *hit, __u32 unit)
{
	return hit ? scope_hit(hit, unit, SIDE_STOP) : 0;
}

static __always_inline int unit_hit(struct hit *hit, __u32 unit, enum side side)
{
	return side == SIDE_START ? start_scope_hit(hit, unit) : stop_scope_hit(hit, unit);
}

static __always_inline int units_hit(struct hit *hit, __u32 n_unconfined, enum side side)
{
	__u32 levels = READ_ONCE(unit_levels.units), level, n = 0;

	if (n_unconfined)
		n += unit_hit(hit, TLOB_UNIT_NONE, side);
	for (level = 0; level < TLOB_UNIT_LEVELS && levels; level++, levels >>= 1) {
		__u64 cgroup_id;
		__u32 *unit;

		if (!(levels & 1))
			continue;
		cgroup_id = cgroup_at(hit, level);
		unit = bpf_map_lookup_elem(&units_by_cgroup, &cgroup_id);
		if (unit)
			n += unit_hit(hit, *unit, side);
		if (!(READ_ONCE(unit_levels.instances) & 1U << level))
			continue;
		unit = bpf_map_lookup_elem(&instances, &cgroup_id);
		if (unit)
			n += unit_hit(hit, *unit, side);
	}
	return n;
}

/* Global, as above. */
__noinline int start_units_hit(struct hit *hit, __u32 n_unconfined)
{
	return hit ? units_hit(hit, n_unconfined, SIDE_START) : 0;
}

__noinline int stop_units_hit(struct hit *hit, __u32 n_unconfined)
{
	return hit ? units_hit(hit, n_unconfined, SIDE_STOP) : 0;
}

/* Is at most one binding of the site for the same task? Units must not lie in each other, then. */
static __always_inline bool site_is_apart(const struct tlob_site *site)
{
	__u32 levels = READ_ONCE(unit_levels.units);

	return READ_ONCE(site->apart) && !(levels & (levels - 1));
}

/*
 * binding_hit() for each binding of the site; it looks itself whether the hit is for it. Returns
 * for how many it is.
 */
static __always_inline __u32 site_hit(struct tlob_site *site, struct hit *hit, enum side side)
{
	__u32 i, n = 0;

	for (i = 0; i < TLOB_SITE_BINDINGS_MAX && i < site->n; i++)
		n += binding_hit(hit, READ_ONCE(site->binding[i]), side);
	if (READ_ONCE(site->n_scoped))
		n += side == SIDE_START ? start_units_hit(hit, READ_ONCE(site->n_unconfined))
					: stop_units_hit(hit, READ_ONCE(site->n_unconfined));
	if (!n && side == SIDE_START)
		count(site->n_outside);
	return n;
}

#endif
