// Its timers are threads of its own that sleep: a limit is a sleep that is cut short, and takes two switches. They are one system
// thread's alone.
#include "workload.hpp"

#include <photon/common/alog.h>
#include <photon/thread/thread.h>
#include <photon/thread/timer.h>

#include <cstdint>
#include <memory>
#include <vector>

void bench::run(bench::state& state) {
  if (state.size() == by_another_thread) throw not_here{"photon's timers are used by one thread"};
  set_log_output(log_output_null);
  photon::vcpu_init();
  const auto nothing = [](void*) -> std::uint64_t { return 0; };
  std::vector<std::unique_ptr<photon::Timer>> beside(timers_beside(state.size()));
  for (auto& one : beside)
    one = std::make_unique<photon::Timer>(static_cast<std::uint64_t>(due_beside().count()) * 1000,
                                          photon::Timer::Entry{nullptr, nothing}, false, std::uint64_t{16} << 10);
  photon::Timer one{static_cast<std::uint64_t>(-1), photon::Timer::Entry{nullptr, nothing}};
  constexpr std::chrono::microseconds limit = timer_limit;
  state.measure(timer_rounds, timer_rounds, [&] {
    std::size_t cancelled = 0;
    for (std::size_t i = 0; i != timer_rounds; ++i) {
      one.reset(static_cast<std::uint64_t>(limit.count()));
      cancelled += one.cancel() == 0;
    }
    return cancelled;
  });
}
