#include "workload.hpp"

#include <weft/weft.hpp>

namespace {

using weft::net::stream;

template <class Then>
weft::task<> reads(const stream& from, Then then) {
  std::array<std::byte, 1> one;
  while (co_await from.read(one) != 0) then();
}

weft::task<> waits_once(const stream& from) {
  std::array<std::byte, 1> one;
  static_cast<void>(
      co_await weft::as_result(weft::timeout(std::chrono::milliseconds{1}, from.read(one))));  // nothing is sent yet
}

}  // namespace

// In rings, both sockets wait in that of one worker, which also computes. In an epoll set it is the worker that has slept there
// which computes, whichever that was.
void bench::run(bench::state& state) {
  weft::runtime rt{{.threads = 2}};
  weft::executor& owner =
      rt.backend() == weft::io_backend::uring ? rt.workers().worker(0) : static_cast<weft::executor&>(rt.executor());
  two_ends starts{state}, meanwhile{state};
  computation run;
  std::thread server{[&] {
    const auto adopts = [](int number) -> weft::task<stream> { co_return stream::adopt(number); };
    const stream start = rt.run(adopts(starts.theirs())), from = rt.run(adopts(meanwhile.theirs()));
    weft::sync_wait(weft::start_on(owner, waits_once(from)));
    weft::sync_wait(weft::when_all(weft::start_on(owner, reads(start, [&] { run.compute(); })),
                                   weft::start_on(rt.executor(), reads(from, [&] { run.came(); }))));
  }};
  run.measure(state, starts, meanwhile);
  starts.close_mine();
  meanwhile.close_mine();
  server.join();
}
