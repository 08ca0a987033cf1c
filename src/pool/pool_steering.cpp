// How many of a pool's workers may be awake: decided by the worker that watches, where there are more than processors, and
// limited by the program.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <weft/pool.hpp>

#include "core/turns.hpp"
#include "pool/pool_core.hpp"
#include "pool/pool_size.hpp"

namespace weft::detail {
namespace {

using std::chrono::steady_clock;

// By the number that the kernel gives the clock of a thread, which, unlike a pthread_t, may also be one that has ended: 0.
std::uint64_t processor_time_of(int thread) noexcept {
  constexpr clockid_t of_a_thread = 4, scheduled = 2;
  timespec used;
  if (::clock_gettime((~clockid_t{thread} << 3) | of_a_thread | scheduled, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

// How long a thread has waited for a processor until it had one last, in nanoseconds. From a file that stays open: to open
// it takes six times as long as to read it, and who watches does so often. False: it can't be had.
bool read_waited(int& file, int thread, std::uint64_t& into) noexcept {
  constexpr int not_tried = -1, not_there = -2;
  char text[64];
  if (file == not_tried) {
    std::snprintf(text, sizeof text, "/proc/self/task/%d/schedstat", thread);
    file = ::open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0) file = not_there;
  }
  if (file < 0) return false;
  const ssize_t length = ::pread(file, text, sizeof text - 1, 0);
  if (length <= 0) return false;
  text[length] = '\0';  // "<ran> <waited> <times>"
  const char* const first_ends = std::strchr(text, ' ');
  into = first_ends != nullptr ? std::strtoull(first_ends, nullptr, 10) : 0;
  return first_ends != nullptr && text[0] != '0';  // it has run: where the kernel does not count, all are zero
}

// How much it has become since.
std::uint64_t since(std::uint64_t now, std::uint64_t& before) noexcept {
  const std::uint64_t then = std::exchange(before, now);
  return now > then ? now - then : 0;
}

std::uint64_t nanoseconds(steady_clock::time_point when) noexcept {
  return static_cast<std::uint64_t>(when.time_since_epoch() / std::chrono::nanoseconds{1});  // as pool_core counts
}

// Whether the kernel has it on a processor or in line for one. False, too, where that can't be read.
bool can_run(int thread) noexcept {
  char path[48], text[512];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  const char* const name_ends = std::strrchr(text, ')');
  return name_ends == nullptr || name_ends[1] == '\0' || name_ends[2] == 'R';
}

}  // namespace

pool_core::seat::~seat() {
  if (schedule_file >= 0) ::close(schedule_file);
}

// What happened since the last call. Of those that sleep, only what they had done before; of the one that `looks`, nothing.
pool_load pool_core::look(const seat& looks) noexcept {
  pool_load load;
  const std::uint64_t began = nanoseconds(watched_);
  watched_ = steady_clock::now();
  const std::uint64_t ends = nanoseconds(watched_);
  load.nanoseconds = static_cast<double>(ends - began);
  for (unsigned i = 0; i != own_threads(); ++i) {
    seat& one = *seats_[i];
    const int thread = one.thread_number.load(std::memory_order_relaxed);  // as declared
    const auto [so_far, sleeps] = one.asleep.get(ends);
    const std::uint64_t slept = std::min(since(so_far, one.had_slept), ends - began);
    if (&one == &looks || thread == 0 || (sleeps && slept == ends - began)) continue;  // it has done nothing
    const bool is_known = std::exchange(one.looked_at, ends) == began;
    const std::uint64_t got_to = one.jobs.get() + (std::uint64_t{one.forks.size()} << 48);
    if (std::exchange(one.got_to, got_to) != got_to || sleeps || !is_known)
      one.stands_since = ends;
    else if (std::chrono::nanoseconds{ends - one.stands_since} > crowd::too_long_standing)
      ++load.standing;
    const auto ran = static_cast<double>(since(processor_time_of(thread), one.processor_time));
    load.processor_time += ran;
    double can = 0;
    if (std::uint64_t waited; read_waited(one.schedule_file, thread, waited))
      can = std::min((ran + static_cast<double>(since(waited, one.waiting_time))) / load.nanoseconds, 1.0);
    // What it waits for now is not counted there before it has it, and may be something else.
    if (can <= 0.01) can = !sleeps && (ran > load.nanoseconds / 2 || can_run(thread)) ? 1 : 0;
    load.can_run += can;
    load.awake += is_known ? 1 - static_cast<double>(slept) / load.nanoseconds : can;
  }
  return load;
}

void pool_core::limit_awake(unsigned threads) noexcept {
  expect_not_forked();
  if (own_threads() == 0) return;
  const std::lock_guard guard{watching_};
  const unsigned now = crowd_.limit(threads);
  is_limited_.store(crowd_.is_limited(), std::memory_order_relaxed);  // as declared
  let_wake(now);
}

// By the one that watches, before it sleeps for as long as this says.
std::chrono::microseconds pool_core::begin_to_watch(seat& mine, bool again) noexcept {
  const std::unique_lock guard{watching_, std::try_to_lock};  // else the last one to watch has not yet decided
  if (!guard.owns_lock()) return crowd::first_nap;
  if (!again) look(mine);
  return crowd_.next_nap(again);
}

// By that one, when it has slept and nobody has woken it.
void pool_core::choose_awake(seat& mine) noexcept {
  const std::unique_lock guard{watching_, std::try_to_lock};
  if (!guard.owns_lock()) return;
  const pool_load load = look(mine);
  if (!any_job() && !any_next()) return;
  const unsigned before = crowd_.most_awake(), now = crowd_.next(load);
  if (now > before) record(event_kind::take_over, now - before);
  idle_.let_wake(now);
}

}  // namespace weft::detail
