// qu_spsc_bounded, which is for just one sender and one receiver.
#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>
#include <tmc/qu_spsc_bounded.hpp>

namespace {

using queue = tmc::qu_spsc_bounded<std::size_t>;

tmc::task<std::size_t> send_all(queue& to) {
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) co_await to.push(i);
  to.close();
  co_return 0;
}

tmc::task<std::size_t> receive_all(queue& from) {
  std::size_t sum = 0;
  while (auto number = co_await from.pull()) sum += number.value();
  co_return sum;
}

tmc::task<std::size_t> both() {
  queue numbers{bench::spsc_room};
  auto [nothing, sum] = co_await tmc::spawn_tuple(send_all(numbers), receive_all(numbers));
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  state.measure(spsc_numbers, spsc_sum, [&] { return tmc::post_waitable(tmc::cpu_executor(), both(), 0).get(); });
  tmc::cpu_executor().teardown();
}
