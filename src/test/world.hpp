// The world of a run: its executor, its clock, its memory for frames, and the watch of all waits. Part of the test kit.
// No model: these threads take turns in a test, and no program has them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/observe.hpp>
#include <weft/test.hpp>

#include "test/memory.hpp"
#include "test/sockets.hpp"

namespace weft::test::detail {

/// Where a stop may come. The watch counts the first three in the whole process; a step is one of the world.
enum class place : std::uint8_t {
  before,  // a sleeper is about to park
  inside,  // it has parked, and is not in its line yet: stopped by another thread only
  woken,   // its wait was claimed, and it is about to be woken
  step,    // between two steps of the world: while all wait, or before a task that was woken goes on
};
inline constexpr std::size_t places = 4;
const char* name_of(place one) noexcept;

/// Which thread requests the stop.
enum class by : std::uint8_t {
  same_thread,
  other_thread,
  // Another thread, which is held up for one step of the world after it has claimed a wait and before it removes the sleeper
  // from its line. Only at a step.
  late_thread,
};
const char* name_of(by one) noexcept;

/// One stop of a sweep.
struct stop_plan {
  place where = place::before;
  by who = by::same_thread;
  std::size_t index = 0;  // which of these places, counted from 1; 0: no stop
  bool alone = false;     // stops only the task that waits there, as one stops a fork; else the whole test
  // At a step: which of those that wait, counted from 1, the oldest first, is stopped alone, or is stopped late; 0: none.
  std::size_t which = 0;
};

/// A thread that requests stops for the world.
class stopper {
 public:
  stopper();
  stopper(const stopper&) = delete;
  ~stopper();

  /// Has the thread call `stop(target)`. Returns when that call has returned, or has claimed a wait and may be blocked: by a
  /// lock that the caller holds, or, if `late` is not 0, in its claim number `late` until let_go().
  void stop(void (*stop)(void*) noexcept, void* target, std::size_t late = 0) noexcept;
  void let_go() noexcept { late_.store(0, std::memory_order_release); }
  /// Whether the call is still under way.
  bool busy() const noexcept { return state_.load(std::memory_order_acquire) != idle; }

  /// Called by the watch when a wait was claimed, perhaps by this thread.
  void claimed() noexcept;

 private:
  enum state : std::uint32_t { idle, asked, begun, has_claimed, ending };
  void run() noexcept;

  std::atomic<std::uint32_t> state_{idle};  // acquire and release: it carries all that was written, in both directions
  // How many more claims until it blocks; 0: it does not. Relaxed where `state_` carries it.
  std::atomic<std::size_t> late_{0};
  void (*stop_)(void*) noexcept = nullptr;
  void* target_ = nullptr;
  std::thread thread_;
};

struct world_options {
  std::uint64_t seed = 0;
  io_backend io = io_backend::automatic;
  weft::detail::time_span patience = std::chrono::seconds{0};
  bool stop_when_idle = false;
  bool resumes_inline = false;  // a woken task resumes at once, in the call that wakes it
  stop_plan plan{};
  stopper* other = nullptr;  // for plans that need another thread
  bool count_allocations = false;
  std::size_t fail_allocation = 0;  // the one that fails, from 1 on; 0: none
};

/// What happened in a run, beside its outcome.
struct world_findings {
  std::size_t seen[places]{};
  std::size_t awaits = 0;
  std::vector<std::size_t> waiting;     // how many waited, at each step
  bool stopped = false;                 // the plan's stop came
  std::vector<async_frame> stopped_in;  // of the task that was about to wait, or was woken, when that stop came
};

/// Watches all waits of the process while it lives.
class world final : executor {
 public:
  explicit world(const world_options& options);
  world(const world&) = delete;
  ~world();

  /// Makes the scenario of `what`, and runs it to its end. False: it hangs.
  bool run(subject& what);

  /// After the end: what was found, and what has gone wrong, for people; empty if nothing has.
  const world_findings& findings() const noexcept { return findings_; }
  std::string what_waits() const;
  std::string complaints() const;

  /// After `what` was cleared: the frames that are left; empty if there are none.
  std::string leaks() const;

  /// For a run that will never end: never frees what the run refers to.
  static void abandon(std::unique_ptr<world> one, subject& what) noexcept;

