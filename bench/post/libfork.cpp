// Its pools choose a worker by random numbers that one thread at a time may draw, so each producer gives its jobs to the
// workers in turn.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

namespace {

struct in_turn {
  std::span<lf::worker_context*> workers;

  void schedule(lf::submit_handle job) {
    thread_local std::size_t next = 0;
    workers[next++ % workers.size()]->schedule(job);
  }
};

constexpr auto counts = [](auto /*self*/, bench::posted* of) -> lf::task<void> {
  of->ran();
  co_return;
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{state.size()};
  in_turn workers{pool.contexts()};
  state.measure(posts, posts, [&] {
    posted all;
    return all.by_producers([&](posted& of) { lf::detach(workers, counts, &of); });
  });
}
