// The limit of those that are scheduled: a ring of contexts that can run, and the switch of `handwritten`. Who yields is last
// in the ring, and goes over to the first, whose line was fetched when it was tenth. No other thread may take one, none ends,
// and nothing is counted.
#include "workload.hpp"

#include "../harness/handwritten_switch.hpp"

#include <bit>
#include <stdexcept>
#include <vector>

#if defined(__x86_64__)

namespace {

/// The contexts that can run but for the one that does, in the order of their turns.
class run_queue {
 public:
  explicit run_queue(std::size_t most) : ring_(std::bit_ceil(most + fetched_ahead)), mask_{ring_.size() - 1} {}

  void push(handwritten::context& last) { ring_[end_++ & mask_] = &last; }

  [[gnu::always_inline]] void yield(handwritten::context& from) {
    push(from);
    handwritten::context& to = *ring_[begin_++ & mask_];
    __builtin_prefetch(ring_[(begin_ + fetched_ahead - 1) & mask_], 1);
    handwritten::switch_over(from, to);
  }

  std::size_t turns = 0;

 private:
  static constexpr std::size_t fetched_ahead = 10;

  std::vector<handwritten::context*> ring_;
  std::size_t mask_;
  std::size_t begin_ = 0, end_ = 0;
};

[[noreturn]] void counts(handwritten::context* mine) {
  auto& all = *static_cast<run_queue*>(mine->with);
  for (;; all.yield(*mine)) ++all.turns;
}

}  // namespace

void bench::run(bench::state& state) {
  run_queue all{state.size()};
  handwritten::coloured_stacks stacks{state.size() - 1, switch_stack};
  for (std::size_t i = 0; i + 1 != state.size(); ++i) all.push(*stacks.begin(i, counts, &all));
  handwritten::context own{};
  measure_scheduled(state, all.turns, [&] { all.yield(own); });
}

#else

void bench::run(bench::state&) { throw std::runtime_error{"written for x86-64"}; }

#endif
