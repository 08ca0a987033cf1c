// libpq's blocking calls, on a thread for each connection.
#include <atomic>
#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

#include "queries.hpp"

int main(int count, char** words) {
  const std::size_t connections = bench::read_server_options(count, words).connections;
  std::uint64_t queries = 0;
  std::atomic<std::uint64_t> right{0};
  std::barrier turns{static_cast<std::ptrdiff_t>(connections + 1)};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i != connections; ++i)
    threads.emplace_back([&] {
      PGconn* const mine = bench::connect_to_server(words[4]);
      for (;;) {
        turns.arrive_and_wait();
        right += bench::ask(mine, queries);
        turns.arrive_and_wait();
      }
    });
  bench::serve_queries([&](std::uint64_t each) {
    queries = each;
    right = 0;
    turns.arrive_and_wait();
    turns.arrive_and_wait();
    return right.load();
  });
}
