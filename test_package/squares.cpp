// squares.cpp
#include <chrono>
#include <cstdio>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

w::task<> produce(w::channel<int>& numbers) {
  for (int n = 1; n <= 1000; ++n) co_await numbers.send(n);  // suspends while the channel is full
  numbers.close();
}

w::task<long> add_squares(w::channel<int>& numbers) {
  long sum = 0;
  while (auto n = co_await numbers.receive()) sum += long{*n} * *n;  // until it is closed and drained
  co_return sum;
}

w::task<long> sum_of_squares() {
  w::channel<int> numbers{16};
  auto body = [&](w::scope& s) -> w::task<long> {
    s.fork(produce(numbers));
    w::fork<long> one = s.fork(add_squares(numbers));  // forks run on all threads of the pool
    w::fork<long> other = s.fork(add_squares(numbers));
    co_return co_await std::move(one) + co_await std::move(other);
  };
  co_return co_await w::with_scope(body);  // returns when all three forks have ended, also after a failure or a stop
}

int main() {
  w::pool workers;  // a thread for each processor
  auto sum = w::sync_wait(w::start_on(workers, w::as_result(w::with_deadline(2s, sum_of_squares))));
  if (sum.is_stopped())
    std::puts("stopped by the deadline");
  else
    std::printf("%ld\n", *sum);  // throws, if a task has thrown
}
