#include "awaiter.hpp"
#include "workload.hpp"

#include "../harness/handwritten.hpp"
#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  constexpr auto await_increment = [](std::uint64_t value) { return increment{value}; };
  state.measure(callback_awaits, callback_awaits,
                [&] { return handwritten::run(count_by_callback<handwritten::task>(await_increment)); });
}
