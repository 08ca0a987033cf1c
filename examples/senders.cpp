// Senders of std::execution (stdexec) and tasks in one program: a task awaits a chain of senders, a chain of senders has a task in
// it, both run on weft's pool, and errors and stops pass from one to the other.
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <stdexec/execution.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/senders.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

// What another team has written with senders: a sum in two parts, which knows of no coroutine.
auto sum_of(const std::vector<int>& numbers, auto scheduler) {
  const auto part = [=](auto from, auto to) {
    return stdexec::schedule(scheduler) | stdexec::then([=] { return std::accumulate(from, to, 0); });
  };
  const auto half = numbers.begin() + std::ssize(numbers) / 2;
  return stdexec::when_all(part(numbers.begin(), half), part(half, numbers.end())) | stdexec::then(std::plus{});
}

// What was written with tasks.
w::task<std::string> fetch(int page) {
  co_await w::sleep_for(1ms);
  if (page == 404) throw std::runtime_error{"no page 404"};
  co_return "page " + std::to_string(page);
}

w::task<> nap() { co_await w::sleep_for(1h); }

w::task<> in_a_task(w::executor& workers) {
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 1);
  const int sum = co_await w::from_sender(sum_of(numbers, w::as_scheduler(workers)));
  std::printf("a task awaits senders: %d\n", sum);

  // A stop reaches what a sender waits for, here a task again.
  auto slow = w::from_sender(w::as_sender(nap()) | stdexec::then([] { std::puts("slept"); }));
  const auto late = co_await w::as_result(w::timeout(10ms, std::move(slow)));
  std::printf("a sender that waits for an hour: %s\n", late.error() == w::errc::timed_out ? "stopped" : "has ended");
}

void in_senders(w::executor& workers) {
  auto both = stdexec::when_all(w::as_sender(workers, fetch(1)), w::as_sender(workers, fetch(2)));
  const auto pages = stdexec::sync_wait(std::move(both));
  std::printf("senders await tasks: %s and %s\n", std::get<0>(*pages).c_str(), std::get<1>(*pages).c_str());

  auto mended = w::as_sender(workers, fetch(404)) | stdexec::upon_error([](std::exception_ptr failure) {
                  try {
                    std::rethrow_exception(std::move(failure));
                  } catch (const std::runtime_error& error) {
                    return "instead: "s + error.what();
                  }
                });
  std::printf("a task's exception is a sender's error: %s\n",
              std::get<0>(*stdexec::sync_wait(std::move(mended))).c_str());
}

int main() {
  w::pool workers{{.threads = 2}};
  w::sync_wait(in_a_task(workers));
  in_senders(workers);
}
