// The same chain in libfork's spelling: an async function is an object, and a call names the place for its result.
// libfork lets no thread wait for itself, so each sync_wait hands over to the pool's one worker and back.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

template <int N>
constexpr auto lazy_fn = [](auto) -> lf::task<int> {
  if constexpr (N == 0) {
    int one = 1;
    asm volatile("" : "+r"(one));  // else clang computes the whole chain while it compiles
    co_return one;
  } else {
    int below;
    co_await lf::call(&below, lazy_fn<N - 1>)();
    co_return N + below;
  }
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{1};
  state.measure(chain_levels, chain_result, [&] { return lf::sync_wait(pool, ::lazy_fn<chain_levels>); });
}
