#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/pool.hpp>
#include <weft/task.hpp>

namespace {

weft::task<> nothing() { co_return; }

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(posts, posts, [&] {
    posted all;
    return all.by_producers(
        [&](posted& of) { weft::start(pool.executor(), nothing(), [&of](weft::result<void>) { of.ran(); }); });
  });
}
