// cache: what a switch takes of the caches. COUNT coroutines are resumed in turn ROUNDS times; with a payload each adds to
// a line of its own on the heap, as an actor does with its state. Run under cachegrind by the script `report`, which takes
// the difference of two ROUNDS: that leaves only switches.
//
//     bench_cache coloured|uncoloured|huge_pages|boost_context|libcopp COUNT ROUNDS PAYLOAD
//     bench_cache fibers|handwritten|boost_fiber|photon COUNT ROUNDS 0
//
// The latter are scheduled: see scheduled.cpp.
//
// Not a workload of the driver, whose figures are times.
#include "shape.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>
#include <weft/stack_pool.hpp>

#if defined(BENCH_WITH_BOOST_CONTEXT)
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#endif

#if defined(BENCH_WITH_LIBCOPP)
#include "../harness/libcopp.hpp"

#include <sys/mman.h>
#endif

namespace {

using bench::leave, bench::shape, bench::stack_of_each;

struct alignas(64) payload {
  std::uint64_t turns = 0;
};

/// In an order that no prefetcher guesses, as a heap's after a while.
std::vector<payload*> scattered(std::vector<payload>& all) {
  std::vector<payload*> in_order;
  for (std::size_t i = 0, at = 0; i != all.size(); ++i, at = (at + 7919) % all.size()) in_order.push_back(&all[at]);
  return in_order;
}

[[noreturn]] void run_weft(const shape& of, const weft::stack_pool_options& options) {
  weft::stack_pool stacks{options};
  std::vector<payload> own(of.count);
  const std::vector<payload*> payloads = scattered(own);
  std::uint64_t turns = 0;
  std::vector<weft::coroutine<void()>> all;
  for (std::size_t i = 0; i != of.count; ++i)
    all.emplace_back(weft::stack_options{.size = stack_of_each, .pool = &stacks},
                     [mine = of.with_payload ? &payloads[i]->turns : &turns](auto& yield) {
                       for (;; yield()) ++*mine;
                     });
  for (std::size_t round = 0; round != of.rounds; ++round)
    for (auto& one : all) one.resume();
  for (const payload& one : own) turns += one.turns;
  leave(of, turns);
}

#if defined(BENCH_WITH_BOOST_CONTEXT)
[[noreturn]] void run_boost(const shape& of) {
  namespace context = boost::context;
  std::vector<payload> own(of.count);
  const std::vector<payload*> payloads = scattered(own);
  std::uint64_t turns = 0;
  std::vector<context::fiber> all;
  for (std::size_t i = 0; i != of.count; ++i)
    all.emplace_back(std::allocator_arg, context::fixedsize_stack{stack_of_each},
                     [mine = of.with_payload ? &payloads[i]->turns : &turns](context::fiber&& outside) {
                       for (;; outside = std::move(outside).resume()) ++*mine;
                       return std::move(outside);
                     });
  for (std::size_t round = 0; round != of.rounds; ++round)
    for (auto& one : all) one = std::move(one).resume();
  for (const payload& one : own) turns += one.turns;
  leave(of, turns);
}
#endif

#if defined(BENCH_WITH_LIBCOPP)
/// As its own allocator, but for the guard, since valgrind lets no process have 30,000.
struct without_guards {
  void allocate(copp::stack_context& one, std::size_t bytes) noexcept {
    one.size = bytes + page;
    void* const all = ::mmap(nullptr, one.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    one.sp = all == MAP_FAILED ? nullptr : static_cast<std::byte*>(all) + one.size;
  }
  void deallocate(copp::stack_context& one) noexcept { ::munmap(static_cast<std::byte*>(one.sp) - one.size, one.size); }

 private:
  static constexpr std::size_t page = 4096;
};

[[noreturn]] void run_libcopp(const shape& of) {
  using unguarded_stacks = bench::basic_libcopp_stacks<without_guards>;
  unguarded_stacks stacks{of.count, stack_of_each};
  std::vector<payload> own(of.count);
  const std::vector<payload*> payloads = scattered(own);
  std::uint64_t turns = 0;
  std::vector<unguarded_stacks::coroutine::ptr_t> all;
  for (std::size_t i = 0; i != of.count; ++i)
    all.push_back(stacks.make([mine = of.with_payload ? &payloads[i]->turns : &turns] {
      for (auto* const self = copp::this_coroutine::get_coroutine();; self->yield()) ++*mine;
    }));
  for (auto& one : all) one->start();
  for (std::size_t round = 1; round < of.rounds; ++round)
    for (auto& one : all) one->resume();
  for (const payload& one : own) turns += one.turns;
  leave(of, turns);
}
#endif

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return std::fputs("bench_cache KIND COUNT ROUNDS PAYLOAD\n", stderr), 2;
  const std::string_view kind = arguments[1];
  const shape of{std::strtoul(arguments[2], nullptr, 10), std::strtoul(arguments[3], nullptr, 10),
                 std::strtoul(arguments[4], nullptr, 10) != 0};
  if (kind == "coloured") run_weft(of, {});
  if (kind == "uncoloured") run_weft(of, {.coloured = false});
  if (kind == "huge_pages") run_weft(of, {.guard = weft::stack_guard::none, .huge_pages = true});
#if defined(BENCH_WITH_BOOST_CONTEXT)
  if (kind == "boost_context") run_boost(of);
#endif
#if defined(BENCH_WITH_LIBCOPP)
  if (kind == "libcopp") run_libcopp(of);
#endif
  bench::run_scheduled(kind, of);
  return std::fprintf(stderr, "bench_cache: there is no %s here\n", arguments[1]), 1;
}
