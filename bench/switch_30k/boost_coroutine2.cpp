#include "workload.hpp"

#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/pooled_fixedsize_stack.hpp>

#include <vector>

namespace {

using coroutine = boost::coroutines2::coroutine<void>;
using boost::coroutines2::pooled_fixedsize_stack;

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) {
    static pooled_fixedsize_stack stacks{stack};
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i)
      all_.emplace_back(pooled_fixedsize_stack{stacks}, [](coroutine::pull_type& yield) {
        for (std::size_t left = bench::switches_of_each; left != 0; --left) yield();
      });
  }

  std::size_t resume_all() {
    std::size_t yielded = 0;
    for (auto& one : all_) {
      if (!one) continue;
      one();
      yielded += static_cast<bool>(one);
    }
    return yielded;
  }

 private:
  std::vector<coroutine::push_type> all_;  // which begins when it is first called
};

}  // namespace

void bench::run(bench::state& state) { measure_libcopps<coroutines>(state); }
