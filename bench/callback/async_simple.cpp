#include "awaiter.hpp"
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <async_simple/coro/Lazy.h>
#include <async_simple/coro/SyncAwait.h>

void bench::run(bench::state& state) {
  constexpr auto await_increment = [](std::uint64_t value) { return increment{value}; };
  state.measure(callback_awaits, callback_awaits, [&] {
    return async_simple::coro::syncAwait(count_by_callback<async_simple::coro::Lazy>(await_increment));
  });
}
