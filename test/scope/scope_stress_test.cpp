// Trees of scopes, forks, races, joins and limits, made at random and run by several threads, while others stop them, open
// what they wait for, or let a deadline pass. However such a tree ends, it has ended: all that it held is gone, and what was
// awaited had the value that it should have.
//
// A tree follows from its seed, which a failure names; what the threads make of it differs from run to run. WEFT_STRESS
// says how many are run (./dev soak runs many), WEFT_STRESS_SEED with which to begin.
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory_resource>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using std::chrono::microseconds;
using test::gate;
using weft::as_result;
using weft::fork;
using weft::fork_view;
using weft::pool;
using weft::scope;
using weft::scope_options;
using weft::start_on;
using weft::strand;
using weft::task;

// A stream of numbers that follows from its seed (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
class numbers {
 public:
  explicit numbers(std::uint64_t seed) noexcept : state_{seed} {}
  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  unsigned below(unsigned limit) noexcept { return static_cast<unsigned>(next() % limit); }

 private:
  std::uint64_t state_;
};

// Where all trees run.
struct executors {
  pool threads{{.threads = 3}}, others{{.threads = 2}};
  strand line{threads.executor()};
};

// What one tree has.
struct surroundings {
  explicit surroundings(executors& where) : on{where} {}

  executors& on;
  std::pmr::synchronized_pool_resource memory;
  gate doors[3];
  std::atomic<int> alive{0}, wrong{0};

  weft::executor& any(numbers& random) {
    switch (random.below(3)) {
      case 0: return on.others.executor();
      case 1: return on.line;
      default: return on.threads.executor();
    }
  }
};

// One node: what it is, and the value that it has if it has one, follow from its seed.
class node {
 public:
  node(surroundings& in, std::uint64_t seed, unsigned depth) noexcept
      : in_{&in}, seed_{seed}, depth_{depth}, here_{in.alive} {}

  static std::uint64_t value_of(std::uint64_t seed) noexcept { return seed / 16; }

  static task<std::uint64_t> run(node mine) {
    numbers random{mine.seed_};
    switch (kind_of(random, mine.depth_)) {
      case 0: break;
      case 1: co_await mine.in_->doors[random.below(3)]; break;
      case 2: throw std::runtime_error{"a node's own"};
      case 3:
        for (unsigned left = random.below(4); left != 0; --left) co_await weft::yield();
        break;
      case 4: co_await weft::sleep_for(microseconds{random.below(200)}); break;
      case 5: co_await mine.race(random); break;
      case 6: co_await mine.join(random); break;
      case 7: co_await mine.limit(random); break;
      case 8: co_await mine.again(random); break;
      case 9: co_await weft::shielded(mine.child(random)); break;
      case 10: co_await mine.elsewhere(random); break;
      default: co_await mine.block(random);
    }
    co_return value_of(mine.seed_);
  }

 private:
  static unsigned kind_of(numbers& random, unsigned depth) noexcept { return random.below(depth == 0 ? 5 : 16); }

  task<std::uint64_t> child(numbers& random) { return run(node{*in_, random.next(), depth_ - 1}); }
  task<std::uint64_t> child_of(std::uint64_t seed) { return run(node{*in_, seed, depth_ - 1}); }
  void expect(std::uint64_t value, std::uint64_t seed) {
    if (value != value_of(seed)) in_->wrong.fetch_add(1);
  }

  task<> race(numbers& random) {
    const std::uint64_t seeds[] = {random.next(), random.next()};
    const auto first = co_await weft::when_any(child_of(seeds[0]), child_of(seeds[1]));
    expect(std::visit([](std::uint64_t value) { return value; }, first.value), seeds[first.index]);
  }

  task<> join(numbers& random) {
    const std::uint64_t seeds[] = {random.next(), random.next(), random.next()};
    const auto [a, b, c] = co_await weft::when_all(child_of(seeds[0]), child_of(seeds[1]), child_of(seeds[2]));
    expect(a, seeds[0]), expect(b, seeds[1]), expect(c, seeds[2]);
  }

  task<> limit(numbers& random) {
    const microseconds most{random.below(300)};
    const auto ended = co_await as_result(weft::timeout(most, child(random)));
    static_cast<void>(ended);  // in time, too late, failed: all are right
  }

  task<> again(numbers& random) {
    weft::retry_policy policy;
    policy.attempts = 2;
    policy.delay = microseconds{random.below(50)};
    const std::uint64_t seed = random.next();
    auto once = [this, seed] { return child_of(seed); };
    expect(co_await weft::retry(policy, once), seed);
  }

