// The program squares.cpp of README.md, by `import weft;`, with a source beside it that includes the headers.
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <utility>

import weft;

namespace w = weft;
using namespace std::chrono_literals;

w::task<> produce(w::channel<int>& numbers);  // headers.cpp

w::task<long> add_squares(w::channel<int>& numbers) {
  long sum = 0;
  while (auto n = co_await numbers.receive()) sum += long{*n} * *n;
  co_return sum;
}

w::task<long> sum_of_squares() {
  w::channel<int> numbers{16};
  auto body = [&](w::scope& s) -> w::task<long> {
    s.fork(produce(numbers));
    w::fork<long> one = s.fork(add_squares(numbers));
    w::fork<long> other = s.fork(add_squares(numbers));
    co_return co_await std::move(one) + co_await std::move(other);
  };
  co_return co_await w::with_scope(body);
}

int main() {
  w::pool workers;
  auto sum = w::sync_wait(w::start_on(workers, w::as_result(w::with_deadline(1h, sum_of_squares))));
  std::printf("%ld\n", *sum);
}
