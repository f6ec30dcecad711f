/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_UNIT_BPF_H
#define BPF_PROGRAM_UNIT_BPF_H

#include "bpf/program/site.bpf.h"

/*
 * The cgroup of a unit that starts, known before its first instruction: systemd makes the cgroup,
 * and then the process that goes into it. Which path is whose, the daemon has written down
 * beforehand.
 *
 * Paths begin at the root of the daemon's cgroup namespace, with which other parts of the tree may
 * share their names: that the new cgroup lies below that root is seen from its ancestors.
 *
 * The kernel makes one cgroup at a time, under a mutex, so there is one buffer of each kind.
 */

/* Where our part of the tree begins; the daemon sets both. */
__u32 unit_root_level = 0;
__u64 unit_root_id = 0;

/* Units whose cgroup was known from its birth. */
__u64 n_units_born = 0;

/* Instances of templates that found no spare. */
__u64 n_instances_missed = 0;

static struct tlob_unit_path unit_path, template_path;

#define PATH_MASK (TLOB_UNIT_PATH_MAX - 1)

static __always_inline bool cgroup_is_below_root(struct cgroup *cgrp)
{
	__u32 level = cgrp->level, root = unit_root_level;
	struct cgroup *c = cgrp;
	__u32 i;

	if (level <= root)
		return false;
	for (i = 0; i < TLOB_UNIT_LEVELS && level > root; i++, level--) {
		struct cgroup_subsys_state *parent = BPF_CORE_READ(c, self.parent);

		c = (void *)parent - bpf_core_field_offset(struct cgroup, self);
	}
	return level == root && BPF_CORE_READ(c, kn, id) == unit_root_id;
}

struct root_scan {
	__u32 seen; /* levels */
	__u32 end;  /* of the root's path */
};

static long root_scan(__u32 i, void *context)
{
	struct root_scan *scan = context;
	char c = unit_path.path[i & PATH_MASK];

	if (c == '/' && scan->seen++ == unit_root_level) {
		scan->end = i;
		return 1;
	}
	return !c;
}

/* Where the path below our root begins, in a path from the root of all. */
static __always_inline __u32 path_skip_root(const char *path)
{
	struct root_scan scan = { .end = TLOB_UNIT_PATH_MAX };

	if (unit_root_level == 0)
		return 0;
	bpf_probe_read_kernel_str(unit_path.path, sizeof(unit_path.path), path);
	bpf_loop(TLOB_UNIT_PATH_MAX, root_scan, &scan, 0);
	return scan.end;
}

/* At which depths a task's cgroups have to be looked at. */
static __always_inline void level_add(__u32 level)
{
	__sync_fetch_and_or(&unit_levels.units, 1U << level);
}

static __always_inline void unit_is_born(__u32 index, __u64 cgroup_id, __u32 level)
{
	struct tlob_unit *u = bpf_map_lookup_elem(&units, &index);
	__u64 before;

	if (!u || level >= TLOB_UNIT_LEVELS)
		return;
	before = u->cgroup_id;
	bpf_map_update_elem(&units_by_cgroup, &cgroup_id, &index, BPF_ANY);
	level_add(level);
	WRITE_ONCE(u->level, level);
	ordered(&u->cgroup_id);
	WRITE_ONCE(u->cgroup_id, cgroup_id);
	if (before)
		bpf_map_delete_elem(&units_by_cgroup, &before);
	__sync_fetch_and_add(&n_units_born, 1);
}

/*
 * What the path of an instance is taken apart by: where its last part begins, and what is in that.
 */
struct instance {
	__u32 name, at, dot, end;
	__u32 is_outside; /* below something that is no slice */
};

static __always_inline bool is_slice(__u32 dot, __u32 end)
{
	static const char suffix[] = ".slice";
	__u32 i;

	if (end - dot != sizeof(suffix) - 1)
		return false;
#pragma unroll
	for (i = 0; i < sizeof(suffix) - 1; i++)
		if (unit_path.path[(dot + i) & PATH_MASK] != suffix[i])
			return false;
	return true;
}

static int instance_scan(__u32 i, void *context)
{
	struct instance *instance = context;
	char c = unit_path.path[i & PATH_MASK];

	if (!c) {
		instance->end = i;
		return 1;
	}
	if (c == '/') {
		if (i > 0 && !is_slice(instance->dot, i)) {
			instance->is_outside = 1;
			return 1;
		}
		instance->name = i + 1;
		instance->at = 0;
		instance->dot = 0;
	} else if (c == '@' && !instance->at) {
		instance->at = i;
	} else if (c == '.') {
		instance->dot = i;
	}
	return 0;
}

static int instance_copy(__u32 i, void *context)
{
	const struct instance *instance = context;
	__u32 from = instance->name + i;

	if (from > instance->at)
		from += instance->dot - instance->at - 1;
	template_path.path[i & PATH_MASK] =
		from < instance->end ? unit_path.path[from & PATH_MASK] : 0;
	return 0;
}

/*
 * From unit_path to the name of the template, "foo@.service". Returns false if it is no instance.
 * The system manager's units are below slices only; below anything else are those of others, with
 * names that they choose.
 */
