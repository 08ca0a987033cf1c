#include "workload.hpp"

#include <vector>
#include <weft/coroutine.hpp>
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
    for (auto& one : all_) {
      if (!one) continue;
      one.resume();
      yielded += static_cast<bool>(one);
    }
    return yielded;
  }

 private:
  std::vector<weft::coroutine<void()>> all_;
};

}  // namespace

void bench::run(bench::state& state) { measure_libcopps<coroutines>(state); }
