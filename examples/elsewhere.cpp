// A program with a main loop does its heavy work on other threads. Each function says where it runs; whoever calls it
// stays where it is, and needs no lock for what only the main loop touches.
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;

const std::thread::id main_thread = std::this_thread::get_id();
const char* here() { return std::this_thread::get_id() == main_thread ? "main loop" : "worker"; }

w::task<long> sum_up(w::executor& workers, std::vector<int> numbers) {
  std::printf("begin on the %s\n", here());
  co_await w::resume_on(workers);  // until this task returns
  std::printf("add on the %s\n", here());
  co_return std::accumulate(numbers.begin(), numbers.end(), 0L);
}

w::task<int> digits(long number) {
  std::printf("count on the %s\n", here());
  co_return static_cast<int>(std::to_string(number).size());
}

w::task<> run(w::executor& workers) {
  std::vector<int> numbers{20, 22};
  const long sum = co_await sum_up(workers, std::move(numbers));
  std::printf("%ld, back on the %s\n", sum, here());
  const int count = co_await w::start_on(workers, digits(sum));
  std::printf("%d digits, back on the %s\n", count, here());
}

int main() {
  w::manual_executor loop;
  w::new_thread_executor workers;
  bool over = false;
  w::start(loop, run(workers), [&](w::result<void>) { over = true; });
  while (!over) loop.run_all();  // as a game or a window does, once a frame
}
