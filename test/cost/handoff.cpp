// What it costs to wait, and to be woken: on one thread, so that the count is always the same.
#include <array>
#include <cstddef>
#include <ranges>
#include <utility>
#include <weft/combine.hpp>
#include <weft/from_callback.hpp>
#include <weft/future.hpp>
#include <weft/task.hpp>

#include "measure.hpp"

namespace {

using weft::sync_wait;
using weft::task;

task<int> take(weft::future<int> from) { co_return co_await std::move(from); }

task<int> number(int n) { co_return n; }
task<int> (*volatile hidden)(int) = number;

task<int> both() {
  auto [a, b] = co_await weft::when_all(hidden(1), hidden(2));
  co_return a + b;
}
// The same of two whose frames are in that of this, where clang can elide arguments.
task<int> both_in_place() {
  auto [a, b] = co_await weft::when_all(number(1), number(2));
  co_return a + b;
}

// Of a range that does not know how long it is, to an array.
task<int> eight_of_a_range() {
  const auto is_even = [](int n) { return n % 2 == 0; };
  auto numbers = std::views::iota(0, 16) | std::views::filter(is_even) | std::views::transform(hidden);
  std::array<int, 8> values;
  co_await weft::when_all(numbers, values.begin());
  co_return values[7];
}

// Each is made when the one before has gone.
task<int> eight_made() {
  std::array<int, 8> values;
  co_await weft::when_all(values.size(), [](std::size_t i) { return hidden(static_cast<int>(i)); }, values.begin());
  co_return values[7];
}

void set_before() {
  weft::promise<int> set;
  auto outcome = set.get_future();
  set.set_value(1);
  sync_wait(take(std::move(outcome)));
}
void set_after() {
  weft::promise<int> set;
  weft::start(take(set.get_future()), [](weft::result<int>) {});
  set.set_value(1);
}

task<int> called_back() {
  auto at_once = [](weft::callback<int> done) { done(1); };
  co_return co_await weft::from_callback<int>(at_once);
}

void stopped() {
  weft::stop_source stop;
  weft::promise<int> never;
  weft::start(take(never.get_future()), [](weft::result<int>) {}, stop.token());
  stop.request_stop();
}

}  // namespace

int main() {
  cost::instructions("a future that is ready", 1, set_before);
  cost::instructions("a future that is waited for", 1, set_after);
  cost::instructions("a callback that comes at once", 1, [] { sync_wait(called_back()); });
  cost::instructions("when_all of two that never wait", 1, [] { sync_wait(both()); });
  cost::instructions("when_all of two in place", 1, [] { sync_wait(both_in_place()); });
  cost::instructions("when_all of a range of eight", 8, [] { sync_wait(eight_of_a_range()); });
  cost::instructions("when_all of eight that are made in turn", 8, [] { sync_wait(eight_made()); });
  cost::instructions("a wait that is stopped", 1, stopped);
}
