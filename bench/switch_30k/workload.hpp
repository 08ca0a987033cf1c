// switch_30k: libcopp's benchmark. So many coroutines are made, then each is resumed in turn until it has yielded so often,
// and then all are removed; each phase has its figure, the switches are the workload's. Sizes are those of its commands:
// 30000 1000 64 (coroutines, switches of each, KiB of stack), and of its report 10000 1000 200 and 1000 1000 2048.
//
// Other numbers: --size N --switches S --kib K, by the driver `switch_30k N SWITCHES KIB`.
//
// Its samples switch each coroutine 1000 times. So does a full run; others have time for 100, and say so: a round of libcopp
// would take half a minute. What is made anew for each call is warm from the second call on, where a library keeps stacks.
//
// Scheduled (weft.fibers, boost_fiber, go): the same number of fibers on one thread, and each yields to the scheduler. Their
// making is within the clock: some hundredth of it.
#pragma once

#include "../harness/harness.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace bench {

inline volatile double has_divided = 1.0;  // see switch/workload.hpp
inline const bool both_have_divided = (has_divided = has_divided / 3, true);

inline std::size_t switches_of_each = 0;  // choose_switches() says

inline void choose_switches(state& state) {
  switches_of_each = state.option("--switches", state.full() ? 1000 : 100);
  state.verify(switches_of_each != 0, "each is switched to at least once");
  state.report("switches of each", static_cast<double>(switches_of_each));
}

inline std::size_t stack_bytes(state& state) {
  const std::size_t libcopps = state.size() >= 30'000 ? 64 : state.size() >= 10'000 ? 200 : 2048;
  return state.option("--kib", libcopps) << 10;
}

/// `All{count, stack}` makes coroutines that yield switches_of_each times; `resume_all()` resumes each that
/// has not ended, and says how many yielded.
template <class All>
void measure_libcopps(state& state) {
  choose_switches(state);
  using clock = std::chrono::steady_clock;
  clock::duration making{}, removing{};
  std::size_t rounds = 0;
  class removed {
   public:
    removed(std::size_t count, std::size_t stack, clock::duration& making, clock::duration& removing)
        : removing_{removing}, begin_{clock::now()}, all_{new All{count, stack}} {
      making += clock::now() - begin_;
    }
    removed(removed&& other) noexcept
        : removing_{other.removing_}, begin_{}, all_{std::exchange(other.all_, nullptr)} {}
    ~removed() {
      if (all_ == nullptr) return;
      const auto begin = clock::now();
      delete all_;
      removing_ += clock::now() - begin;
    }
    All& operator*() const { return *all_; }

   private:
    clock::duration& removing_;
    clock::time_point begin_;
    All* all_;
  };
  state.measure(
      state.size() * switches_of_each, state.size() * switches_of_each,
      [&] {
        ++rounds;
        return removed{state.size(), stack_bytes(state), making, removing};
      },
      [&](const removed& made) {
        std::size_t switches = 0;
        while (const std::size_t now = (*made).resume_all()) switches += now;
        return switches;
      });
  const auto each = static_cast<double>(rounds * state.size());
  state.report("create ns", std::chrono::duration<double, std::nano>(making).count() / each);
  state.report("remove ns", std::chrono::duration<double, std::nano>(removing).count() / each);
}

}  // namespace bench