  stop_token token() noexcept { return source_.token(); }
  void request_stop() noexcept { source_.request_stop({.reason = "a test's stop"}); }

  // ---- called by the watch and the root

  const env& environment() const noexcept { return env_; }
  void parking(weft::detail::sleeper& one) noexcept;
  void parked(weft::detail::sleeper& one, bool waits) noexcept;
  void waking(weft::detail::sleeper& one) noexcept;
  void stopping() noexcept;

 private:
  struct stop_root {
    tested_root* one;
    void operator()() const noexcept { one->request_stop(); }
  };

  void post(job& work) noexcept override;
  weft::detail::io_service* io() const noexcept override { return sockets_.ring(); }
  void begin_step() noexcept;
  void end_step() noexcept;
  void reach(place where, weft::detail::sleeper* who) noexcept;
  void stop_as_planned(weft::detail::sleeper* who) noexcept;
  void stop_alone(weft::detail::sleeper& one) noexcept;
  std::vector<weft::detail::sleeper*> waiting() const;
  static std::vector<async_frame> stack_of(weft::detail::sleeper& one);
  bool drive() noexcept;
  bool something_to_do() const noexcept;
  template <class F>
  bool poll_until(F over) const noexcept;
  bool wait_for_others() noexcept;
  bool wait_for_calls() noexcept;
  bool report_of_sockets() noexcept;

  // One sleeper: its address, with a flag if it does not wait now; when its wait began, as a count of waits; the function that
  // awaits there, and its frame, for a report after the sleeper's end. Relaxed, all: figures and addresses, for reports.
  struct slot {
    std::atomic<std::uintptr_t> who{0};
    std::atomic<std::size_t> since{0};
    std::atomic<const void*> in{nullptr};
    std::atomic<const void*> frame{nullptr};
  };
  slot& slot_of(const weft::detail::sleeper& one) noexcept;

  world_options options_;
  seeded_executor loop_;
  virtual_clock clock_;
  sockets sockets_;
  stop_source source_;
  std::unique_ptr<frame_tracker> frames_ = std::make_unique<frame_tracker>();
  env env_;
  tested_root* root_ = nullptr;
  std::optional<stop_callback<stop_root>> stop_it_;
  bool tell_others_ = false;  // so far only the root was told to stop; drive() tells the others

  // Written by any thread that parks or wakes. Relaxed, all: figures and addresses, read after the end or for a
  // report. A stronger order here could hide that one is missing in the code under test.
  std::atomic<std::size_t> seen_[places]{};
  std::atomic<std::size_t> wakes_{0}, posts_{0};
  std::atomic<const weft::detail::sleeper*> woken_twice_{nullptr};
  std::atomic<const void*> twice_in_{nullptr};    // the function of the first of these
  std::atomic<const void*> twice_made_{nullptr};  // the function that made its frame, if
  std::atomic<bool> knows_maker_{false};          // that frame was still alive
  std::atomic<const job*> posted_twice_{nullptr};
  std::atomic<bool> full_{false};

  // The sleepers: a table with open addressing.
  static constexpr std::uintptr_t woken = 1, unknown = 2, flags = 3;
  static constexpr std::size_t slots = 1024;
  std::unique_ptr<slot[]> table_;

  world_findings findings_;
};

/// Whether a check of the test framework has failed, if the kit was given a function that tells.
bool probe_failed() noexcept;

/// Throws a failure if the world has complaints or the run has left frames. Then world and scenario are never freed.
template <class Fails>
void expect_nothing_left(std::unique_ptr<world>& here, subject& what, const Fails& fails) {
  const std::string bad = here->complaints() + here->leaks();
  if (bad.empty()) return;
  world::abandon(std::move(here), what);
  throw fails(bad);
}

/// The end of a sweep's run whose task has ended: destroys the scenario and the world, and throws what was wrong with either.
template <class Fails>
void end_run(std::unique_ptr<world> here, subject& what, const std::exception_ptr& broken, const Fails& fails) {
  what.clear();
  expect_nothing_left(here, what, fails);
  here.reset();
  if (broken) std::rethrow_exception(broken);
  if (probe_failed()) throw fails("a check of the test framework has failed, see above");
}

}  // namespace weft::test::detail
