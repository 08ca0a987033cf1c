#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<> multiply(bench::product all) {
  if (all.is_small()) {
    all.add();
    co_return;
  }
  const auto half = all.halves();
  if (half.in_turn) {
    co_await multiply(half.first);
    co_await multiply(half.second);
  } else {
    co_await weft::when_all(multiply(half.first), multiply(half.second));
  }
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  matrices m;
  state.measure(
      1, true, [&] { return m.next(); },
      [&](const product& all) {
        weft::sync_wait(weft::start_on(pool.executor(), multiply(all)));
        return m.is_right();
      });
}
