// A ring between a single_producer_sequencer and a sequence_barrier, which is what cppcoro has in place of a channel. A
// receive gets all that are there. Who waits goes on by way of the pool.
#include "workload.hpp"

#include <array>
#include <cppcoro/sequence_barrier.hpp>
#include <cppcoro/single_producer_sequencer.hpp>
#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>

namespace {

using pool = cppcoro::static_thread_pool;

class ring {
 public:
  cppcoro::task<std::size_t> send(pool& on) {
    co_await on.schedule();
    for (std::size_t i = 0; i != bench::spsc_numbers; ++i) {
      const std::size_t place = co_await sent_.claim_one(on);
      numbers_[place % bench::spsc_room] = i;
      sent_.publish(place);
    }
    co_return 0;
  }

  cppcoro::task<std::size_t> receive(pool& on) {
    co_await on.schedule();
    std::size_t sum = 0;
    for (std::size_t next = 0; next != bench::spsc_numbers;) {
      const std::size_t last = co_await sent_.wait_until_published(next, on);
      for (; next <= last; ++next) sum += numbers_[next % bench::spsc_room];
      received_.publish(last);
    }
    co_return sum;
  }

 private:
  cppcoro::sequence_barrier<std::size_t> received_;
  cppcoro::single_producer_sequencer<std::size_t> sent_{received_, bench::spsc_room};
  std::array<std::size_t, bench::spsc_room> numbers_{};
};

}  // namespace

void bench::run(bench::state& state) {
  pool workers{static_cast<std::uint32_t>(state.size())};
  state.measure(spsc_numbers, spsc_sum, [&] {
    ring numbers;
    return std::get<1>(cppcoro::sync_wait(cppcoro::when_all(numbers.send(workers), numbers.receive(workers))));
  });
}
