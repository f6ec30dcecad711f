/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_LANE_BPF_H
#define BPF_PROGRAM_LANE_BPF_H

#include "bpf/program/opening.bpf.h"

/*
 * Lanes: windows of marks that begin and end without a trap (tlob-mark-page.h), in memory that the
 * thread shares with us.
 *
 * Once a second the thread begins a window by a trap, which is one as any other. What it has
 * counted in its lane is put into the books then, and it is allowed another second. A window of the
 * lane that is open when its task leaves the CPU, or runs over, or ends, is adopted: it becomes one
 * as any other, with the start that the lane has. Until then it has run all the time, so its totals
 * are known. So there is one account of states, deadlines and reports.
 *
 * Nothing in a lane is believed but numbers of its own binding: whose it is, and for which bindings
 * its windows are, is in lane_holders.
 */

/* In adopted: the window is nobody's. */
#define ADOPTED_BY_NOBODY 2

/* A window that begins so long before its trap is one of another clock: of a time namespace. */
#define LANE_CLOCK_SLACK_NS 20000000

static __always_inline struct tlob_lane *lane_at(__u32 index)
{
	__u32 page = index / TLOB_LANES, place = index % TLOB_LANES;
	void *lanes = bpf_map_lookup_elem(&pages, &page);

	return lanes ? bpf_map_lookup_elem(lanes, &place) : NULL;
}

#define mark_at(lane, mark)    (&(lane)->marks[(mark) & (TLOB_LANE_MARKS - 1)])
#define grant_at(holder, mark) (&(holder)->grants[(mark) & (TLOB_LANE_MARKS - 1)])

/* The binding of a grant, if it is still there. */
static __always_inline struct tlob_binding *binding_of_grant(const struct tlob_lane_grant *grant)
{
	__u32 binding = grant->binding;
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);

	return b && grant->generation && READ_ONCE(b->generation) == grant->generation ? b : NULL;
}

/*
 * From that moment to the start of the window, before it: the task has run since, or since a hook
 * has seen it get its CPU. It was not seen to leave it in between, so what is left it waited.
 */
static __always_inline void snapshot_go_back(struct snapshot *at, __u64 began, __u64 arrived)
{
	__u64 waited = arrived > began && arrived < at->now ? arrived - began : 0;

	if (began >= at->now)
		return;
	at->total_ns[TLOB_RUNNING] -= at->now - began - waited;
	at->total_ns[TLOB_WAITING] -= waited;
	at->now = began;
}

/* window_open() of one that began at that moment. Global, so that the verifier looks at it once. */
__noinline int mark_begin(__u32 slot, __u32 place, __u32 binding, __u64 generation,
			  const struct snapshot *at)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_binding *b = bpf_map_lookup_elem(&bindings, &binding);
	struct hit hit = {};

	if (t && b && at && place < TLOB_WINDOWS_MAX)
		window_open(t, place, binding, b, generation, &hit, at);
	return 0;
}

/*
 * Opens a window that has begun in the lane; its task has had its CPU since. Returns whether it is
 * the kernel's now.
 */
static __always_inline bool mark_open(struct tlob_task *t, __u32 slot,
				      const struct tlob_lane_holder *holder,
				      const struct tlob_lane_grant *grant, __u64 began,
				      struct snapshot *at)
{
	struct tlob_binding *b = binding_of_grant(grant);
	__u32 binding = grant->binding, place = NO_PLACE, unused = NO_PLACE;
	struct tlob_books *stats = bpf_map_lookup_elem(&statistics, &binding);

	if (!b || !stats)
		return false;
	place = window_find(t, grant->generation, &unused);
	if (place < TLOB_WINDOWS_MAX) {
		count(stats->nested);
		return false;
	}
	count(stats->starts);
	if (unused >= TLOB_WINDOWS_MAX) {
		count(stats->over_limit);
		return false;
	}
	if (began < holder->since_ns)
		began = holder->since_ns;
	snapshot_go_back(at, began, READ_ONCE(t->last_ns));
	mark_begin(slot, unused, binding, grant->generation, at);
	return true;
}

/*
 * The window of the current task that is open in that lane is adopted. The totals are read first:
 * a hook that comes in between has adopted it by then, and nobody does so twice. Global, so that
 * the verifier looks at it once.
 */
