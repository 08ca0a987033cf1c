#include "workload.hpp"

#include <array>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/select.hpp>

namespace {

using channel = weft::channel<std::size_t>;

weft::task<> echo(channel& there, channel& back, channel& never) {
  for (;;) {
    const auto got = co_await weft::select(weft::on_receive(there), weft::on_receive(never));
    const auto number = std::get<0>(got.value);
    if (!number) co_return;
    co_await back.send(*number + 1);
  }
}

weft::task<std::size_t> call(channel& there, channel& back, channel& never) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::select_rounds; ++i) {
    co_await there.send(number);
    const auto got = co_await weft::select(weft::on_receive(back), weft::on_receive(never));
    number = std::get<0>(got.value).value();
  }
  there.close();
  co_return number;
}

weft::task<std::size_t> round_trips() {
  channel there{0}, back{0}, never{0};
  auto [nothing, number] = co_await weft::when_all(echo(there, back, never), call(there, back, never));
  co_return number;
}

weft::task<std::size_t> one_ready() {
  channel a{1}, b{1}, c{1}, d{1};
  const std::array all{&a, &b, &c, &d};
  std::size_t right = 0;
  for (std::size_t i = 0; i != bench::select_rounds; ++i) {
    co_await all[i % 4]->send(i);
    const auto got =
        co_await weft::select(weft::on_receive(a), weft::on_receive(b), weft::on_receive(c), weft::on_receive(d));
    right += got.index == i % 4;
  }
  co_return right;
}

weft::task<std::size_t> none_ready() {
  channel a{1}, b{1};
  std::size_t right = 0;
  for (std::size_t i = 0; i != bench::select_rounds; ++i) {
    const auto got = co_await weft::select(weft::on_receive(a), weft::on_receive(b), weft::otherwise);
    right += got.index == 2;
  }
  co_return right;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = 1}};
  const auto rounds = state.size() == 2 ? round_trips : state.size() == 4 ? one_ready : none_ready;
  state.measure(select_rounds, select_rounds,
                [&] { return weft::sync_wait(weft::start_on(workers.executor(), rounds())); });
}
