#include <weft/snapshot.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/root_walk.hpp"
#include "observe/running_stacks.hpp"
#include "observe/wait_graph.hpp"
#include "trace/event_ring.hpp"

namespace weft {

using detail::root_kind;
using detail::root_walk;
using detail::seen_root;

namespace {

task_kind kind_of_root(const seen_root& one) noexcept {
  if (one.is_fiber) return task_kind::fiber;
  switch (one.kind) {
    case root_kind::task: break;
    case root_kind::thread: return task_kind::thread;
    case root_kind::shared: return task_kind::shared_task;
    case root_kind::fork: return task_kind::fork;
    case root_kind::body: return task_kind::body;
    case root_kind::child: return task_kind::child;
  }
  return task_kind::task;
}

// Whether `one` waits as it did.
bool is_same_wait(const seen_root& one, const seen_root& before) noexcept {
  return one.waits && one.ticket == before.ticket && one.has_children == before.has_children &&
         std::equal(one.on.begin(), one.on.end(), before.on.begin(), before.on.end());
}

// The circles that are there at a second look, too: all members are in the same waits, and blocked. Each of them then waited
// for the next one, all at one moment between the two.
items<deadlock> found_twice(const std::deque<seen_root>& before, const std::vector<std::vector<std::size_t>>& circles,
                            const std::deque<seen_root>& again) {
  std::unordered_map<task_id, const seen_root*> now;
  const std::vector<bool> is_blocked = detail::blocked_of(again);
  for (std::size_t i = 0; i != again.size(); ++i)
    if (is_blocked[i]) now.emplace(again[i].id, &again[i]);
  std::vector<deadlock> all;
  for (const std::vector<std::size_t>& circle : circles) {
    const bool is_there = std::all_of(circle.begin(), circle.end(), [&](std::size_t one) {
      const auto found = now.find(before[one].id);
      return found != now.end() && is_same_wait(*found->second, before[one]);
    });
    if (!is_there) continue;
    deadlock& added = all.emplace_back();
    added.circle = items<task_id>{circle.size()};
    for (std::size_t i = 0; i != circle.size(); ++i) added.circle[i] = before[circle[i]].id;
  }
  return all;
}

// Whether the same tasks are there, all in the same waits: then all waited at one moment between the two looks. At one look
// alone, each of two that wake each other in turn may be met while it waits.
bool all_wait_on(const std::deque<seen_root>& before, const root_walk& again) {
  if (!again.is_complete || again.roots.size() != before.size()) return false;
  std::unordered_map<task_id, const seen_root*> now;
  for (const seen_root& one : again.roots) now.emplace(one.id, &one);
  return std::all_of(before.begin(), before.end(), [&](const seen_root& one) {
    const auto found = now.find(one.id);
    return found != now.end() && is_same_wait(*found->second, one);
  });
}

// Forgets the ids of those that have ended, once they are many.
void forget_ended(const std::deque<seen_root>& alive, std::uint64_t oldest) {
  if (detail::task_ids::size() < 2 * alive.size() + 4096) return;
  std::vector<task_id> ids;
  ids.reserve(alive.size());
  for (const seen_root& one : alive) ids.push_back(one.id);
  std::sort(ids.begin(), ids.end());
  const std::lock_guard guard{detail::walks_lock};  // none has reserved room that would be gone
  detail::task_ids::keep_only(ids.data(), ids.size(), oldest);
}

}  // namespace

snapshot take_snapshot(const snapshot_options& options) {
  snapshot all;
  all.taken = std::chrono::system_clock::now();
  const std::uint64_t oldest = detail::task_ids::next_generation();
  const auto first = root_walk::make(
      {.stacks = options.stacks, .most_frames = options.most_frames, .most_roots = options.most_tasks, .only = {}});
  root_walk& walk = *first;
  walk.run();
  if (options.stacks && options.running_stacks) detail::add_running_stacks(walk, options.most_frames);
  if (walk.is_complete) forget_ended(walk.roots, oldest);
  all.is_complete = walk.is_complete;
  if (options.deadlocks) {
    const auto circles = detail::circles_of(walk.roots);
    const bool may_be_stuck = walk.is_complete && detail::is_stuck(walk.roots);
    if (!circles.empty() || may_be_stuck) {
      const auto again = root_walk::make({.stacks = false, .only = {}});
      again->run();
      if (!circles.empty()) all.found_ = found_twice(walk.roots, circles, again->roots);
      all.stuck_ = may_be_stuck && all_wait_on(walk.roots, *again);
    }
  }

  std::unordered_map<const void*, task_id> ids;
  ids.reserve(walk.roots.size());
  for (const seen_root& one : walk.roots) ids.emplace(one.at, one.id);

  // When a stamp was taken.
  const auto began = [scale = detail::stamp_scale::now()](std::uint64_t stamp) {
    const detail::stamp_pair& first = detail::first_stamp();
    return std::chrono::steady_clock::time_point{
        std::chrono::nanoseconds{first.steady + scale.nanoseconds(stamp - first.stamp)}};
  };
  std::vector<pool_info> pools;
  std::unordered_map<const void*, int> in;  // what each worker is in
  all.workers = items<worker_info>{walk.workers.size()};
  for (std::size_t i = 0; i != walk.workers.size(); ++i) {
    const detail::seen_worker& one = walk.workers[i];
    worker_info& added = all.workers[i];
    added.thread = one.thread;
    added.queued = one.queued;
    if (one.since != 0) added.since = began(one.since);
    if (one.pool != nullptr) {
      auto its = std::find_if(pools.begin(), pools.end(), [&](const pool_info& p) { return p.executor == one.pool; });
      if (its == pools.end()) its = pools.insert(pools.end(), {one.pool, 0});
      ++its->workers;
      added.pool = static_cast<int>(its - pools.begin());
    }
    if (const auto runs = ids.find(one.current); runs != ids.end()) {
      added.runs = runs->second;
      in.emplace(one.current, static_cast<int>(i));
    }
  }
  all.pools = pools;

  all.tasks = items<task_info>{walk.roots.size()};
  for (std::size_t i = 0; i != walk.roots.size(); ++i) {
    seen_root& one = walk.roots[i];
    task_info& added = all.tasks[i];
    added.id = one.id;
    if (one.parent != seen_root::none) added.parent = walk.roots[one.parent].id;
    added.kind = kind_of_root(one);
    const auto runs = in.find(one.at);
    if (runs != in.end() && !one.waits) added.worker = runs->second;
    added.state = one.waits ? task_state::waiting : added.worker >= 0 ? task_state::running : task_state::ready;
    added.function = async_frame{one.function};
    added.waits = items<task_wait>{one.on.size()};
    for (std::size_t k = 0; k != one.on.size(); ++k) {
      const wait_subject& what = one.on[k];
      const auto holder = ids.find(what.held_by);
      added.waits[k] = {what.what, what.at, holder != ids.end() ? holder->second : task_id{}};
    }
    added.stack = std::move(one.stack);
    if (one.since != 0) added.since = began(one.since);
    if (added.state == task_state::running) added.since = all.workers[static_cast<std::size_t>(added.worker)].since;
    added.deadline = one.deadline;
    added.deadline_set_at = one.deadline_set_at;
    added.stop_requested = one.stop_requested;
    added.is_shielded = one.is_shielded;
    if (one.reason != nullptr) added.cause = stop_cause{one.reason, one.where};
  }
  return all;
}

const task_info* snapshot::find(task_id id) const noexcept {
  const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const task_info& one) { return one.id == id; });
  return found != tasks.end() ? found : nullptr;
}

const char* to_string(task_kind kind) noexcept {
  switch (kind) {
    case task_kind::task: return "task";
    case task_kind::thread: return "thread";
    case task_kind::fork: return "fork";
    case task_kind::fiber: return "fiber";
    case task_kind::body: return "body";
    case task_kind::child: return "child";
    case task_kind::shared_task: return "shared_task";
  }
  return "";
}

const char* to_string(task_state state) noexcept {
  switch (state) {
    case task_state::running: return "running";
    case task_state::ready: return "ready";
    case task_state::waiting: return "waiting";
  }
  return "";
}

}  // namespace weft