__noinline int mark_adopt(__u32 slot, __u32 index, __u32 mark)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_lane_holder *holder = bpf_map_lookup_elem(&lane_holders, &index);
	struct tlob_lane *lane = lane_at(index);
	struct tlob_lane_mark *m;
	struct snapshot at;
	__u64 began;

	if (!t || !holder || !lane || holder->task != t->task)
		return 0;
	m = mark_at(lane, mark);
	if (!READ_ONCE(m->open))
		return 0;
	task_snapshot(t, &at);
	began = READ_ONCE(m->start_ns) ?: at.now;
	if (__sync_val_compare_and_swap(&m->adopted, 0, 1) == 0 &&
	    !mark_open(t, slot, holder, grant_at(holder, mark), began, &at))
		WRITE_ONCE(m->adopted, ADOPTED_BY_NOBODY);
	return 0;
}

/* Of the current task, in that slot: what is open in its lane. Global, as above. */
__noinline int lane_adopt(__u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_lane *lane;
	__u32 i;

	if (!t || !t->lane)
		return 0;
	lane = lane_at(t->lane - 1);
	if (!lane)
		return 0;
	for (i = 0; i < TLOB_LANE_MARKS; i++)
		if (READ_ONCE(mark_at(lane, i)->open) && !READ_ONCE(mark_at(lane, i)->adopted))
			mark_adopt(slot, t->lane - 1, i);
	return 0;
}

/*
 * Before a start in that task, which has no slot perhaps: what is open has begun before it, and no
 * hook comes and adopts it into the place that the start has chosen.
 */
static __always_inline void lane_adopt_first(__u32 slot)
{
	if (READ_ONCE(n_pages))
		lane_adopt(slot);
}

/* On a tick: only what has run over. */
static __always_inline bool lane_has_run_over(const struct tlob_task *t)
{
	const struct tlob_lane *lane;
	bool over = false;
	__u64 now;
	__u32 i;

	if (!t->lane)
		return false;
	lane = lane_at(t->lane - 1);
	if (!lane)
		return false;
	now = bpf_ktime_get_ns();
	for (i = 0; i < TLOB_LANE_MARKS; i++) {
		const struct tlob_lane_mark *m = mark_at(lane, i);
		__u64 start = READ_ONCE(m->start_ns);

		over |= READ_ONCE(m->open) && !READ_ONCE(m->adopted) && start && start < now &&
			now - start > READ_ONCE(m->budget_ns);
	}
	return over;
}

/* What bpf_loop() goes over: to look at so many buckets one by one takes the verifier long. */
struct lengths {
	__u64 *of_lane;
	struct tlob_histogram *histogram;
	__u64 sum;
};

static long length_count(__u32 i, void *context)
{
	struct lengths *lengths = context;
	__u64 n;

	if (i >= TLOB_LANE_BUCKETS)
		return 1;
	n = lengths->of_lane[i];
	if (n) {
		__sync_fetch_and_add(&lengths->histogram->counts[i], n);
		lengths->of_lane[i] = 0;
		lengths->sum += n;
	}
	return 0;
}

static long length_clear(__u32 i, void *context)
{
	struct lengths *lengths = context;

	if (i >= TLOB_LANE_BUCKETS)
		return 1;
	if (lengths->of_lane[i])
		lengths->of_lane[i] = 0;
	return 0;
}

#define lengths_at(lane, mark) ((lane)->lengths[(mark) & (TLOB_LANE_MARKS - 1)])

/* Returns how many those were. */
static __always_inline __u64 lane_count_lengths(struct tlob_lane *lane, __u32 mark, __u32 binding)
{
	__u32 group = binding / TLOB_HISTOGRAMS_GROUP, place = binding % TLOB_HISTOGRAMS_GROUP;
	void *histograms_of_group = bpf_map_lookup_elem(&histograms, &group);
	struct lengths lengths = { .of_lane = lengths_at(lane, mark) };

	if (!histograms_of_group)
		return 0;
	lengths.histogram = bpf_map_lookup_elem(histograms_of_group, &place);
	if (!lengths.histogram)
		return 0;
	bpf_loop(TLOB_LANE_BUCKETS, length_count, &lengths, 0);
	return lengths.sum;
}

static __always_inline void mark_begin_anew(struct tlob_lane_mark *m)
{
	m->is_used = m->total_ns = m->longest_ns = 0;
	m->nested = 0;
}

/*
 * Puts what the lane has counted of a mark into the books of the binding that it was for, and
 * begins anew. Only while the thread does not: in a program on behalf of it. Global, as above.
 */
