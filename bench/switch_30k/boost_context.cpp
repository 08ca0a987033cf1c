#include "workload.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#include <vector>

namespace {

namespace context = boost::context;

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) {
    static context::pooled_fixedsize_stack stacks{stack};
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i)
      all_.emplace_back(std::allocator_arg, context::pooled_fixedsize_stack{stacks}, [](context::fiber&& outside) {
        for (std::size_t left = bench::switches_of_each; left != 0; --left) outside = std::move(outside).resume();
        return std::move(outside);
      });
  }

  std::size_t resume_all() {
    std::size_t yielded = 0;
    for (auto& one : all_) {
      if (!one) continue;
      one = std::move(one).resume();
      yielded += static_cast<bool>(one);
    }
    return yielded;
  }

 private:
  std::vector<context::fiber> all_;
};

}  // namespace

void bench::run(bench::state& state) { measure_libcopps<coroutines>(state); }
