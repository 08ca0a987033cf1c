// A send that wakes a select on another worker, which sleeps by then.
#include "walk.hpp"

#include <chrono>
#include <weft/weft.hpp>

namespace {

weft::task<std::size_t> receiver(weft::channel<int>& first, weft::channel<int>& second) {
  const auto got = co_await weft::select(weft::on_receive(first), weft::on_receive(second));
  walk_ends();
  co_return got.index;
}

weft::task<> sender(weft::channel<int>& to) {
  co_await weft::sleep_for(std::chrono::milliseconds{300});
  walk_begins();
  co_await to.send(7);
  walk_ends();
}

}  // namespace

int main() {
  weft::channel<int> first{0}, second{0};
  weft::pool workers{{.threads = 2}};
  weft::sync_wait(weft::when_all(weft::start_on(workers.worker(0), receiver(first, second)),
                                 weft::start_on(workers.worker(1), sender(second))));
}
