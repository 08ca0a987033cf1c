// Scheduled, without hooks: a turn of all is one yield of the coroutine that measures. Stacks come from malloc.
#include "workload.hpp"

// libgo's headers define __const__ away, which other headers mean, and take nullptr_t for a global name.
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
using std::nullptr_t;

#include <libgo/coroutine.h>

namespace {

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) : count_{count} {
    for (std::size_t i = 0; i != count; ++i) go co_stack(stack)[this] {
        for (std::size_t left = bench::switches_of_each; left != 0; --left) {
          ++yielded_;
          co_yield;
        }
        ++ended_;
      };
  }
  coroutines(const coroutines&) = delete;
  ~coroutines() {
    while (ended_ != count_) co_yield;
  }

  std::size_t resume_all() {
    const std::size_t before = yielded_;
    do co_yield;
    while (yielded_ == before && ended_ != count_);
    return yielded_ - before;
  }

 private:
  std::size_t count_, yielded_ = 0, ended_ = 0;
};

}  // namespace

void bench::run(bench::state& state) {
  std::exception_ptr failure;
  go[&] {
    try {
      measure_libcopps<coroutines>(state);
    } catch (...) {
      failure = std::current_exception();
    }
    co_sched.Stop();
  };
  co_sched.Start(1);
  if (failure) std::rethrow_exception(failure);
}
