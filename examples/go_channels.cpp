// What Go programs do with goroutines and channels, in weft: a worker pool, fan-in, a pipeline, a rate limit. The book's page
// "From Go" has them side by side.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <tuple>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

using numbers = w::channel<int>;

w::task<> count(numbers& to, int from, int until) {
  for (int i = from; i <= until; ++i) co_await to.send(i);
}

w::task<int> sum(numbers& from) {
  int all = 0;
  while (const auto number = co_await from.receive()) all += *number;
  co_return all;
}

// ---- worker pool: three workers take jobs from one channel, and send results to another ------------------------------------

w::task<> feed(numbers& jobs) {
  co_await count(jobs, 1, 9);
  jobs.close();
}

w::task<> worker(numbers& jobs, numbers& results) {
  while (const auto job = co_await jobs.receive()) co_await results.send(*job * *job);
}

w::task<> workers(numbers& jobs, numbers& results) {
  co_await w::when_all(worker(jobs, results), worker(jobs, results), worker(jobs, results));
  results.close();  // when the last one has ended: Go's WaitGroup
}

w::task<> worker_pool() {
  numbers jobs{4}, results{4};
  const auto all = co_await w::when_all(feed(jobs), workers(jobs, results), sum(results));
  std::printf("worker pool: the squares add up to %d\n", std::get<2>(all));
}

// ---- fan-in: several sources, one channel ----------------------------------------------------------------------------------

w::task<> sources(numbers& merged) {
  co_await w::when_all(count(merged, 1, 3), count(merged, 4, 6));
  merged.close();
}

w::task<> fan_in() {
  numbers merged{0};
  const auto all = co_await w::when_all(sources(merged), sum(merged));
  std::printf("fan-in: two sources add up to %d\n", std::get<1>(all));
}

// ---- pipeline: each stage takes what the one before gives; nothing runs ahead ----------------------------------------------

w::async_generator<int> odd_numbers() {
  for (int i = 1;; i += 2) co_yield i;
}

w::task<> pipeline() {
  auto squares = odd_numbers() | w::transform([](int i) { return i * i; }) | w::take(4);
  while (const int* square = co_await squares.next()) std::printf("pipeline: %d\n", *square);
}  // no stage is left behind that still waits to send: Go's reason for a `done` channel

// ---- rate limit: one every so often, whoever asks --------------------------------------------------------------------------

class rate_limit {
 public:
  explicit rate_limit(w::clock::duration interval) noexcept : interval_{interval} {}

  w::task<> turn() {
    const auto mine = std::max(next_, std::chrono::steady_clock::now());
    next_ = mine + interval_;
    co_await w::sleep_until(mine);
  }

 private:
  w::clock::duration interval_;
  w::clock::time_point next_{};
};

w::task<> rate_limited() {
  rate_limit limit{2ms};
  const auto begin = std::chrono::steady_clock::now();
  co_await w::when_all(limit.turn(), limit.turn(), limit.turn());
  const bool had_to_wait = std::chrono::steady_clock::now() - begin >= 4ms;
  std::printf("rate limit: the third one %s\n", had_to_wait ? "had to wait" : "came too early");
}

w::task<> run() {
  co_await worker_pool();
  co_await fan_in();
  co_await pipeline();
  co_await rate_limited();
}

int main() { w::sync_wait(run()); }
