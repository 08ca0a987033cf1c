// The limit: the calls and their callbacks, with nobody waiting.
#include "workload.hpp"

#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  state.measure(callback_awaits, callback_awaits, [] {
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i != callback_awaits; ++i) {
      bench_increment(
          value, [](void* context, std::uint64_t result) { *static_cast<std::uint64_t*>(context) = result; }, &value);
    }
    return value;
  });
}
