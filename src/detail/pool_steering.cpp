// The thread of a pool of adaptive size that decides how many of the others take part, and how these come and go.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>
#include <weft/pool.hpp>

#include "detail/fence.hpp"
#include "detail/pool_core.hpp"
#include "detail/pool_size.hpp"

namespace weft::detail {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds period{5};
constexpr unsigned naps_after = 10;  // periods in which all slept

// By the number that the kernel gives the clock of a thread, which, unlike a pthread_t, may also be one that has ended: 0.
std::uint64_t processor_time_of(int thread) noexcept {
  constexpr clockid_t of_a_thread = 4, scheduled = 2;
  timespec used;
  if (::clock_gettime((~clockid_t{thread} << 3) | of_a_thread | scheduled, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

// Whether the kernel has it on a processor or in line for one. What can't be read can.
bool can_run(int thread) noexcept {
  char path[48], text[512];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return true;
  text[length] = '\0';
  const char* const name_ends = std::strrchr(text, ')');
  return name_ends == nullptr || name_ends[1] == '\0' || name_ends[2] == 'R';
}

}  // namespace

// What happened since the last call. Of those that rest or sleep, only what they had done before.
pool_load pool_core::look(period_start& before) noexcept {
  pool_load load;
  std::uint64_t jobs = 0, steals = 0, used_by_all = 0;
  const steady_clock::time_point now = steady_clock::now();
  load.nanoseconds = static_cast<double>((now - before.when) / std::chrono::nanoseconds{1});
  for (unsigned i = 0; i != own_threads(); ++i) {
    seat& one = *seats_[i];
    jobs += one.jobs.get();
    steals += one.steals.get();
    load.waiting += one.line.in_line() + one.forks.size();
    const int thread = one.thread_number.load(std::memory_order_relaxed);  // as declared
    if (thread == 0) continue;
    const std::uint64_t used = processor_time_of(thread), earlier = std::exchange(one.processor_time, used);
    const std::uint64_t lately = used > earlier ? used - earlier : 0;
    used_by_all += lately;
    const bool is_awake = one.lies_down.load(std::memory_order_relaxed) == 0;  // as declared
    const bool is_busy = static_cast<double>(lately) > load.nanoseconds / 2;
    if (is_awake && (is_busy || can_run(thread))) ++load.can_run;
  }
  load.waiting += injected_.empty() ? 0 : 1;
  load.waiting += before_.empty() && after_.empty() ? 0 : 1;
  load.jobs = jobs - before.jobs;
  load.steals = steals - before.steals;
  load.processor_time = static_cast<double>(used_by_all);
  before = {.when = now, .jobs = jobs, .steals = steals};
  return load;
}

void pool_core::steer() noexcept {
  pool_size size{options_.min_threads, own_threads(), available_processors()};
  idle_.let_rest(own_threads() - size.size());
  const auto over = [this] { return state_.load(std::memory_order_relaxed) == state::ended; };  // as declared
  unsigned idle_for = 0;
  period_start before{.when = steady_clock::now()};
  while (!over()) {
    steering_.sleep(idle_, idle_for >= naps_after, steady_clock::now() + period, over);
    if (idle_.all_inside()) {
      ++idle_for;
      if (idle_for >= naps_after) look(before);  // a nap is no period
      continue;
    }
    idle_for = 0;
    const unsigned wanted = size.next(look(before));
    idle_.let_rest(own_threads() - wanted);
    while (idle_.resting() > own_threads() - wanted) {
      idler* const one = idle_.recall_any();
      if (one == nullptr) break;
      wake(*one);
    }
  }
}

// By one that has no job for it alone, and does not search: it takes no part until it is recalled.
[[gnu::noinline]] void pool_core::rest(seat& mine) noexcept {
  if (is_for_callers(mine.index) || mine.kept.first != nullptr) return;
  while (job* const work = mine.line.pop()) injected_.put(*work);
  const auto see_to_others = [this] { wake_for_what_is_left(); };
  const auto has_own = [&] { return !mine.posted.empty(); };
  rest_until_recalled(idle_, mine, see_to_others, has_own, [&] { doze(mine, parker::time_point::max()); });
  steering_.notice();
}

}  // namespace weft::detail
