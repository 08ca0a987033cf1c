#include "workload.hpp"

#include <weft/weft.hpp>

namespace {

weft::task<> waits_for_a_connection() {
  const auto at = co_await weft::net::listen(weft::net::endpoint{"127.0.0.1", 0});
  co_await at.accept();
}

weft::task<> sets(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
  co_return;
}

}  // namespace

void bench::run(bench::state& state) {
  weft::runtime rt{{.threads = 1}};
  weft::stop_source over;
  std::thread server{[&] {
    try {
      rt.run(waits_for_a_connection(), over.token());
    } catch (const weft::stopped&) {
    }
  }};
  wake_ups(state, [&](std::atomic<bool>& ran) { weft::start(rt.executor(), sets(ran), [](weft::result<void>) {}); });
  over.request_stop();
  server.join();
}
