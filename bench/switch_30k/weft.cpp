#include "workload.hpp"

#include <vector>
#include <weft/fiber.hpp>

namespace {

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) {
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i)
      all_.emplace_back(weft::stack_options{.size = stack}, [](auto& yield) {
        for (std::size_t left = bench::switches_of_each; left != 0; --left) yield();
      });
  }

  std::size_t resume_all() {
    std::size_t yielded = 0;
    const std::size_t last = all_.size() - 1;
    for (std::size_t i = 0; i <= last; ++i) {
      all_[i + 10 <= last ? i + 10 : last].prefetch();
      if (!all_[i]) continue;
      all_[i].resume();
      yielded += static_cast<bool>(all_[i]);
    }
    return yielded;
  }

 private:
  std::vector<weft::coroutine<void()>> all_;
};

}  // namespace

void bench::run(bench::state& state) { measure_libcopps<coroutines>(state); }
