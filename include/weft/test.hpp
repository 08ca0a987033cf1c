// The test kit: time that jumps, schedules that a seed replays, and sweeps, which show that a stop at any await, and a
// lack of memory at any allocation, is safe. A target of its own, weft::test; nothing of weft includes it.
//
//     struct takes_a_permit {                    // made anew for each run
//       weft::semaphore permits{1};
//       weft::task<> run() {
//         auto permit = co_await permits.acquire();
//         co_await weft::sleep_for(1ms);         // takes no time: the clock jumps
//       }
//       void check() { weft::test::require(permits.available() == 1, "a permit was lost"); }
//     };
//
//     TEST(semaphore, survives_every_stop) { weft::test::cancellation_sweep<takes_a_permit>("semaphore::acquire"); }
//
// It knows no test framework: what fails is thrown, as a `failure` whose what() tells all, and every framework reports an
// exception that leaves a test. What a framework throws itself (REQUIRE of Catch2 and doctest) passes through as it is.
// Checks that do not throw (EXPECT of GoogleTest) work in any body; so that a sweep or seed is named where one fails, call
// set_failure_probe() once.
//
// A run has a world of its own: an executor that is pumped on the calling thread, a virtual clock, and a memory that knows
// each frame. Whenever nothing can run, time goes on to the next timer; if there is none, the test hangs, which fails with
// the async stacks of all that waits. Other threads may take part: before it calls a hang a hang, the world waits for them.
//
// Sockets that are made in a run, outside of a runtime, are watched by the world, which asks the system before time goes on.
// So what goes over a local socket, as of a socketpair(), takes no time, and runs are repeatable. What goes through a network
// takes time of its own, which the world does not wait for.
//
// Threads   a run belongs to the thread that calls it; one at a time in a process, since it watches all waits.
//
// Source: the sweep of stops is that of FoundationDB's and of SQLite's fault injection, by await instead of by call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/detail/test/subject.hpp>
#include <weft/executor.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft::test {

// ---- failures -----------------------------------------------------------------------------------------------------------

/// What the kit throws when a test has failed: what() is the report, of several lines.
class failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws a failure unless `holds`: for invariants, in the `check` of a scenario.
void require(bool holds, std::string_view otherwise);

/// Has the kit ask `failed` after each run of a sweep or seed, and end there, naming the run, once it says true. For
/// frameworks whose checks do not throw: `set_failure_probe([] { return testing::Test::HasFailure(); })`.
void set_failure_probe(bool (*failed)()) noexcept;

// ---- time ---------------------------------------------------------------------------------------------------------------

/// Time that passes only when a test says so. Timers fire on the thread that advances it, in the order of their times,
/// then of arming.
///
/// A world has one of its own; make one to drive roots by hand.
///
/// Threads   any; one at a time advances.
/// Lifetime  outlives all work that runs by it; the last that it wakes may destroy it.
class virtual_clock final : public clock {
 public:
  virtual_clock() = default;
  virtual_clock(const virtual_clock&) = delete;
  ~virtual_clock();

  /// Where each of them begins.
  static constexpr time_point begin() noexcept { return time_point{std::chrono::hours{1}}; }

  time_point now() const noexcept override;
  void arm(timer& one, time_point when) noexcept override;
  bool cancel(timer& one) noexcept override;

  /// Lets time pass; fires what falls due, each at its time.
  void advance(weft::detail::time_span by);
  /// Goes on to the next timer, and fires it. False: there is none, or none that fires by `until`; then no time passes.
  bool advance_to_next(time_point until = time_point::max());
  /// When the next timer fires, if there is one.
  std::optional<time_point> next() const noexcept;

  duration elapsed() const noexcept { return now() - begin(); }  ///< since begin()
  std::size_t armed() const noexcept;                            ///< how many timers are
  std::size_t armed_so_far() const noexcept;                     ///< and were

 private:
  mutable std::mutex lock_;  // of all that follows
  time_point now_ = begin();
  timer* first_ = nullptr;         // the armed ones, the next to fire first, linked by `next` and `prev`
  const timer* firing_ = nullptr;  // whose function runs; its address only
  std::uintptr_t firer_ = 0;       // on which thread
  std::size_t armed_ = 0;
  std::size_t total_ = 0;
  weft::detail::pumping* pumped_by_ = nullptr;  // by who advances it
};

/// Virtual time since the run began, by the clock of the running task.
inline clock::duration elapsed() noexcept { return current_clock().now() - virtual_clock::begin(); }

// ---- schedules ----------------------------------------------------------------------------------------------------------

