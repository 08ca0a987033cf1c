// All tasks of a target, as the process's own weft::take_snapshot() tells them: found by going down from what nothing stands
// above, through the waits for children; and who waits for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory.hpp"

namespace weft_tool {

class target;

enum class task_kind { task, thread, fork, fiber, body, child, shared_task };
enum class task_state { running, ready, waiting };
const char* to_string(task_kind kind) noexcept;
const char* to_string(task_state state) noexcept;

constexpr std::size_t none = static_cast<std::size_t>(-1);

struct task_wait {
  std::string what;
  address at = 0;       // 0: nothing that has an address
  address held_by = 0;  // a root; 0: nobody, or it is not known
};

/// A line of the program.
struct place_seen {
  std::string function, file;
  unsigned line = 0;
};

/// Why one was told to stop.
struct cause_seen {
  std::string reason;
  place_seen where;
};

struct task_seen {
  address at = 0;             // where its root lies, which names it
  std::size_t parent = none;  // in the list
  task_kind kind = task_kind::task;
  task_state state = task_state::ready;
  std::vector<task_wait> waits;
  std::vector<address> stack;            // code, innermost first; of one that runs, its thread's calls first
  std::vector<address> frames;           // of each of those: its coroutine's frame; 0: it is a call of a plain function
  address function = 0;                  // its outermost; 0: not known
  std::int64_t deadline = max_deadline;  // in the steady clock's nanoseconds
  std::optional<place_seen> deadline_set_at;  // where that is known
  bool stop_requested = false, is_shielded = false;
  std::optional<cause_seen> cause;    // where that is known
  std::optional<std::int64_t> since;  // when it began to wait, or to run, as the deadline; known of what is traced
  int worker = -1;                    // of tasks_seen::workers
  std::uint64_t ticket = 0;           // counts its waits
  bool is_blocked = false;            // only what is blocked, too, could end its wait
  // Of a wait for children.
  bool has_children = false, decides = false, in_time = false;

  static constexpr std::int64_t max_deadline = INT64_MAX;
};

struct worker_seen {
  address at = 0;
  int thread = 0;
  int pool = -1;
  unsigned index = 0;
  address runs = 0;
  std::uint64_t queued = 0, jobs = 0, steals = 0, sleeps = 0;
  std::int64_t asleep = 0;            // nanoseconds; below 0: it sleeps, and since when is subtracted
  std::optional<std::int64_t> since;  // when it began with what it runs, as a task's
};

struct pool_seen {
  address executor = 0;
  unsigned workers = 0;
  std::uint64_t waiting = 0;  // jobs that no worker has taken yet
};

struct tasks_seen {
  std::vector<task_seen> tasks;  // a parent before its children
  std::vector<worker_seen> workers;
  std::vector<pool_seen> pools;
  std::vector<std::vector<std::size_t>> circles;    // of tasks that wait for each other
  std::unordered_map<address, std::size_t> places;  // of their roots
  bool is_complete = true;
  bool is_stuck = false;  // all wait, some for what only a task does, and nothing from outside is pending

  std::optional<std::size_t> find(address root) const;
};

struct look_options {
  bool stacks = true;
  std::size_t most_frames = 64;
};

/// Fills in `circles`, `is_stuck`, and which tasks are blocked.
void find_circles(tasks_seen& all);

/// Throws problem, where nothing in the target uses weft, or it is of another version.
tasks_seen look_at(const target& in, const look_options& how = {});

/// Looks once more, in the place of a first look that found a deadlock, or all tasks asleep, where some of that was read after
/// the process had gone on: so it may be of several moments, and not be so at any of them. What was read late is copied now
/// while the process stands. Of what is read late even so, that alone is told which both looks have found, with the same tasks
/// in the same waits. Throws problem.
void look_again_if_doubtful(std::unique_ptr<target>& from, tasks_seen& all, const look_options& how = {});

}  // namespace weft_tool