__noinline int lane_settle(__u32 index, __u32 mark)
{
	struct tlob_lane_holder *holder = bpf_map_lookup_elem(&lane_holders, &index);
	struct tlob_lane *lane = lane_at(index);
	struct tlob_lane_grant *grant;
	struct tlob_lane_mark *m;
	struct tlob_books *stats;
	__u32 binding;
	__u64 n;

	if (!holder || !lane)
		return 0;
	m = mark_at(lane, mark);
	grant = grant_at(holder, mark);
	binding = grant->binding;
	stats = bpf_map_lookup_elem(&statistics, &binding);
	if (!stats || !binding_of_grant(grant) || (!m->is_used && !m->nested))
		return 0;

	add_fully(&holder->begun, 1);
	n = m->is_used ? lane_count_lengths(lane, mark, binding) : 0;
	__sync_fetch_and_add(&stats->starts, n);
	__sync_fetch_and_add(&stats->in_budget, n);
	__sync_fetch_and_add(&stats->untrapped, n);
	__sync_fetch_and_add(&stats->nested, m->nested);
	__sync_fetch_and_add(&stats->spent_ns[TLOB_RUNNING], m->total_ns);
	count_maximum(binding, m->longest_ns);
	mark_begin_anew(m);
	add_fully(&holder->done, 1);
	return 0;
}

/* Of a lane without a holder, or of a mark whose binding is another one now. Global, as above. */
__noinline int lane_clear(__u32 index, __u32 mark)
{
	struct tlob_lane *lane = lane_at(index);
	struct lengths lengths = {};
	struct tlob_lane_mark *m;

	if (!lane)
		return 0;
	m = mark_at(lane, mark);
	m->budget_ns = m->until_ns = 0;
	mark_begin_anew(m);
	lengths.of_lane = lengths_at(lane, mark);
	bpf_loop(TLOB_LANE_BUCKETS, length_clear, &lengths, 0);
	return 0;
}

/*
 * The task in that slot gives its lane back. What is open in it must have been adopted. Global, as
 * above.
 */
__noinline int lane_leave(__u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_lane_holder *holder;
	struct tlob_lane *lane;
	__u32 index, i;

	if (!t || !t->lane)
		return 0;
	index = t->lane - 1;
	t->lane = 0;
	lane = lane_at(index);
	holder = bpf_map_lookup_elem(&lane_holders, &index);
	if (!lane || !holder || holder->task != t->task)
		return 0;
	for (i = 0; i < TLOB_LANE_MARKS; i++) {
		struct tlob_lane_mark *m = mark_at(lane, i);

		lane_settle(index, i);
		lane_clear(index, i);
		m->taken = m->open = m->adopted = 0;
		grant_at(holder, i)->generation = 0;
	}
	holder->task = 0;
	ordered(&holder->since_ns);
	WRITE_ONCE(lane->holder, TLOB_LANE_FREE);
	return 0;
}

struct window_search {
	__u64 cookie; /* of its start */
	__u32 slot, place, n;
};

static long window_look(__u32 place, void *context)
{
	struct window_search *search = context;
	__u32 slot = search->slot, binding;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_binding *b;
	__u64 generation;

	if (!t)
		return 1;
	generation = READ_ONCE(*open_at(t, place));
	binding = READ_ONCE(window_at(t, place)->binding);
	b = bpf_map_lookup_elem(&bindings, &binding);
	if (generation && b && b->generation == generation && is_start_of(b, search->cookie)) {
		search->place = place;
		search->n++;
	}
	return 0;
}

/*
 * The binding whose window has begun by that start, if it is the only one there, and its windows
 * can be left to the thread. Returns its place, or NO_PLACE. Global, as above.
 */
__noinline __u32 lane_find_window(__u32 slot, __u64 cookie)
{
	struct window_search search = { .slot = slot, .cookie = cookie, .place = NO_PLACE };

	bpf_loop(TLOB_WINDOWS_MAX, window_look, &search, 0);
	return search.n == 1 ? search.place : NO_PLACE;
}

/* Is everybody who wants to know of both ends of the mark content with windows of the lane? */
static __always_inline bool sites_are_of_marks(const struct tlob_binding *b)
{
	struct tlob_site *start = site_find(&start_sites, b->start_cookie);
	struct tlob_site *stop = site_find(&stop_sites, b->stop_cookie);

	return start && stop && READ_ONCE(start->whole_marks) && READ_ONCE(stop->whole_marks);
}

static __always_inline bool binding_allows_lanes(const struct tlob_binding *b)
{
	return b->stop == TLOB_STOP_PLACE && !b->is_keyed && !b->owner && !b->start_cookie_before &&
	       b->budget_ns[TLOB_BUDGET_MINIMUM] == TLOB_NEVER && sites_are_of_marks(b);
}

