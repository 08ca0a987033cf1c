// The test kit: virtual time, schedules that a seed replays, and sweeps, which show that a stop at any await, and a lack of
// memory at any allocation, does no harm. A target of its own, weft::test; nothing of weft includes it.
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
// It depends on no test framework. A failed test throws a `failure`, whose what() is the whole report: every framework reports
// an exception that leaves a test. What a framework itself throws (REQUIRE of Catch2 and doctest) passes through unchanged.
// Checks that do not throw (EXPECT of GoogleTest) work in any body; call set_failure_probe() once, so that the kit names the
// sweep or seed in which one fails.
//
// A run has a world of its own: an executor that runs jobs on the calling thread, a virtual clock, and a memory resource that
// knows each frame. Whenever no job can run, time advances to the next timer. If there is none, the test hangs, and fails with
// the async stacks of all tasks that wait. Other threads may take part: before the world reports a hang, it waits for them.
//
// Sockets that are made in a run, outside of a runtime, are watched by the world, which asks the system about them before time
// advances. So a transfer through a local socket, as of a socketpair(), takes no time, and runs are repeatable. A transfer
// through a network takes real time, for which the world does not wait.
//
// They are watched by epoll, or by an io_uring (io_backend::uring) of the run's thread. An io_uring also makes calls on files,
// for tasks that resume on the executor: these take real time, and no virtual time.
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
#include <weft/io_backend.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft::test {

// ---- failures -----------------------------------------------------------------------------------------------------------

/// Thrown by the kit when a test has failed. what() is the report, which has several lines.
class failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws a failure with the text `otherwise` unless `holds`: for invariants, in the `check` of a scenario.
void require(bool holds, std::string_view otherwise);

/// Has the kit call `failed` after each run of a sweep or of a seed. Once it gives true, the sweep ends there and names the
/// run. For frameworks whose checks do not throw: `set_failure_probe([] { return testing::Test::HasFailure(); })`.
void set_failure_probe(bool (*failed)()) noexcept;

// ---- time ---------------------------------------------------------------------------------------------------------------

/// A clock whose time passes only when a test advances it. Timers fire on the thread that advances it, in the order of their
/// times; those with equal times in the order in which they were armed.
///
/// A world has one of its own; make one to run roots without a world.
///
/// Threads   any; one at a time advances it.
/// Lifetime  outlives all work that uses it; the last timer that it fires may destroy it.
class virtual_clock final : public clock {
 public:
  virtual_clock() = default;
  virtual_clock(const virtual_clock&) = delete;
  ~virtual_clock();

  /// The time at which each virtual clock begins.
  static constexpr time_point begin() noexcept { return time_point{std::chrono::hours{1}}; }

  time_point now() const noexcept override;
  void arm(timer& one, time_point when) noexcept override;
  bool cancel(timer& one) noexcept override;

  /// Advances the time, and fires each timer that is due, at its time.
  void advance(weft::detail::time_span by);
  /// Advances to the time of the next timer, and fires that. False: none is armed, or none is due by `until`; then no time
  /// passes.
  bool advance_to_next(time_point until = time_point::max());
  /// The time of the next timer, if one is armed.
  std::optional<time_point> next() const noexcept;

  duration elapsed() const noexcept { return now() - begin(); }  ///< since begin()
  std::size_t armed() const noexcept;                            ///< how many timers are armed
  std::size_t armed_so_far() const noexcept;                     ///< how many were armed, in all

 private:
  mutable std::mutex lock_;  // of all that follows
  time_point now_ = begin();
  timer* first_ = nullptr;         // the armed ones, the next to fire first, linked by `next` and `prev`
  const timer* firing_ = nullptr;  // the one whose function runs; only its address is used
  std::uintptr_t firer_ = 0;       // the thread on which that runs
  std::size_t armed_ = 0;
  std::size_t total_ = 0;
  weft::detail::pumping* pumped_by_ = nullptr;  // set by the thread that advances it
};

/// Virtual time since the run began, by the clock of the running task.
inline clock::duration elapsed() noexcept { return current_clock().now() - virtual_clock::begin(); }

// ---- schedules ----------------------------------------------------------------------------------------------------------

/// Runs jobs only when asked to, as manual_executor does, but in an order that a seed determines: any job may be the next one.
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

  /// Runs one job. Gives false where there is none.
  bool run_one() noexcept;
  /// Runs all jobs, also those that are posted meanwhile. Returns how many it has run.
  std::size_t run_all() noexcept;

  bool empty() const noexcept;
  /// Whether this job is queued, so that another post of it would be an error.
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

/// The default seed of a run: the environment variable WEFT_SEED, else 0.
std::uint64_t default_seed() noexcept;

/// How many seeds for_each_seed tries: the environment variable WEFT_SEEDS, else `otherwise`; 1 if WEFT_SEED is set.
std::size_t default_seeds(std::size_t otherwise) noexcept;

