// A walk over all roots that live. How it finds them, and what it may touch, is told in core/walk.hpp.
//
// It goes down depth first, and takes sixteen children of one wait at a time, whose waits it holds for some microseconds. What
// it is counted in by, it leaves when it has seen all children of that. So it holds no lock while it calls anything, and the
// memory that it needs beside its list of roots grows with the depth of the tree alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>
#include <weft/async_frame.hpp>
#include <weft/detail/core/async_stack.hpp>
#include <weft/detail/core/walk.hpp>
#include <weft/items.hpp>
#include <weft/stop.hpp>
#include <weft/wait_subject.hpp>

namespace weft::detail {

/// What a walk has seen of a root.
struct seen_root {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  const void* at = nullptr;  // as a holder's address in a wait_subject. Not to be followed
  task_id id;
  std::size_t parent = none;  // its place in the list
  root_kind kind = root_kind::task;
  bool is_fiber = false;
  bool waits = false;
  bool stop_requested = false;
  bool is_shielded = false;
  bool has_children = false;  // it waits for those
  wait_children::ends how = wait_children::ends::with_all;
  std::uint64_t ticket = 0;
  std::uint64_t since = 0;  // a stamp: when its wait began. 0: nobody has noted that
  const void* function = nullptr;
  items<wait_subject> on;
  items<async_frame> stack;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::optional<std::source_location> deadline_set_at;
  const char* reason = nullptr;  // of a stop
  std::source_location where;
};

/// What it has seen of a thread.
struct seen_worker {
  const worker* at;  // which stays, whatever its thread does
  int thread;
  const void* pool;     // its executor; null: it is in none
  const void* current;  // as seen_root::at
  std::size_t queued;
  std::uint64_t since;  // a stamp: when the turn of `current` began, if that is traced; else 0
};

class root_walk {
 public:
  struct options {
    bool stacks = true;
    std::size_t most_frames = 64;
    std::size_t most_roots = static_cast<std::size_t>(-1);
    task_id only;  // not empty: it looks for this one, whose stack goes on in those that wait for it
  };

  explicit root_walk(const options& how) : how_{how} {}
  /// Not on the stack of whoever looks, which may be a small fiber's: it takes 17 KiB.
  static std::unique_ptr<root_walk> make(const options& how) { return std::make_unique<root_walk>(how); }
  root_walk(const root_walk&) = delete;

  /// Once, and when no other walk runs. Has left all that it was counted in by when it returns. Throws std::bad_alloc.
  void run();

  std::deque<seen_root> roots;  // a parent before its children
  std::vector<seen_worker> workers;
  bool is_complete = true;

 private:
  static constexpr std::size_t most_kept = 64;  // frames of one root

  struct level {
    waiter* of = nullptr;
    const wait_children* by = nullptr;
    walk_place place;
    std::size_t parent = seen_root::none;
  };
  // What is noted of a root while its wait is held, when nothing may be allocated.
  struct note {
    wait_subjects on;
    const void* stack[most_kept];
    std::size_t frames;
  };

  void walk();
  void leave_all() noexcept;
  void look_behind_gate();
  void merge_those_found_twice();
  void go_down();
  void look_at(child_batch& batch, std::size_t parent);
  void note_who_set_deadline(seen_root& into, const child_batch& batch) const noexcept;
  void note_held(child_batch::child& one, seen_root& into, note& noted, std::size_t index);
  void enter(waiter& in, const wait_children& by, std::size_t parent);
  void leave(const level& one) noexcept;
  bool has_found() const noexcept { return how_.only && !roots.empty(); }

  const options how_;
  child_batch batch_;
  note notes_[child_batch::most];
  call_list calls_;
  std::vector<level> levels_;
  std::vector<level> openings_;  // found behind the gate
  level left_last_;              // of which all children are in the batch, and which is left when those are let go
  top_roots::place tops_;
  bool in_tops_ = false;
  bool owes_arm_ = false;  // of what the clock's thread is to end
};

}  // namespace weft::detail
