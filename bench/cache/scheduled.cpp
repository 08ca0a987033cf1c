// Of bench_cache: a ring of COUNT that yield to each other, of which the one that measures is one, as in bench/switch. None
// has a guard, since valgrind lets no process have 30,000.
#include "shape.hpp"

#include "../harness/handwritten_switch.hpp"

#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/stack_pool.hpp>

#if defined(BENCH_WITH_BOOST_FIBER)
#include <boost/fiber/all.hpp>

#include <memory>
#include <vector>
#endif

#if defined(BENCH_WITH_PHOTON)
#include <photon/thread/stack-allocator.h>
#include <photon/thread/thread.h>
#endif

namespace bench {
namespace {

/// Has each take its turns; `yield()` returns when each of the others had one.
template <class Yield>
[[noreturn]] void take_turns(const shape& of, const std::size_t& others, Yield yield) {
  for (std::size_t left = of.rounds; left != 0; --left) yield();
  leave(of, others + of.rounds);
}

weft::task<> fibers(weft::executor& where, weft::stack_pool& stacks, const shape& of) {
  std::size_t begun = 1, turns = 0;
  auto yields = [&] {
    ++begun;
    weft::this_fiber::yield();  // till all have begun
    for (;; weft::this_fiber::yield()) ++turns;
  };
  auto measures = [&] {
    while (begun != of.count) weft::this_fiber::yield();
    take_turns(of, turns = 0, [] { weft::this_fiber::yield(); });
  };
  auto go_all = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 1; i < of.count; ++i) s.go({.size = stack_of_each, .pool = &stacks}, yields);
    s.go({.size = stack_of_each, .pool = &stacks}, measures);
    co_return;
  };
  co_await weft::with_scope({.executor = &where}, go_all);
}

[[noreturn]] void run_fibers(const shape& of) {
  weft::stack_pool stacks{{.guard = weft::stack_guard::none}};
  const weft::pool pool{{.threads = 1}};
  weft::sync_wait(fibers(pool.executor(), stacks, of));
  std::abort();
}

#if defined(__x86_64__)
[[noreturn]] void counts(handwritten::context* mine) {
  auto& all = *static_cast<handwritten::run_queue*>(mine->with);
  for (;; all.yield(*mine)) ++all.turns;
}

[[noreturn]] void run_handwritten(const shape& of) {
  handwritten::run_queue all{of.count};
  handwritten::coloured_stacks stacks{of.count - 1, stack_of_each};
  for (std::size_t i = 0; i + 1 != of.count; ++i) all.push(*stacks.begin(i, counts, &all));
  handwritten::context own{};
  take_turns(of, all.turns, [&] { all.yield(own); });
}
#endif

#if defined(BENCH_WITH_BOOST_FIBER)
[[noreturn]] void run_boost(const shape& of) {
  namespace fibers = boost::fibers;
  std::size_t turns = 0;
  std::vector<fibers::fiber> all;
  for (std::size_t i = 1; i < of.count; ++i)
    all.emplace_back(std::allocator_arg, fibers::fixedsize_stack{stack_of_each}, [&] {
      for (;; boost::this_fiber::yield()) ++turns;
    });
  take_turns(of, turns, [] { boost::this_fiber::yield(); });
}
#endif

#if defined(BENCH_WITH_PHOTON)
std::size_t photons_turns = 0;

void* photon_counts(void*) {
  for (;; photon::thread_yield()) ++photons_turns;
}

/// As its own, but for the guard.
void* unguarded(void*, std::size_t bytes) {
  void* stack = nullptr;
  return ::posix_memalign(&stack, 4096, bytes) == 0 ? stack : nullptr;
}
void release(void*, void* stack, std::size_t) { std::free(stack); }

[[noreturn]] void run_photon(const shape& of) {
  photon::set_photon_thread_stack_allocator({&unguarded, nullptr}, {&release, nullptr});
  photon::vcpu_init();
  for (std::size_t i = 1; i < of.count; ++i) photon::thread_create(photon_counts, nullptr, stack_of_each);
  take_turns(of, photons_turns, [] { photon::thread_yield(); });
}
#endif

}  // namespace

void run_scheduled(std::string_view kind, const shape& of) {
  if (kind == "fibers") run_fibers(of);
#if defined(__x86_64__)
  if (kind == "handwritten") run_handwritten(of);
#endif
#if defined(BENCH_WITH_BOOST_FIBER)
  if (kind == "boost_fiber") run_boost(of);
#endif
#if defined(BENCH_WITH_PHOTON)
  if (kind == "photon") run_photon(of);
#endif
}

}  // namespace bench