/// Runs jobs when asked to, as manual_executor does, in an order that a seed decides: whichever job is ready may be next.
/// Seed 0 is the order of posting.
///
/// Threads   post() from any; the others from one thread at a time.
/// Lifetime  destroyed with jobs inside, it ends the program. The last job may destroy it.
class seeded_executor final : public executor {
 public:
  explicit seeded_executor(std::uint64_t seed = 0) noexcept : state_{seed} {}  ///< one seed, one order
  seeded_executor(const seeded_executor&) = delete;
  ~seeded_executor();

  void post(job& work) noexcept override;

  /// Runs one job. False: there was none.
  bool run_one() noexcept;
  /// Runs jobs, also those that come meanwhile, until none is left. Returns how many.
  std::size_t run_all() noexcept;

  bool empty() const noexcept;
  /// Whether this very job is inside, and so would be posted twice.
  bool holds(const job& work) const noexcept;

 private:
  std::uint64_t random() noexcept;

  mutable std::mutex lock_;  // of the list. A job's edge, what the poster wrote  ->  the job, is the lock's
  job* first_ = nullptr;
  job* last_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t state_;  // the pump's
  weft::detail::pumping* pumped_by_ = nullptr;
};

/// The seed of a run that is given none: WEFT_SEED of the environment, else 0.
std::uint64_t default_seed() noexcept;

/// How many seeds for_each_seed tries: WEFT_SEEDS of the environment, else `otherwise`; 1 if WEFT_SEED names one.
std::size_t default_seeds(std::size_t otherwise) noexcept;

// ---- runs ---------------------------------------------------------------------------------------------------------------

/// The seed of a run, how long it waits for other threads, and what stops it.
struct run_options {
  std::uint64_t seed = default_seed();  ///< of the order in which ready jobs run
  /// Real time before a hang is one: another thread may still do something.
  weft::detail::time_span patience = std::chrono::seconds{5};
  bool stop_when_idle = false;  ///< what waits for ever is told to stop, and no failure
  stop_token stop{};            ///< whose stop stops the run
};

/// Something that can be run again and again: it is made anew for each run, and its task is destroyed before it.
template <class T>
concept scenario = requires(T& one) { requires awaitable<decltype(one.run())>; };

/// Runs an awaitable to its end, in a world of its own, and gives what it gives.
///
///     TEST(cache, forgets_after_a_minute) {
///       weft::test::run([]() -> weft::task<> {
///         …
///         co_await weft::sleep_for(1min);  // at once
///         EXPECT_EQ(weft::test::elapsed(), 1min);
///       });
///     }
///
/// `make` is a function that returns what to await, and is called once, inside the world, so that its frames are known.
///
/// Fails   throws what the task threw, `stopped` if it ended stopped; a failure if it hangs, or has left a frame.
template <class F>
  requires awaitable<std::invoke_result_t<const F&>>
auto run(run_options options, F make) -> await_result<std::invoke_result_t<const F&>> {
  using plain = detail::plain_scenario<F>;
  detail::subject_of<plain> one{[](const void* from) { return plain{static_cast<const F*>(from)}; }, &make};
  detail::run_once(one, options);
  auto how = std::move(one.outcome());
  one.clear();
  return std::move(how).value();
}
template <class F>
  requires awaitable<std::invoke_result_t<const F&>>
auto run(F make) -> await_result<std::invoke_result_t<const F&>> {
  return test::run(run_options{}, std::move(make));
}

/// Calls `body(seed)` with seed after seed: WEFT_SEED alone, or WEFT_SEEDS of them, or `count`. A seed that fails is printed,
/// so that WEFT_SEED=<it> replays it; its exception goes on.
///
///     weft::test::for_each_seed(100, [](std::uint64_t seed) { weft::test::run({.seed = seed}, transfer_money); });
template <class F>
  requires std::is_invocable_v<F&, std::uint64_t>
void for_each_seed(std::size_t count, F&& body) {
  const std::uint64_t first = default_seed();
  for (std::size_t i = 0, n = default_seeds(count); i != n; ++i) {
    const detail::names_seed named{first + i};
    body(first + i);
    if (named.failed()) return;
  }
}

// ---- sweeps -------------------------------------------------------------------------------------------------------------

struct sweep_options {
  std::uint64_t seed = 0;  ///< of the order in which ready jobs run; 0: that of posting
  weft::detail::time_span patience = std::chrono::seconds{5};  ///< as of run_options
  bool stop_when_idle = false;    ///< it ends only when it is stopped: where it waits for ever, it is
  bool may_throw = false;         ///< a stop may make it throw what it does not throw without one
  bool inline_completion = true;  ///< also where whoever wakes a task runs it, on whatever thread
  bool other_thread = true;       ///< also with stops from another thread
  bool each_alone = true;         ///< also with stops of one task inside alone, as of a fork by its handle
};

