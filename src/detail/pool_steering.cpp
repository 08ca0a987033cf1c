// The thread of a pool of adaptive size that decides how many of the others take part, and how these come and go.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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

// How long a thread has waited for a processor until it had one last, in nanoseconds. From a file that stays open: to open
// it takes six times as long as to read it, and there are two hundred periods a second. False: it can't be had.
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
  std::uint64_t jobs = 0, steals = 0;
  const auto since_when =
      static_cast<std::uint64_t>(before.when.time_since_epoch() / std::chrono::nanoseconds{1});  // as pool_core counts
  const steady_clock::time_point now = steady_clock::now();
  load.nanoseconds = static_cast<double>((now - before.when) / std::chrono::nanoseconds{1});
  for (unsigned i = 0; i != own_threads(); ++i) {
    seat& one = *seats_[i];
    jobs += one.jobs.get();
    steals += one.steals.get();
    load.waiting += one.line.in_line() + one.forks.size();
    const int thread = one.thread_number.load(std::memory_order_relaxed);           // as declared
    const std::uint64_t lies_down = one.lies_down.load(std::memory_order_relaxed);  // as declared
    if (thread == 0 || (lies_down != 0 && lies_down <= since_when)) continue;       // it has done nothing
    const auto since = [](std::uint64_t later, std::uint64_t& earlier) {
      const std::uint64_t before_it = std::exchange(earlier, later);
      return static_cast<double>(later > before_it ? later - before_it : 0);
    };
    const double ran = since(processor_time_of(thread), one.processor_time);
    load.processor_time += ran;
    if (std::uint64_t waited; read_waited(one.schedule_file, thread, waited)) {
      const double share = (ran + since(waited, one.waiting_time)) / load.nanoseconds;
      if (share > 0.01) {
        load.can_run += std::min(share, 1.0);
        continue;
      }
    }
    // What it waits for now is not counted there before it has it, and may be something else.
    if (lies_down == 0 && (ran > load.nanoseconds / 2 || can_run(thread))) load.can_run += 1;
  }
  load.waiting += injected_.empty() ? 0 : 1;
  load.waiting += before_.empty() && after_.empty() ? 0 : 1;
  load.jobs = jobs - before.jobs;
  load.steals = steals - before.steals;
  before = {.when = now, .jobs = jobs, .steals = steals};
  return load;
}

void pool_core::steer() noexcept {
  pool_size size{options_.min_threads, own_threads(), available_processors()};
  idle_.let_rest(own_threads() - size.size());
  const auto over = [this] { return has_ended(); };
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
  for (const auto& one : seats_)
    if (const int file = std::exchange(one->schedule_file, -1); file >= 0) ::close(file);
}

// By one that has no job for it alone, and does not search: it takes no part until it is recalled.
[[gnu::noinline]] void pool_core::rest(seat& mine) noexcept {
  if (is_for_callers(mine.index) || !mine.kept.empty()) return;
  while (job* const work = mine.line.pop()) injected_.put(*work);
  const auto see_to_others = [this] { wake_for_what_is_left(); };
  const auto has_own = [&] { return !mine.posted.empty(); };
  rest_until_recalled(idle_, mine, see_to_others, has_own, [&] { doze(mine, parker::time_point::max()); });
  steering_.notice();
}

}  // namespace weft::detail