  task<> elsewhere(numbers& random) {
    const std::uint64_t seed = random.next();
    weft::executor& there = in_->any(random);
    expect(co_await start_on(there, child_of(seed)), seed);
  }

  // A scope with some of its options, and forks of each kind: dropped, kept, seen by others, stopped, given back.
  task<> block(numbers& random) {
    static constexpr auto goes_on = [](const std::exception_ptr&) {};
    scope_options options;
    const unsigned rule = random.below(4);
    if (rule == 1) options.on_error = weft::collect_all_errors;
    if (rule == 2) options.on_error = goes_on;
    if (random.below(3) == 0) {
      options.memory = &in_->memory;
      options.memory_is_shared = true;
    }
    if (random.below(4) == 0) options.deadline = std::chrono::steady_clock::now() + microseconds{random.below(400)};
    if (random.below(4) == 0) options.max_children = 2;
    auto body = [this, &random, limited = options.max_children == 2](scope& s) -> task<> {
      co_await forks(s, random, limited);
    };
    co_await weft::with_scope(options, body);
  }

  task<> forks(scope& s, numbers& random, bool limited) {
    std::vector<std::pair<fork<std::uint64_t>, std::uint64_t>> kept;
    std::vector<fork_view<std::uint64_t>> views;
    for (unsigned left = 1 + random.below(6); left != 0; --left) {
      const std::uint64_t seed = random.next();
      fork<std::uint64_t> one;
      if (limited) co_await s.room();
      try {
        if (random.below(4) == 0)
          one = s.fork_on(in_->any(random), child_of(seed));
        else
          one = s.fork(child_of(seed));
      } catch (const weft::error&) {
        continue;  // somebody else has the last place
      }
      switch (random.below(6)) {
        case 0: one.request_stop(); break;
        case 1: views.push_back(one.view()); break;
        case 2: kept.emplace_back(std::move(one), seed); break;
        case 3: s.reclaim(); break;
        case 4: expect(co_await std::move(one), seed); break;
        default: break;  // dropped
      }
    }
    if (!limited)
      for (const auto& view : views) s.fork(look, view);
    if (random.below(6) == 0) s.request_stop();
    for (auto& [one, seed] : kept) {
      const auto ended = co_await as_result(one);
      if (ended) expect(ended.value(), seed);
    }
    s.reclaim();
    if (random.below(8) == 0) throw std::runtime_error{"a body's own"};
  }
  static task<> look(fork_view<std::uint64_t> at) { co_await at; }

  surroundings* in_;
  std::uint64_t seed_;
  unsigned depth_;
  test::counted here_;
};

// Runs one tree, and who disturbs it.
void run_tree(surroundings& in, std::uint64_t seed) {
  numbers random{seed};
  weft::stop_source stop;
  const unsigned patience[] = {random.below(300), random.below(300)};
  const bool stops = random.below(3) == 0;
  const std::uint64_t root = random.next();
  std::jthread opener{[&] {
    std::this_thread::sleep_for(microseconds{patience[0]});
    for (gate& door : in.doors) door.open();
  }};
  std::jthread stopper{[&] {
    if (!stops) return;
    std::this_thread::sleep_for(microseconds{patience[1]});
    stop.request_stop();
  }};
  auto whole = [&](scope& s) -> task<std::uint64_t> {
    fork<std::uint64_t> all = s.fork(node::run(node{in, root, 4}));
    co_return co_await std::move(all);
  };
  auto tree = [&]() -> task<std::uint64_t> { co_return co_await weft::with_scope({.stop = stop.token()}, whole); };
  try {
    const std::uint64_t value = weft::sync_wait(start_on(in.on.threads.executor(), tree()));
    EXPECT_EQ(value, node::value_of(root));
  } catch (const std::runtime_error&) {
  } catch (const weft::error_list&) {
  } catch (const weft::stopped&) {
  }
}

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const asked = std::getenv(name);
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : otherwise;
}

TEST(scope_stress, random_trees_that_are_stopped_and_fail) {
  const std::uint64_t first = number_from("WEFT_STRESS_SEED", 1);
  const std::uint64_t count = number_from("WEFT_STRESS", static_cast<std::uint64_t>(test::rounds(100)));
  executors all;
  for (std::uint64_t seed = first; seed != first + count; ++seed) {
    SCOPED_TRACE("WEFT_STRESS_SEED=" + std::to_string(seed));
    surroundings in{all};
    run_tree(in, seed);
    EXPECT_EQ(in.alive, 0);
    EXPECT_EQ(in.wrong, 0);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
