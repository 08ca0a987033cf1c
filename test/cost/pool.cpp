// What a worker's own jobs and joins cost while nobody takes them: no read-modify-write and no fence, which is one too,
// also for the last job. The other worker of the pool is there, and held up, so that all is left for it to take, and
// nothing is taken.
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/traced.hpp>

#include "base/fence.hpp"
#include "measure.hpp"
#include "sched/deque.hpp"

namespace {

using weft::scope;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::when_all;

constexpr int rounds = 10'000;

task<> nothing() { co_return; }

task<> joins() {
  for (int i = 0; i != rounds; ++i) co_await when_all(nothing(), nothing());
}
task<int> leaves(int depth) {
  if (depth == 0) co_return 1;
  const auto [a, b] = co_await when_all(leaves(depth - 1), leaves(depth - 1));
  co_return a + b;
}
task<> nested_joins() { co_await leaves(13); }
// Of eight children each, which are made as they begin.
task<int> made_leaves(int depth) {
  if (depth == 0) co_return 1;
  int sum = 0;
  const auto below = [depth](std::size_t) { return made_leaves(depth - 1); };
  co_await when_all(8, below, [&](int one) { sum += one; });
  co_return sum;
}
task<> made_joins() { co_await made_leaves(4); }
task<> fork_and_await(scope& s) {
  for (int i = 0; i != rounds; ++i) co_await s.fork(nothing());
}
task<> forks() { co_await weft::with_scope(fork_and_await); }
task<> yields() {
  for (int i = 0; i != rounds; ++i) co_await weft::yield();
}
// All of which are traced.
task<> traced_yields(task<> (*measured)()) { co_await weft::with_trace({.name = "yields"}, measured); }

// As cost::instructions(), on a worker.
task<> measure(const char* name, unsigned long operations, task<> (*body)()) {
  co_await body();
  cost::begin();
  co_await body();
  cost::end(name, operations);
}

std::atomic<bool> is_held{false};

// Blocks its thread until the other end is closed.
task<> hold(int end) {
  char nothing_comes;
  is_held = true;
  static_cast<void>(::read(end, &nothing_comes, 1));
  co_return;
}

}  // namespace

int main() {
  using jobs = weft::detail::deque<int, 1024>;
  const auto own = std::make_unique<jobs>();
  int job = 0, older = 0;
  const auto push_and_pop = [&] {
    for (int i = 0; i != rounds; ++i) {
      own->push(job);
      if (own->pop() == nullptr) __builtin_trap();
    }
  };
  cost::instructions("push and pop where the kernel makes no fences", rounds,
                     push_and_pop);  // each has one, which counts
  weft::detail::prepare_fences();
  if (!weft::detail::light_fences_are_free()) {
    std::puts("SKIPPED: the kernel, or this valgrind, has no membarrier");
    return 77;
  }
  cost::instructions("push and pop, the last job", rounds, push_and_pop);
  own->push(older);
  cost::instructions("push and pop, above others", rounds, push_and_pop);
  cost::instructions("push and take back, above others", rounds, [&] {
    for (int i = 0; i != rounds; ++i) {
      own->push(job);
      if (!own->pop_before_last(job)) __builtin_trap();
    }
  });

  // The thread that runs this is the other worker: no other one runs while it counts.
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const weft::pool p{{.threads = 2, .use_caller = true}};
  weft::start(p.worker(0), hold(ends[0]), [](weft::result<void>) {});
  while (!is_held) ::usleep(1'000);
  p.run(measure("join of two", rounds, joins));
  p.run(measure("join in joins, 13 deep", (1 << 13) - 1, nested_joins));
  p.run(measure("child that is made in turn, 4 deep", 8 + 64 + 512 + 4096, made_joins));
  p.run(measure("fork that is left for others", rounds, forks));
  p.run(measure("yield", rounds, yields));
  p.run(traced_yields([] { return measure("yield that is traced", rounds, yields); }));
  ::close(ends[1]);
}