// ---- runs ---------------------------------------------------------------------------------------------------------------

/// The options of a run.
struct run_options {
  std::uint64_t seed = default_seed();  ///< of the order in which ready jobs run
  /// What watches sockets, and makes calls on files; automatic: as the environment variable WEFT_IO says, else epoll.
  io_backend io = io_backend::automatic;
  /// How long, in real time, the world waits for other threads before it reports a hang, or what is left behind.
  weft::detail::time_span patience = std::chrono::seconds{5};
  bool stop_when_idle = false;  ///< tasks that would wait for ever are stopped, and that is no failure
  stop_token stop{};            ///< stops the run
};

/// Something that can be run again and again: it is made anew for each run, and its task is destroyed before it.
template <class T>
concept scenario = requires(T& one) { requires awaitable<decltype(one.run())>; };

/// Runs an awaitable to its end, in a world of its own, and gives its result.
///
///     TEST(cache, forgets_after_a_minute) {
///       weft::test::run([]() -> weft::task<> {
///         …
///         co_await weft::sleep_for(1min);  // at once
///         EXPECT_EQ(weft::test::elapsed(), 1min);
///       });
///     }
///
/// `make` is a function that returns the awaitable. It is called once, inside the world, so that the world's resource allocates
/// its frames.
///
/// Fails   throws what the task threw; `stopped` if it ended stopped; a failure if it hangs, or has left a frame; an error if
///         the system refuses the back end.
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

/// Calls `body(seed)` for several seeds: WEFT_SEED alone, or WEFT_SEEDS of them, or `count`. A seed that fails is printed, so
/// that WEFT_SEED=<it> replays it, and its exception is passed on.
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
  std::uint64_t seed = 0;                 ///< of the order in which ready jobs run; 0: that of posting
  io_backend io = io_backend::automatic;  ///< as of run_options
  weft::detail::time_span patience = std::chrono::seconds{5};  ///< as of run_options
  bool stop_when_idle = false;    ///< the scenario ends only by a stop: where it would wait for ever, it is stopped
  bool may_throw = false;         ///< a stop may make it throw what it would not throw otherwise
  bool inline_completion = true;  ///< also with tasks that resume on the thread that wakes them
  bool other_thread = true;       ///< also with stops from another thread
  bool each_alone = true;         ///< also with a stop of one inner task alone, as of a fork by its handle
};

/// What a sweep has done.
struct sweep_report {
  std::size_t awaits =
      0;  ///< how often a task waited, or yielded, in a run without a stop; the larger count of both ways to resume
  std::size_t runs = 0;  ///< how many runs there were
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

/// Runs a scenario many times, each time with a stop at another place: before each await, inside it, while it waits, and after
/// it was woken and before it goes on; from the same and from another thread; with tasks that resume on an executor later, and
/// with tasks that resume on the thread that wakes them. `name` says which functions the awaits are of, as in "timeout, retry":
/// tools/check_swept reads there which functions are swept.
///
/// A scenario has a run(), which returns something to await. It may have a check() or a check(const result<T>&), which is
/// called after that, and throws if an invariant is broken: every permit is back, every value was received or is still there.
/// Unless check() takes the outcome, a run must end with a value or stopped.
///
/// Fails   throws a failure if a run hangs (with the async stacks of the tasks that wait), leaves a frame (with its function
///         and where it was made), wakes a task twice, fails the check, or throws; and if nothing awaits at all. Its text names
///         the place, which WEFT_SWEEP=<place> runs alone. WEFT_SWEEP_TRACE=1 prints each place before its run.
/// Cost    20 to 100 us for each run, some ten runs for each await. Prints a line with the number of awaits.
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

/// While it lives, each operator new on the calling thread fails. For code that must work without memory: destructors, and
/// noexcept functions, in which a throw would end the program.
///
///     {
///       const weft::test::no_memory none;
///       promise.reset();  // its future fails, and the program goes on
///     }
///
/// Note  has no effect under the thread sanitizer, nor in a program that has its own operator new.
class no_memory {
 public:
  no_memory() noexcept;
  no_memory(const no_memory&) = delete;
  ~no_memory();

 private:
  bool was_armed_, did_all_fail_;
};

/// Runs a scenario many times; in the n-th run, its n-th allocation fails, until a run needs fewer. Allocations are those of
/// frames, and each operator new on the calling thread. Each run must end with a value or std::bad_alloc, and leak nothing.
///
/// Fails   as cancellation_sweep. A heap block is a leak, too, if a run with a failure leaves it and one without does not.
/// Note    a program that links this gets another operator new (a weak symbol). In one that defines its own, only frames are
///         swept, as under the thread sanitizer.
/// Returns how many allocations there were, which it also prints.
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
