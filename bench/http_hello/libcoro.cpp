// As in its example coro_http_200_ok_server, and with a parser.
#include "workload.hpp"

#include <array>
#include <coro/coro.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "../harness/net/server.hpp"

namespace {

coro::task<void> talk(coro::net::tcp::client peer) {
  std::array<char, bench::large_buffer> buffer;
  bench::requests all;
  for (;;) {
    auto [status, read] = co_await peer.read_some(buffer);
    if (!status.is_ok()) co_return;
    int complete = all.feed({read.data(), read.size()});
    if (complete < 0) co_return;
    for (; complete != 0; --complete) {
      auto [written, rest] = co_await peer.write_all(bench::hello);
      if (!written.is_ok()) co_return;
    }
  }
}

coro::task<void> serve(std::unique_ptr<coro::scheduler>& on) {
  co_await on->schedule();
  coro::net::tcp::server at{on, {"127.0.0.1", 0}};
  at.accept_socket() = coro::net::socket{::dup(bench::listening_socket)};  // it takes none that is there
  for (;;)
    if (auto peer = co_await at.accept()) on->spawn_detached(talk(std::move(*peer)));
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::unique_ptr<coro::scheduler>> all(bench::read_server_options(count, words).threads);
  std::vector<coro::task<void>> servers;
  for (auto& each : all) {
    each = coro::scheduler::make_unique(
        {.execution_strategy = coro::scheduler::execution_strategy_t::process_tasks_inline});
    servers.push_back(serve(each));
  }
  coro::sync_wait(coro::when_all(std::move(servers)));
}