/// What a sweep has done.
struct sweep_report {
  std::size_t awaits =
      0;  ///< how often something waited, or gave way, without a stop; of both ways to complete, the more
  std::size_t runs = 0;  ///< how many were made
};

namespace detail {
sweep_report sweep_stops(std::string_view name, subject& what, const sweep_options& options);
std::size_t sweep_allocations(std::string_view name, subject& what, const sweep_options& options);

template <class Scenario>
subject_of<Scenario> subject_for() noexcept {
  return {[](const void*) { return Scenario(); }, nullptr};
}
/// `make` outlives the subject.
template <class F>
subject_of<plain_scenario<F>> subject_for(const F& make) noexcept {
  return {[](const void* from) { return plain_scenario<F>{static_cast<const F*>(from)}; }, &make};
}
}  // namespace detail

/// Runs a scenario again and again, each time with a stop at another place: before each await, inside it, while it waits,
/// when it has been woken and has not gone on; from the same and from another thread; with tasks that resume on an executor
/// later, and with tasks that resume where they are woken. `name` says what it is that the awaits are of, "timeout, retry":
/// tools/check_swept looks there for the functions that are swept.
///
/// A scenario has a run(), which returns something to await, and may have a check() or a check(const result<T>&), which is
/// called when that has ended and throws if what must hold does not: every permit is back, every value was received or
/// is still there. Without one that takes the outcome, a run must end with a value or stopped.
///
/// Fails   throws a failure if a run hangs (with the async stacks of what waits), leaves a frame (with its function and
///         where it was made), wakes something twice, breaks the check or throws; and if nothing awaits at all. Its text
///         has the place, which WEFT_SWEEP=<place> runs alone. WEFT_SWEEP_TRACE=1 prints each place before its run.
/// Cost    20 to 100 us a run, some ten runs an await. Prints a line with the count of awaits.
template <scenario Scenario>
sweep_report cancellation_sweep(const sweep_options& options, std::string_view name) {
  auto subject = detail::subject_for<Scenario>();
  return detail::sweep_stops(name, subject, options);
}
template <scenario Scenario>
sweep_report cancellation_sweep(std::string_view name) {
  return cancellation_sweep<Scenario>(sweep_options{}, name);
}
/// The same for a function that makes something to await, and needs no state: `[] { return when_all(f(), g()); }`.
template <class F>
  requires awaitable<std::invoke_result_t<const F&>>
sweep_report cancellation_sweep(const sweep_options& options, std::string_view name, F make) {
  auto subject = detail::subject_for(make);
  return detail::sweep_stops(name, subject, options);
}
template <class F>
  requires awaitable<std::invoke_result_t<const F&>>
sweep_report cancellation_sweep(std::string_view name, F make) {
  return cancellation_sweep(sweep_options{}, name, std::move(make));
}

/// While it lives, each operator new of the calling thread fails. For what must do without memory: destructors, and all that
/// is noexcept, which would end the program.
///
///     {
///       const weft::test::no_memory none;
///       promise.reset();  // its future fails, and the program goes on
///     }
///
/// Note  not under the thread sanitizer, nor in a program that has its own operator new.
class no_memory {
 public:
  no_memory() noexcept;
  no_memory(const no_memory&) = delete;
  ~no_memory();

 private:
  bool was_armed_, did_all_fail_;
};

/// Runs a scenario again and again, with allocation 1, 2, 3 … of it failing: those of frames, and all of operator new on the
/// calling thread, until a run needs no more. Each must end with a value or std::bad_alloc, and leave nothing.
///
/// Fails   as cancellation_sweep; a heap block that a run leaves and one that succeeds does not is a leak, too.
/// Note    operator new is replaced, weakly, in a program that links this; one with its own sweeps frames only, as does
///         any under the thread sanitizer.
/// Returns how many allocations there were, which it prints.
template <scenario Scenario>
std::size_t allocation_sweep(const sweep_options& options, std::string_view name) {
  auto subject = detail::subject_for<Scenario>();
  return detail::sweep_allocations(name, subject, options);
}
template <scenario Scenario>
std::size_t allocation_sweep(std::string_view name) {
  return allocation_sweep<Scenario>(sweep_options{}, name);
}
template <class F>
  requires awaitable<std::invoke_result_t<const F&>>
std::size_t allocation_sweep(const sweep_options& options, std::string_view name, F make) {
  auto subject = detail::subject_for(make);
  return detail::sweep_allocations(name, subject, options);
}
template <class F>
  requires awaitable<std::invoke_result_t<const F&>>
std::size_t allocation_sweep(std::string_view name, F make) {
  return allocation_sweep(sweep_options{}, name, std::move(make));
}

}  // namespace weft::test
