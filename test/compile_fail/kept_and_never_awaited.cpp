// What does nothing until it is awaited, kept in a variable that nothing mentions again. Once it is awaited, moved or passed on,
// nobody says a word.
// expect-warning: unused variable .*kept_lock
// expect-warning: unused variable .*kept_permit
// expect-warning: unused variable .*kept_task
// expect-warning: unused variable .*kept_sleep
// expect-warning: unused variable .*kept_receive
// expect-warning: unused variable .*kept_read
// expect-warning: unused variable .*kept_join
// expect-warning: unused variable .*kept_select
// at-most: 25 lines
#include <chrono>
#include <utility>
#include <weft/weft.hpp>

using namespace std::chrono_literals;

weft::task<int> f();
void pass_on(weft::task<int>);

weft::task<> forgets(weft::mutex& m, weft::semaphore& s, weft::channel<int>& c, weft::net::stream& from,
                     std::span<std::byte> into) {
  auto kept_lock = m.lock();
  auto kept_permit = s.acquire();
  auto kept_task = f();
  auto kept_sleep = weft::sleep_for(1s);
  auto kept_receive = c.receive();
  auto kept_read = from.read(into);
  auto kept_join = weft::when_all(f(), f());
  auto kept_select = weft::select(weft::on_receive(c));
  co_return;
}

weft::task<> awaits(weft::mutex& m, weft::semaphore& s, weft::channel<int>& c, weft::net::stream& from,
                    std::span<std::byte> into) {
  auto lock = m.lock();
  auto permit = s.acquire();
  auto number = f();
  auto other = f();
  auto sleep = weft::sleep_for(1s);
  auto receive = c.receive();
  auto read = from.read(into);
  auto join = weft::when_all(f(), f());
  auto select = weft::select(weft::on_receive(c));
  static_cast<void>(co_await lock);
  static_cast<void>(co_await permit);
  co_await std::move(number);
  pass_on(std::move(other));
  co_await sleep;
  co_await std::move(receive);
  co_await std::move(read);
  co_await std::move(join);
  co_await std::move(select);
}
