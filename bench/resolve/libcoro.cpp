// Its resolver has c-ares ask, on a scheduler that resumes tasks itself.
#include <coro/coro.hpp>
#include <memory>
#include <vector>

#include "lookups.hpp"

namespace {

using resolver = coro::net::dns::resolver<coro::scheduler>;

struct work {
  std::uint64_t next = 0, right = 0;
};

coro::task<void> look_up(coro::scheduler& on, resolver& by, work& all, std::uint64_t count) {
  co_await on.schedule();
  const auto expected = coro::net::ip_address::from_string("127.0.0.7");
  while (all.next != count) {
    const auto found = co_await by.host_by_name(coro::net::hostname{bench::host_name(all.next++)});
    if (found->ip_addresses().size() == 2 && found->ip_addresses().front() == expected) ++all.right;
  }
}

}  // namespace

int main(int count, char** words) {
  const std::size_t at_once = bench::read_server_options(count, words).connections;
  auto on =
      coro::scheduler::make_unique({.execution_strategy = coro::scheduler::execution_strategy_t::process_tasks_inline});
  resolver by{on, std::chrono::seconds{5}};
  bench::serve_lookups([&](std::uint64_t lookups) {
    work all;
    std::vector<coro::task<void>> those;
    for (std::size_t i = 0; i != at_once; ++i) those.push_back(look_up(*on, by, all, lookups));
    coro::sync_wait(coro::when_all(std::move(those)));
    return all.right;
  });
}
