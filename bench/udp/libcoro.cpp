// A scheduler that resumes tasks itself, and one task.
#include <unistd.h>

#include <array>
#include <coro/coro.hpp>
#include <memory>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

coro::task<void> echo(std::unique_ptr<coro::scheduler>& on) {
  co_await on->schedule();
  coro::net::udp::peer self{on, {"127.0.0.1", 0}};
  self.socket() = coro::net::socket{::dup(bench::listening_socket)};  // it takes none that is there
  std::array<char, bench::largest_datagram> buffer;
  for (;;) {
    const auto [status, sender, got] = co_await self.read_from(buffer);
    if (!status.is_ok()) co_return;
    co_await self.write_to(sender, got);
  }
}

}  // namespace

int main() {
  auto on =
      coro::scheduler::make_unique({.execution_strategy = coro::scheduler::execution_strategy_t::process_tasks_inline});
  coro::sync_wait(echo(on));
}