static __always_inline bool path_to_template(void)
{
	struct instance instance = { .end = TLOB_UNIT_PATH_MAX };

	bpf_loop(TLOB_UNIT_PATH_MAX, instance_scan, &instance, 0);
	if (instance.is_outside || !instance.at || instance.dot <= instance.at + 1)
		return false;
	bpf_loop(TLOB_UNIT_PATH_MAX, instance_copy, &instance, 0);
	return true;
}

static __always_inline void instance_is_born(__u32 index, __u64 cgroup_id, __u32 level)
{
	struct tlob_unit *u = bpf_map_lookup_elem(&units, &index);

	if (!u || u->cgroup_id != TLOB_CGROUP_MANY || level >= TLOB_UNIT_LEVELS)
		return;
	level_add(level);
	__sync_fetch_and_or(&unit_levels.instances, 1U << level);
	__sync_fetch_and_or(&u->levels, 1U << level);
	bpf_map_update_elem(&instances, &cgroup_id, &index, BPF_ANY);
}

/* Makes a spare the unit of that cgroup. The daemon may be taking it back. */
static __always_inline bool spare_become(struct tlob_unit *u, __u32 index, __u64 cgroup_id,
					 __u32 level)
{
	WRITE_ONCE(u->level, level);
	level_add(level);
	bpf_map_update_elem(&units_by_cgroup, &cgroup_id, &index, BPF_ANY);
	if (__sync_val_compare_and_swap(&u->cgroup_id, TLOB_CGROUP_SPARE, cgroup_id) !=
	    TLOB_CGROUP_SPARE) {
		bpf_map_delete_elem(&units_by_cgroup, &cgroup_id);
		return false;
	}
	/* It can end and start again before the daemon hears of it. */
	bpf_map_update_elem(&units_by_path, &unit_path, &index, BPF_ANY);
	return true;
}

struct spare_search {
	const struct tlob_spares *of;
	__u32 index;
	bool found;
};

static long spare_look(__u32 i, void *context)
{
	struct spare_search *search = context;
	struct tlob_unit *u;
	__u32 index;

	if (i >= TLOB_SPARES_MAX || i >= search->of->n)
		return 1;
	index = search->of->unit[i];
	u = bpf_map_lookup_elem(&units, &index);
	if (!u || READ_ONCE(u->cgroup_id) != TLOB_CGROUP_SPARE)
		return 0;
	search->index = index;
	search->found = true;
	return 1;
}

static __always_inline bool spare_take(const struct tlob_spares *of, __u64 cgroup_id, __u32 level)
{
	struct spare_search search = { .of = of };
	struct tlob_instance_record *r;
	struct tlob_unit *u;
	__u32 index;
	bool taken;

	bpf_loop(TLOB_SPARES_MAX, spare_look, &search, 0);
	index = search.index;
	u = search.found ? bpf_map_lookup_elem(&units, &index) : NULL;
	if (!u || level >= TLOB_UNIT_LEVELS)
		return false;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r)
		return false;
	r->type = TLOB_RECORD_INSTANCE;
	r->unit = index;
	r->cgroup_id = cgroup_id;
	r->level = level;
	r->reserved = 0;
	r->path = unit_path;
	taken = spare_become(u, index, cgroup_id, level);
	if (taken)
		bpf_ringbuf_submit(r, 0);
	else
		bpf_ringbuf_discard(r, 0);
	return taken;
}

/* is_known: the daemon knows that instance, and has bindings for it alone. */
static __always_inline void template_is_born(struct cgroup *cgrp, bool is_known)
{
	struct tlob_spares *of;
	__u32 *index;

	index = bpf_map_lookup_elem(&units_by_path, &template_path);
	if (index)
		instance_is_born(*index, cgrp->kn->id, cgrp->level);
	of = is_known ? NULL : bpf_map_lookup_elem(&spares, &template_path);
	if (of && !spare_take(of, cgrp->kn->id, cgrp->level))
		count(n_instances_missed);
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(on_cgroup_mkdir, struct cgroup *cgrp, const char *path)
{
	__u32 skip, *index;
	long length;

	/* The hierarchies of cgroup v1 have numbers of their own. */
	if (cgrp->root->hierarchy_id || !cgroup_is_below_root(cgrp))
		return 0;
	skip = path_skip_root(path);
	__builtin_memset(&unit_path, 0, sizeof(unit_path));
	length = bpf_probe_read_kernel_str(unit_path.path, sizeof(unit_path.path), path + skip);
	/* What fills it up may be cut off. */
	if (length < 0 || length >= (long)sizeof(unit_path.path))
		return 0;
	index = bpf_map_lookup_elem(&units_by_path, &unit_path);
	if (index)
		unit_is_born(*index, cgrp->kn->id, cgrp->level);
	if (path_to_template())
		template_is_born(cgrp, index);
	return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(on_cgroup_rmdir, struct cgroup *cgrp)
{
	__u64 id = cgrp->kn->id;

	if (!cgrp->root->hierarchy_id)
		bpf_map_delete_elem(&instances, &id);
	return 0;
}

#endif
