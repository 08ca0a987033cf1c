// Waits of many kinds, in roots that are looked at before they wait: those of traced requests, and of children that have
// borrowed their parent's. The library may be another compiler's: what is inlined here calls it and has values in registers
// meanwhile, and passes it enumerations, in which direction a descriptor is waited for, say.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/readiness.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>
#include <weft/timed.hpp>
#include <weft/traced.hpp>

namespace {

using namespace std::chrono_literals;
using weft::scope;
using weft::task;

constexpr long rounds = 200;

struct things {
  weft::mutex lock;
  weft::channel<long> numbers{1}, answers{0};
  weft::semaphore permits{1};
  weft::event set;
};

task<long> sends(things& with) {
  long sum = 0;
  for (long i = 0; i != rounds; ++i) {
    co_await with.numbers.send(i);
    sum += (co_await with.answers.receive()).value_or(0);
  }
  co_return sum;
}
task<long> answers(things& with) {
  long sum = 0;
  for (long i = 0; i != rounds; ++i) {
    auto got = co_await weft::select(weft::on_receive(with.numbers), weft::after(1h));
    const long number = std::get<0>(got.value).value_or(0);
    sum += number;
    co_await with.answers.send(number);
  }
  co_return sum;
}
task<long> locks(things& with) {
  long count = 0;
  for (long i = 0; i != rounds; ++i) {
    const auto held = co_await with.lock.lock();
    const auto permit = co_await with.permits.acquire();
    co_await weft::yield();
    ++count;
  }
  co_return count;
}
task<long> sleeps(things& with) {
  co_await weft::sleep_for(2ms);
  with.set.set();
  co_return 1;
}
task<long> waits(things& with) {
  co_await with.set.wait();
  co_return 1;
}

// Of children that borrow their parent's root, the first one that waits gets a root of its own.
task<long> first_waits(things& with) {
  auto waiting = waits(with), setting = sleeps(with);
  const auto [a, b] = co_await weft::when_all(std::move(waiting), std::move(setting));
  co_return a + b;
}
task<long> first_sleeps(things& with) {
  auto setting = sleeps(with), waiting = waits(with);
  const auto [a, b] = co_await weft::when_all(std::move(setting), std::move(waiting));
  co_return a + b;
}

task<bool> all() {
  things with, of_others, of_more;
  auto first = sends(with), second = answers(with), third = locks(with), fourth = locks(with),
       fifth = first_waits(of_others), sixth = first_sleeps(of_more);
  const auto [a, b, c, d, e, f] = co_await weft::when_all(std::move(first), std::move(second), std::move(third),
                                                          std::move(fourth), std::move(fifth), std::move(sixth));
  long yielded = 0;
  auto body = [&](scope& s) -> task<> {
    s.go([&] {
      for (long i = 0; i != rounds; ++i) weft::this_fiber::yield(), ++yielded;
    });
    co_return;
  };
  co_await weft::with_scope(body);
  constexpr long sum = rounds * (rounds - 1) / 2;
  co_return a == sum&& b == sum&& c == rounds&& d == rounds&& e == 2 && f == 2 && yielded == rounds;
}

// The one end of a pair never becomes writable, and the other one can only be written to.
task<bool> directions() {
  int ends[2], full[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || pipe(full) != 0) co_return false;
  auto readable = weft::timeout(10s, weft::net::ready(full[0], weft::net::readiness::readable));
  auto writable = weft::timeout(10s, weft::net::ready(ends[0], weft::net::readiness::writable));
  auto written = [&]() -> task<bool> {
    co_await weft::sleep_for(2ms);
    co_return write(full[1], "x", 1) == 1;
  };
  const auto [a, b, c] = co_await weft::when_all(std::move(readable), std::move(writable), written());
  for (const int each : {ends[0], ends[1], full[0], full[1]}) close(each);
  co_return a == weft::net::readiness::readable&& b == weft::net::readiness::writable&& c;
}

}  // namespace

int main() {
  weft::pool workers{{.threads = 2}};
  const bool plainly = workers.run(all()) && weft::sync_wait(all());
  const bool traced = workers.run(weft::with_trace({.name = "on a pool"}, all)) &&
                      weft::sync_wait(weft::with_trace({.name = "on a thread"}, all));
  for (const unsigned threads : {1, 2}) {  // one waits by a ring, where there is one
    weft::runtime server{{.threads = threads}};
    if (!server.run(directions())) return 2;
  }
  return plainly && traced ? 0 : 1;
}
