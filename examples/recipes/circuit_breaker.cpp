// Bulkhead and circuit breaker. The bulkhead keeps a slow service from taking all that the program has: so many calls at a
// time, and whoever finds no room fails at once. The breaker keeps a broken one from being asked: after three failures in a row
// calls fail at once, and once a second one of them is let through, to see.
#include <cstdio>
#include <stdexcept>
#include <vector>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

class guarded_service {  // of one thread or strand
 public:
  bool is_broken = true;
  int asked = 0;

  w::task<int> ask() {
    w::semaphore::permit trial;
    if (failures_ >= 3) {
      if (w::current_clock().now() >= open_until_)
        trial = trials_.try_acquire();  // one at a time, until its call has ended
      if (!trial) throw std::runtime_error{"the circuit is open"};
    }
    const auto room = bulkhead_.try_acquire();
    if (!room) throw std::runtime_error{"no room"};
    try {
      const int answer = co_await w::timeout(200ms, call());
      failures_ = 0;
      co_return answer;
    } catch (...) {  // a stop does not come here: it says nothing about the service
      if (++failures_ >= 3) open_until_ = w::current_clock().now() + 1s;
      throw;
    }
  }

 private:
  w::task<int> call() {
    ++asked;
    co_await w::sleep_for(10ms);
    if (is_broken) throw std::runtime_error{"broken"};
    co_return 7;
  }

  w::semaphore bulkhead_{2}, trials_{1};
  int failures_ = 0;  // in a row
  w::clock::time_point open_until_{};
};

w::task<> ask(guarded_service& service, int times) {  // so many at once
  std::vector<w::task<w::result<int>>> all;
  const auto one = [&]() -> w::task<w::result<int>> { co_return co_await w::as_result(service.ask()); };
  for (int i = 0; i != times; ++i) all.push_back(one());
  int answers = 0;
  for (const auto& answer : co_await w::when_all(std::move(all))) answers += answer ? 1 : 0;
  std::printf("%d calls: %d answers, asked %d times so far\n", times, answers, service.asked);
}

w::task<> run() {
  guarded_service service;
  for (int i = 0; i != 3; ++i) co_await ask(service, 1);
  co_await ask(service, 50);  // the circuit is open
  co_await w::sleep_for(1s);
  co_await ask(service, 50);  // one sees that it is broken yet
  co_await w::sleep_for(1s);
  service.is_broken = false;
  co_await ask(service, 50);  // one sees that it is well again
  co_await ask(service, 50);  // as many as there is room for
}

int main() { w::test::run(run); }
