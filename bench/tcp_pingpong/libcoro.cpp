// As in its example coro_tcp_echo_server: a scheduler a thread, which resumes tasks itself; each accepts for itself, here all
// from the one socket that listens.
#include <array>
#include <coro/coro.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../harness/net/server.hpp"

namespace {

template <std::size_t Bytes>
coro::task<void> echo(coro::net::tcp::client peer) {
  std::array<char, Bytes> buffer;
  for (;;) {
    auto [status, read] = co_await peer.read_some(buffer);
    if (!status.is_ok()) co_return;
    auto [written, rest] = co_await peer.write_all(read);
    if (!written.is_ok()) co_return;
  }
}

template <std::size_t Bytes>
coro::task<void> serve(std::unique_ptr<coro::scheduler>& on) {
  co_await on->schedule();
  coro::net::tcp::server at{on, {"127.0.0.1", 0}};
  at.accept_socket() = coro::net::socket{::dup(bench::listening_socket)};  // it takes none that is there
  for (;;)
    if (auto peer = co_await at.accept()) on->spawn_detached(echo<Bytes>(std::move(*peer)));
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  std::vector<std::unique_ptr<coro::scheduler>> all(options.threads);
  std::vector<coro::task<void>> servers;
  for (auto& each : all) {
    each = coro::scheduler::make_unique(
        {.execution_strategy = coro::scheduler::execution_strategy_t::process_tasks_inline});
    servers.push_back(options.buffer == bench::small_buffer ? serve<bench::small_buffer>(each)
                                                            : serve<bench::large_buffer>(each));
  }
  coro::sync_wait(coro::when_all(std::move(servers)));
}
