// The hint is as in switch_prefetch/boost_context.cpp.
#include "workload.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#include <cstring>
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
    static_assert(sizeof(context::fiber) == sizeof(void*));
    const auto fetch = [](const context::fiber& one) {
      const void* at = nullptr;
      std::memcpy(&at, &one, sizeof(at));
      __builtin_prefetch(at, 1);
    };
    return bench::resume_prefetched(all_, fetch, [](context::fiber& one) { one = std::move(one).resume(); });
  }

 private:
  std::vector<context::fiber> all_;
};

}  // namespace

void bench::run(bench::state& state) { measure_libcopps<coroutines>(state); }
