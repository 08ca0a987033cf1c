// What a fork costs that runs through: made, awaited and gone; with a scope's own memory, and with a monotonic resource.
#include <cstddef>
#include <memory_resource>
#include <vector>
#include <weft/scope.hpp>

#include "measure.hpp"

namespace {

using weft::scope;
using weft::sync_wait;
using weft::task;

constexpr int rounds = 10'000;

task<> nothing() { co_return; }

task<> fork_and_await(scope& s) {
  for (int i = 0; i != rounds; ++i) co_await s.fork(nothing());
}
task<> fork_and_drop(scope& s) {
  for (int i = 0; i != rounds; ++i) s.fork(nothing());
  co_return;
}

}  // namespace

int main() {
  cost::instructions("fork", rounds, [] { sync_wait(weft::with_scope(fork_and_await)); });
  cost::instructions("fork that nobody awaits", rounds, [] { sync_wait(weft::with_scope(fork_and_drop)); });
  std::vector<std::byte> arena(std::size_t{rounds} * 256);
  cost::instructions("fork with monotonic memory", rounds, [&] {
    std::pmr::monotonic_buffer_resource memory{arena.data(), arena.size(), std::pmr::null_memory_resource()};
    sync_wait(weft::with_scope({.memory = &memory}, fork_and_await));
  });
}
