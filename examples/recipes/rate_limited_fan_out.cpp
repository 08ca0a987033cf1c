// Rate-limited fan-out with retries: asks a service about a hundred things, no faster than it allows, three at a time, and
// again where it is busy. A repeated attempt takes a token, too, so that retries never exceed the limit either.
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct service {  // is busy at every fourth question, the first time
  std::vector<int> attempts = std::vector<int>(100);

  w::task<int> ask(std::size_t id) {
    co_await w::sleep_for(20ms);
    if (++attempts[id] == 1 && id % 4 == 0) throw std::runtime_error{"busy"};
    co_return static_cast<int>(id);
  }
};

template <class Service>
struct client {
  Service& at;
  w::token_bucket rate{{.rate = 10, .burst = 5}};  // how many begin in a second
  w::semaphore at_once{3};                         // how many there are at any time

  w::task<int> ask(std::size_t id) {
    auto attempt = [&]() -> w::task<int> {
      const auto permit = co_await at_once.acquire();  // not held during the delay before the next attempt
      co_await rate.take();
      co_return co_await at.ask(id);
    };
    co_return co_await w::retry({.attempts = 3, .delay = 50ms}, attempt);
  }
};

w::task<> run() {
  service far_away;
  client<service> mine{far_away};
  std::vector<w::task<int>> all;
  for (std::size_t id = 0; id != 100; ++id) all.push_back(mine.ask(id));
  int sum = 0, attempts = 0;
  for (const int answer : co_await w::when_all(std::move(all))) sum += answer;
  for (const int n : far_away.attempts) attempts += n;
  std::printf("sum %d by %d attempts in %d s\n", sum, attempts, static_cast<int>(w::test::elapsed() / 1s));
}

int main() { w::test::run(run); }
