// tmc::select of qu_spsc_bounded with room for one. A receive that waits can't be taken back, so what cancels it is a value
// that stands for none; who lost has taken that out again when the select is over. Instead of `otherwise` a task that ends
// at once.
#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <array>
#include <tmc/all_headers.hpp>
#include <tmc/qu_spsc_bounded.hpp>
#include <tmc/select.hpp>

namespace {

using queue = tmc::qu_spsc_bounded<std::size_t>;

constexpr auto none = static_cast<std::size_t>(-1);

tmc::task<std::size_t> receive(queue& from) {
  auto number = co_await from.pull();
  co_return number ? number.value() : none;
}

tmc::task<std::size_t> otherwise() { co_return none; }

auto from(queue& one) {
  return tmc::cancellable(receive(one), [&one] {
    if (!one.try_push(none)) throw bench::wrong_result{"two were ready"};
  });
}

tmc::task<std::size_t> echo(queue& there, queue& back, queue& never) {
  for (;;) {
    const auto got = co_await tmc::select(from(there), from(never));
    const auto number = std::get<0>(got);
    if (number == none) co_return 0;
    co_await back.push(number + 1);
  }
}

tmc::task<std::size_t> call(queue& there, queue& back, queue& never) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::select_rounds; ++i) {
    co_await there.push(number);
    const auto got = co_await tmc::select(from(back), from(never));
    number = std::get<0>(got);
  }
  there.close();
  co_return number;
}

tmc::task<std::size_t> round_trips() {
  queue there{1}, back{1}, never_for_echo{1}, never{1};
  auto [nothing, number] = co_await tmc::spawn_tuple(echo(there, back, never_for_echo), call(there, back, never));
  co_return number;
}

tmc::task<std::size_t> one_ready() {
  queue a{1}, b{1}, c{1}, d{1};
  const std::array all{&a, &b, &c, &d};
  std::size_t right = 0;
  for (std::size_t i = 0; i != bench::select_rounds; ++i) {
    co_await all[i % 4]->push(i);
    const auto got = co_await tmc::select(from(a), from(b), from(c), from(d));
    right += got.index() == i % 4;
  }
  co_return right;
}

tmc::task<std::size_t> none_ready() {
  queue a{1}, b{1};
  std::size_t right = 0;
  for (std::size_t i = 0; i != bench::select_rounds; ++i) {
    const auto got = co_await tmc::select(from(a), from(b), tmc::cancellable(otherwise(), [] {}));
    right += got.index() == 2;
  }
  co_return right;
}

}  // namespace

void bench::run(bench::state& state) {
  const auto rounds = state.size() == 2 ? round_trips : state.size() == 4 ? one_ready : none_ready;
  tmc::cpu_executor().set_thread_count(1).init();
  state.measure(select_rounds, select_rounds,
                [&] { return tmc::post_waitable(tmc::cpu_executor(), rounds(), 0).get(); });
  tmc::cpu_executor().teardown();
}
