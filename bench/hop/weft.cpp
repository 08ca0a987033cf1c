#include "workload.hpp"

#include "../harness/harness.hpp"

#include <atomic>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace {

weft::task<> there(weft::executor& other) { co_await weft::resume_on(other); }  // and back, where it returns

weft::task<std::size_t> all(weft::executor& one, weft::executor& other) {
  std::atomic<std::size_t> hops{0};
  auto hop = [&]() -> weft::task<> {
    for (std::size_t i = 0; i != bench::hop_rounds; ++i) co_await there(other);
    hops.fetch_add(bench::hop_rounds, std::memory_order_relaxed);
  };
  auto fork_all = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != bench::hop_tasks; ++i) s.fork(hop());
    co_return;
  };
  co_await weft::with_scope({.executor = &one}, fork_all);
  co_return hops.load();
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool one{{.threads = 1}}, other{{.threads = 1}};
  const std::size_t hops = hop_tasks * hop_rounds;
  state.measure(hops, hops, [&] { return weft::sync_wait(all(one.executor(), other.executor())); });
}
