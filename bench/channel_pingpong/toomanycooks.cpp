// qu_spsc_bounded with room for one, for just one sender and one receiver.
#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>
#include <tmc/qu_spsc_bounded.hpp>

namespace {

using queue = tmc::qu_spsc_bounded<std::size_t>;

tmc::task<std::size_t> echo(queue& there, queue& back) {
  while (auto number = co_await there.pull()) co_await back.push(number.value() + 1);
  co_return 0;
}

tmc::task<std::size_t> call(queue& there, queue& back) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    co_await there.push(number);
    auto next = co_await back.pull();
    number = next.value();
  }
  there.close();
  co_return number;
}

tmc::task<std::size_t> both() {
  queue there{1}, back{1};
  auto [nothing, number] = co_await tmc::spawn_tuple(echo(there, back), call(there, back));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  state.measure(pingpong_rounds, pingpong_rounds,
                [&] { return tmc::post_waitable(tmc::cpu_executor(), both(), 0).get(); });
  tmc::cpu_executor().teardown();
}
