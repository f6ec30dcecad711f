/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef UNIT_BPF_H
#define UNIT_BPF_H

#include "site.bpf.h"

/*
 * The cgroup of a unit that starts, known before its first instruction: systemd makes the cgroup, and
 * then the process that goes into it. Which path is whose, the daemon has written down beforehand.
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

static struct tlob_unit_path unit_path, template_path;

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

/* Where the path below our root begins, in a path from the root of all. */
static __always_inline __u32 path_skip_root(const char *path)
{
	__u32 seen = 0, i;

	if (unit_root_level == 0)
		return 0;
	bpf_probe_read_kernel_str(unit_path.path, sizeof(unit_path.path), path);
	for (i = 0; i < sizeof(unit_path.path); i++) {
		char c = unit_path.path[i];

		if (!c)
			break;
		if (c == '/' && seen++ == unit_root_level)
			return i;
	}
	return sizeof(unit_path.path);
}

static __always_inline void unit_is_born(__u32 index, __u64 cgroup_id, __u32 level)
{
	struct tlob_unit *u = bpf_map_lookup_elem(&units, &index);
	__u64 before;

	if (!u || level >= TLOB_UNIT_LEVELS)
		return;
	before = u->cgroup_id;
	bpf_map_update_elem(&units_by_cgroup, &cgroup_id, &index, BPF_ANY);
	__sync_fetch_and_or(&unit_levels, 1U << level);
	WRITE_ONCE(u->level, level);
	ordered();
	WRITE_ONCE(u->cgroup_id, cgroup_id);
	if (before)
		bpf_map_delete_elem(&units_by_cgroup, &before);
	__sync_fetch_and_add(&n_units_born, 1);
}

#define PATH_MASK (TLOB_UNIT_PATH_MAX - 1)

/* What an instance's name is taken apart by. */
struct instance {
	__u32 at, dot, end;
};

static int instance_scan(__u32 i, void *context)
{
	struct instance *instance = context;
	char c = unit_path.path[i & PATH_MASK];

	if (!c) {
		instance->end = i;
		return 1;
	}
	if (c == '/')
		instance->at = 0;
	else if (c == '@' && !instance->at)
		instance->at = i;
	else if (c == '.')
		instance->dot = i;
	return 0;
}

static int instance_copy(__u32 i, void *context)
{
	const struct instance *instance = context;
	__u32 from = i <= instance->at ? i : instance->dot + (i - instance->at - 1);

	template_path.path[i & PATH_MASK] =
		from < instance->end ? unit_path.path[from & PATH_MASK] : 0;
	return 0;
}

/* From unit_path to that of the template, "/a.slice/foo@.service". Returns false if it is no instance. */
static __always_inline bool path_to_template(void)
{
	struct instance instance = { .end = TLOB_UNIT_PATH_MAX };

	bpf_loop(TLOB_UNIT_PATH_MAX, instance_scan, &instance, 0);
	if (!instance.at || instance.dot <= instance.at + 1)
		return false;
	bpf_loop(TLOB_UNIT_PATH_MAX, instance_copy, &instance, 0);
	return true;
}

static __always_inline void instance_is_born(__u32 index, __u64 cgroup_id, __u32 level)
{
	struct tlob_unit *u = bpf_map_lookup_elem(&units, &index);

	if (u && u->level == level)
		bpf_map_update_elem(&instances, &cgroup_id, &index, BPF_ANY);
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(on_cgroup_mkdir, struct cgroup *cgrp, const char *path)
{
	__u32 skip, *index;

	/* The hierarchies of cgroup v1 have numbers of their own. */
	if (cgrp->root->hierarchy_id || !cgroup_is_below_root(cgrp))
		return 0;
	skip = path_skip_root(path);
	__builtin_memset(&unit_path, 0, sizeof(unit_path));
	if (bpf_probe_read_kernel_str(unit_path.path, sizeof(unit_path.path), path + skip) < 0)
		return 0;
	index = bpf_map_lookup_elem(&units_by_path, &unit_path);
	if (index)
		unit_is_born(*index, cgrp->kn->id, cgrp->level);
	index = path_to_template() ? bpf_map_lookup_elem(&units_by_path, &template_path) : NULL;
	if (index)
		instance_is_born(*index, cgrp->kn->id, cgrp->level);
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
