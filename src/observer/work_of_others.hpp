// Whether any thread of the process but the calling one has run: by their context switches and their processor time. The time
// alone does not say, since the clocks of the process and of the thread can't be read at the same moment.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <ctime>

namespace weft::detail {

struct work_of_others {
  long switches = 0;
  std::chrono::nanoseconds time{0};

  static work_of_others so_far() noexcept {
    rusage all{}, own{};
    ::getrusage(RUSAGE_SELF, &all);
    ::getrusage(RUSAGE_THREAD, &own);
    const auto switches_of = [](const rusage& one) { return one.ru_nvcsw + one.ru_nivcsw; };
    return {.switches = switches_of(all) - switches_of(own),
            .time = clock(CLOCK_PROCESS_CPUTIME_ID) - clock(CLOCK_THREAD_CPUTIME_ID)};
  }
  bool is_none_since(const work_of_others& before) const noexcept {
    return switches == before.switches && time - before.time < std::chrono::milliseconds{1};
  }

 private:
  static std::chrono::nanoseconds clock(clockid_t which) noexcept {
    timespec found{};
    ::clock_gettime(which, &found);
    return std::chrono::seconds{found.tv_sec} + std::chrono::nanoseconds{found.tv_nsec};
  }
};

}  // namespace weft::detail