/* For the next windows of the mark; the one that has begun goes its way. */
static __always_inline void lane_grant(struct tlob_lane_grant *grant, struct tlob_lane_mark *m,
				       const struct tlob_window *w, const struct tlob_binding *b)
{
	__u64 budget = minimum(b->budget_ns[TLOB_BUDGET_TOTAL], b->budget_ns[TLOB_BUDGET_RUNNING]);

	grant->binding = w->binding;
	grant->generation = w->generation;
	WRITE_ONCE(m->budget_ns, budget);
	ordered(&grant->generation);
	WRITE_ONCE(m->until_ns, w->start_ns + TLOB_LANE_LEASE_NS);
}

/*
 * A start in a thread that says that this lane is its own. The kernel believes it if its process
 * has that page, and nobody the lane. Returns whether it is its own.
 */
static __always_inline bool lane_is_held(struct tlob_task *t, struct tlob_lane *lane, __u32 index,
					 struct tlob_lane_holder *holder)
{
	if (t->lane == index + 1 && holder->task == t->task) {
		/* Who was away is back. */
		WRITE_ONCE(lane->holder, TLOB_LANE_HELD);
		return true;
	}
	if (t->lane || holder->task || READ_ONCE(lane->holder) != TLOB_LANE_CLAIMED)
		return false;
	holder->task = t->task;
	holder->since_ns = bpf_ktime_get_ns();
	t->lane = index + 1;
	WRITE_ONCE(lane->holder, TLOB_LANE_HELD);
	return true;
}

/* word: what the program says; n: how many bindings the start was for. Global, as above. */
__noinline int lane_start(__u32 slot, __u64 word, __u64 cookie, __u32 n)
{
	__u32 mark = TLOB_LANE_WORD_MARK(word), pid, index;
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_lane_holder *holder;
	struct tlob_lane_grant *grant;
	struct tlob_binding *b = NULL;
	struct tlob_lane_mark *m;
	struct tlob_lane *lane;
	__u32 *page, place, binding;
	__u64 lag;

	if (!t)
		return 0;
	pid = t->pid;
	page = bpf_map_lookup_elem(&pages_by_process, &pid);
	if (!page || TLOB_LANE_WORD_LANE(word) >= TLOB_LANES || mark >= TLOB_LANE_MARKS)
		return 0;
	index = *page * TLOB_LANES + TLOB_LANE_WORD_LANE(word);
	lane = lane_at(index);
	holder = bpf_map_lookup_elem(&lane_holders, &index);
	if (!lane || !holder || holder->tag != TLOB_LANE_WORD_TAG(word) ||
	    !lane_is_held(t, lane, index, holder))
		return 0;

	m = mark_at(lane, mark);
	grant = grant_at(holder, mark);
	lane_settle(index, mark);
	place = n == 1 ? lane_find_window(slot, cookie) : NO_PLACE;
	if (place < TLOB_WINDOWS_MAX) {
		binding = window_at(t, place)->binding;
		b = bpf_map_lookup_elem(&bindings, &binding);
	}
	if (!b || grant->generation != b->generation)
		lane_clear(index, mark);
	lag = b ? window_at(t, place)->start_ns - m->start_ns : 0;
	if (b && binding_allows_lanes(b) && lag < LANE_CLOCK_SLACK_NS)
		lane_grant(grant, m, window_at(t, place), b);
	else
		WRITE_ONCE(m->until_ns, 0);
	return 0;
}

/*
 * The current task makes one that runs in its memory, as its thread: until that has gone, the lane
 * is nobody's. Threads have memory of their own for what tells whose they are.
 */
static __always_inline void lane_lend(struct task_struct *parent, struct task_struct *child,
				      __u32 slot)
{
	struct tlob_task *t = bpf_map_lookup_elem(&tasks, &slot);
	struct tlob_lane *lane;
	int i;

	if (!t || !t->lane || child->tgid == parent->tgid ||
	    BPF_CORE_READ(child, mm) != BPF_CORE_READ(parent, mm))
		return;
	lane_adopt(slot);
	lane = lane_at(t->lane - 1);
	if (!lane)
		return;
	WRITE_ONCE(lane->holder, TLOB_LANE_AWAY);
	for (i = 0; i < TLOB_LANE_MARKS; i++)
		WRITE_ONCE(lane->marks[i].until_ns, 0);
}

#endif
