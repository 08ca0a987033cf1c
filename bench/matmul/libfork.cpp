#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

constexpr auto multiply = [](auto multiply, bench::product all) -> lf::task<> {
  if (all.is_small()) {
    all.add();
    co_return;
  }
  const auto half = all.halves();
  if (half.in_turn) {
    co_await lf::call(multiply)(half.first);
    co_await lf::join;
    co_await lf::call(multiply)(half.second);
  } else {
    co_await lf::fork(multiply)(half.first);
    co_await lf::call(multiply)(half.second);
  }
  co_await lf::join;
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{state.size()};
  matrices m;
  state.measure(
      1, true, [&] { return m.next(); },
      [&](const product& all) {
        lf::sync_wait(pool, multiply, all);
        return m.is_right();
      });
}
