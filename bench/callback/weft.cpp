#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/from_callback.hpp>
#include <weft/future.hpp>
#include <weft/task.hpp>

namespace {

using done = weft::callback<std::uint64_t>;

void report(void* context, std::uint64_t result) { done::from_address(context)(result); }

}  // namespace

void bench::run(bench::state& state) {
  constexpr auto await_increment = [](std::uint64_t value) {
    return weft::from_callback<std::uint64_t>([value](done to) { bench_increment(value, &report, to.address()); });
  };
  state.measure(callback_awaits, callback_awaits,
                [&] { return weft::sync_wait(count_by_callback<weft::task>(await_increment)); });
}
