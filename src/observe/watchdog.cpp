#include <weft/watchdog.hpp>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/recorder.hpp>

#include "base/fence.hpp"
#include "base/helper_signals.hpp"
#include "base/stamp.hpp"
#include "core/running_probe.hpp"
#include "core/turns.hpp"
#include "observe/running_stacks.hpp"
#include "observe/thread_probe.hpp"
#include "sched/pool_worker.hpp"
#include "sched/worker_watch.hpp"

namespace weft {
namespace detail {
namespace {

// The process that has a watchdog; 0: none. A forked child is another one, which has not its thread. Relaxed: it guards nothing
// but who comes first.
constinit std::atomic<::pid_t> process_with_one{0};

// On the watchdog's thread, where an exception would end the program.
void print(const stall& what, void*) noexcept {
  try {
    std::ostringstream text;
    text << what;
    std::fputs(text.str().c_str(), stderr);
  } catch (...) {
    std::fputs("weft: a worker has stalled, and there is no memory to say where\n", stderr);
  }
}

void print_deadlocks(const snapshot& what, void*) noexcept {
  try {
    std::ostringstream text;
    text << "weft: all workers sleep, and these tasks will never go on:\n";
    what.deadlocks_text(text);
    std::fputs(text.str().c_str(), stderr);
  } catch (...) {
    std::fputs("weft: tasks wait for each other, and there is no memory to say which\n", stderr);
  }
}

// What names a circle: each snapshot gives its tasks in the same order.
std::vector<task_id> key_of(const deadlock& one) { return {one.circle.begin(), one.circle.end()}; }

// Of a time that may be max(): a hundred years at most, so that sums have room.
std::uint64_t nanoseconds_of(std::chrono::milliseconds time) noexcept {
  constexpr std::int64_t most = std::int64_t{100} * 365 * 24 * 3600 * 1000;
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(time.count(), 0, most)) * 1'000'000;
}

items<async_frame> frames_of(std::span<const void* const> code) {
  std::vector<async_frame> frames;
  for (const void* const one : code) frames.emplace_back(one);
  return frames;
}

}  // namespace

/// The thread of a watchdog, and what it has seen.
struct watch_thread {
  explicit watch_thread(const watchdog_options& asked) : options{asked} {
    stall_after = nanoseconds_of(std::max(options.stall_after, std::chrono::milliseconds{1}));
    report_every = nanoseconds_of(options.at_most_every);
    if (options.on_stall == nullptr) options.on_stall = print;
    if (options.on_deadlock == nullptr) options.on_deadlock = print_deadlocks;
    options.samples_a_second = std::min(options.samples_a_second, 1000u);
    tick = stall_after / 4;
    if (options.samples_a_second != 0) tick = std::min<std::uint64_t>(tick, 1'000'000'000 / options.samples_a_second);
  }

  static void* run(void* argument) noexcept {
    ::pthread_setname_np(::pthread_self(), "weft-watchdog");
    static_cast<watch_thread*>(argument)->watch();
    return nullptr;
  }

  void watch() noexcept {
    while (ends.load(std::memory_order_relaxed) == 0) {  // as declared
      const activity seen = look();
      // Workers that have been awake since the last search may have left tasks that wait for each other.
      const bool is_search_due = options.deadlocks && seen.jobs != searched_at_jobs;
      if (seen.any_awake || (is_search_due && steady_nanoseconds() < next_search)) {
        nap();
        continue;
      }
      if (is_search_due) {
        searched_at_jobs = seen.jobs;
        search();
        continue;
      }
      watcher_bed::prepare();
      if (ends.load(std::memory_order_relaxed) != 0 || any_awake())  // as declared
        watcher_bed::stay_awake();
      else
        watcher_bed::sleep();
    }
  }

  void nap() noexcept { word_futex{ends}.wait(0, std::chrono::steady_clock::now() + std::chrono::nanoseconds{tick}); }

  static bool any_awake() noexcept {
    const watched_workers all;
    const std::uint64_t now = steady_nanoseconds();
    bool any = false;
    all.for_each([&](const watched_worker& one) { any = any || !one.asleep.get(now).sleeps; });
    return any;
  }

  struct activity {
    bool any_awake = false;
    std::uint64_t jobs = 0;  // that all workers have run
  };

  // What it has to say of a stall it says without the list's lock, which threads need to begin and end.
  activity look() noexcept {
    std::optional<stall> found;
    activity seen;
    {
      const watched_workers all;
      looks.add();
      const std::uint64_t now = steady_nanoseconds();
      const bool samples_now = options.samples_a_second != 0;
      const bool looks_for_stalls = now - looked_for_stalls >= stall_after / 4 - stall_after / 16;
      if (looks_for_stalls) looked_for_stalls = now;
      all.for_each([&](watched_worker& one) {
        seen.jobs += one.jobs.jobs.get();
        if (one.asleep.get(now).sleeps) {
          one.is_known = false;
          return;
        }
        seen.any_awake = true;
        if (looks_for_stalls && has_stalled(one, now)) {
          stalls.add();
          if (!found && may_report(now)) found = describe(one, now);
        } else if (samples_now) {
          sample(one);
        }
      });
    }
    if (found) {
      reported.add();
      options.on_stall(*found, options.with);
    }
    return seen;
  }

  // Tells of circles that it has not told of.
  void search() noexcept {
    const std::uint64_t began = time_run_by(::gettid());  // so that a machine that stalls meanwhile puts nothing off
    searches.add();
    std::optional<snapshot> found;
    try {
      if (has_new(take_snapshot({.stacks = false}))) {
        found = take_snapshot();
        if (!has_new(*found)) found.reset();
      }
      if (found) {
        std::set<std::vector<task_id>> there;
        for (const deadlock& one : found->deadlocks())
          if (!told.contains(*there.insert(key_of(one)).first)) deadlocks.add();
        told = std::move(there);
      }
    } catch (...) {  // no memory: once more, although no job may ever run again
      found.reset();
      searched_at_jobs = ~std::uint64_t{0};
    }
    const std::uint64_t took = time_run_by(::gettid()) - began;
    next_search = steady_nanoseconds() + std::max<std::uint64_t>(1'000'000'000, 100 * took);
    if (!found) return;
    save_recording_of_deadlock();
    options.on_deadlock(*found, options.with);
  }

  bool has_new(const snapshot& all) const {
    return std::ranges::any_of(all.deadlocks(), [&](const deadlock& one) { return !told.contains(key_of(one)); });
  }

  bool may_report(std::uint64_t now) noexcept {
    if (reported_at != 0 && now - reported_at < report_every) return false;
    reported_at = now;
    return true;
  }

  // A job of its own number, and not blamed yet, has used up its time: what it ran, or waited for in a system call, but not
  // what it was in line for a processor.
  bool has_stalled(watched_worker& one, std::uint64_t now) noexcept {
    const std::uint64_t number = one.jobs.jobs.get();
    if (!one.is_known || one.number != number) {
      one.number = number;
      one.since = now;
      one.is_known = true;
      one.is_blamed = false;
      one.ran_before = time_run_by(one.thread);
      one.queued_before = ~std::uint64_t{0};
      return false;
    }
    if (one.is_blamed || now - one.since < stall_after / 4) return false;
    if (one.queued_before == ~std::uint64_t{0}) one.queued_before = time_in_line_of(one.thread);
    if (now - one.since < stall_after) return false;
    const std::uint64_t ran = time_run_by(one.thread) - one.ran_before;
    if (ran < stall_after) {
      const thread_state state = state_of(one.thread);
      if (!state.is_known || state.can_run) return false;
      const std::uint64_t queued = time_in_line_of(one.thread) - one.queued_before;
      if (now - one.since < stall_after + queued) return false;
    }
    if (one.asleep.get(now).sleeps) return false;  // since the look: it waits for jobs
    one.is_blamed = true;
    return true;
  }

  std::optional<stall> describe(const watched_worker& one, std::uint64_t now) noexcept {
    try {
      stall what;
      what.thread = static_cast<std::uint32_t>(one.thread);
      what.worker = one.index;
      what.lasted = std::chrono::nanoseconds{now - one.since};
      what.waiting = one.ready(one.jobs);
      const thread_state state = state_of(one.thread);
      thread_calls calls;
      if (state.system_call >= 0) {
        what.system_call = state.system_call;
        what.system_call_name = name_of_call(state.system_call);
        what.is_exact = false;
        guess_calls_of(one.thread, state, one.here, calls);
      } else if (state.is_known && one.jobs.jobs.get() == one.number) {
        list_calls_of(one.thread, calls);
      }
      if (calls.is_there) {
        what.stack = frames_of(std::span{calls.native}.first(calls.native_count));
        what.async_stack = frames_of(std::span{calls.async}.first(calls.async_count));
      }
      const std::uint64_t innermost = calls.native_count != 0 ? as_number(calls.native[0]) : 0;
      record(event_kind::stall, what.thread, static_cast<std::uint64_t>(what.lasted.count()), innermost);
      return what;
    } catch (...) {  // no memory: the next one
      return {};
    }
  }

  void sample(const watched_worker& one) noexcept {
    const thread_state state = state_of(one.thread);
    if (!state.is_known || state.system_call >= 0 || !state.can_run) return;
    thread_calls calls;
    list_calls_of(one.thread, calls);
    if (!calls.is_there || calls.native_count == 0) return;
    samples.add();
    record(event_kind::sample, static_cast<std::uint32_t>(one.thread), calls.root, as_number(calls.native[0]));
  }

  const ::pid_t process = ::getpid();
  watchdog_options options;
  std::uint64_t stall_after = 0, tick = 0, report_every = 0;  // nanoseconds
  std::uint64_t reported_at = 0, looked_for_stalls = 0;
  std::uint64_t searched_at_jobs = 0, next_search = 0;
  std::set<std::vector<task_id>> told;  // circles
  count looks, stalls, reported, samples, searches, deadlocks;
  atomic<std::uint32_t> ends{0};  // 1: it is to end. Relaxed: it says nothing else
  pthread_t thread{};
};

}  // namespace detail

struct watchdog::core : detail::watch_thread {
  using watch_thread::watch_thread;
};

watchdog::watchdog(watchdog_options options) : core_{std::make_unique<core>(options)} {
  if (detail::process_with_one.exchange(core_->process, std::memory_order_relaxed) == core_->process)  // as declared
    throw error{std::make_error_code(std::errc::device_or_resource_busy), "watch workers",
                "a watchdog does so already"};
  detail::prepare_fences();
  detail::begin_probing();
  detail::probe_of_running.store(detail::calls_of_running, std::memory_order_relaxed);  // as declared
  const detail::helper_signals as_helper;
  if (const int refused = ::pthread_create(&core_->thread, nullptr, core::run, core_.get()); refused != 0) {
    detail::probe_of_running.store(nullptr, std::memory_order_relaxed);  // as declared
    detail::end_probing();
    detail::process_with_one.store(0, std::memory_order_relaxed);  // as declared
    throw error{{refused, std::generic_category()}, "start the thread of a watchdog"};
  }
}

watchdog::~watchdog() {
  if (core_->process != ::getpid()) {  // in a forked child, where its thread is not, which may have been writing to it
    static_cast<void>(core_.release());
    return;
  }
  core_->ends.store(1, std::memory_order_relaxed);  // as declared
  detail::full_fence();  // between that and the word of the bed (no model: the same as of parking)
  detail::watcher_bed::ring();
  detail::word_futex{core_->ends}.wake();
  ::pthread_join(core_->thread, nullptr);
  detail::probe_of_running.store(nullptr, std::memory_order_relaxed);  // as declared
  detail::end_probing();
  detail::process_with_one.store(0, std::memory_order_relaxed);  // as declared
}

watchdog_stats watchdog::stats() const noexcept {
  return {.looks = core_->looks.get(),
          .stalls = core_->stalls.get(),
          .reported = core_->reported.get(),
          .samples = core_->samples.get(),
          .searches = core_->searches.get(),
          .deadlocks = core_->deadlocks.get()};
}

std::ostream& operator<<(std::ostream& out, const stall& what) {
  using std::chrono::duration_cast;
  out << "weft: worker " << what.worker << " (thread " << what.thread << ") has been at one job for "
      << duration_cast<std::chrono::milliseconds>(what.lasted).count() << " ms";
  if (what.system_call >= 0) {
    out << ", now in system call ";
    if (*what.system_call_name != '\0')
      out << what.system_call_name;
    else
      out << what.system_call;
    if (std::string_view{what.system_call_name} == "futex")
      out << " (for a lock, perhaps one that a task holds which waits for this worker)";
  }
  out << "; " << what.waiting << (what.waiting == 1 ? " job waits" : " jobs wait") << " behind it\n";
  if (!what.async_stack.empty())
    out << "who awaits it:\n" << std::span<const async_frame>{what.async_stack.begin(), what.async_stack.size()};
  if (!what.stack.empty())
    out << (what.is_exact ? "where it is:\n" : "where it is, as far as return addresses on its stack say:\n")
        << std::span<const async_frame>{what.stack.begin(), what.stack.size()};
  return out;
}

}  // namespace weft
