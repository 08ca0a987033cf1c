#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/executor.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::result;
using weft::stop_source;
using weft::stopped;
using weft::sync_wait;
using weft::task;

// What most tests call. Behind a pointer, so that nothing is elided, where a test says `opaque`.
task<int> number(int n) { co_return n; }
task<> nothing() { co_return; }
task<int> throws(const char* why) {
  throw std::runtime_error{why};
  co_return 0;
}
template <class Function>
Function* opaque(Function* function) {
  Function* volatile hidden = function;
  return hidden;
}

// ---- what a task returns --------------------------------------------------------------------------------------------

static_assert(std::movable<task<int>> && !std::copyable<task<int>>);
static_assert(std::is_same_v<task<>::value_type, void> && std::is_same_v<task<int&>::value_type, int&>);
static_assert(sizeof(task<int>) == sizeof(void*));

WEFT_TEST("task: returns a value, a string, nothing") {
  auto text = [](std::string of) -> task<std::string> { co_return of + "!"; };
  EXPECT_EQ(co_await number(7), 7);
  EXPECT_EQ(co_await text("longer than any small string is"), "longer than any small string is!");
  co_await nothing();
}

WEFT_TEST("task: returns the very object that a reference refers to") {
  auto same = [](int& n) -> task<int&> { co_return n; };
  auto read = [](const int& n) -> task<const int&> { co_return n; };
  int n = 1;
  int& found = co_await same(n);
  EXPECT_EQ(&found, &n);
  co_await same(n) = 2;
  EXPECT_EQ(n, 2);
  EXPECT_EQ(&co_await read(n), &n);
}

struct only_moves {
  explicit only_moves(int n) : n{std::make_unique<int>(n)} {}
  std::unique_ptr<int> n;
};

WEFT_TEST("task: returns what can only be moved, and what has no default") {
  auto make = [](int n) -> task<only_moves> { co_return only_moves{n}; };
  auto pointer = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };
  EXPECT_EQ(*(co_await make(3)).n, 3);
  EXPECT_EQ(*co_await pointer(), 4);
}

struct alignas(64) line {
  explicit line(int n) : at{this}, n{n} {}
  line(const line& other) : at{this}, n{other.n} {}
  bool is_aligned() const { return reinterpret_cast<std::uintptr_t>(at) % 64 == 0; }
  const line* at;
  int n;
  std::array<char, 100> more{};
};
struct alignas(32) pair_of_words {
  std::int64_t a, b, c, d;
};

TEST(task, returns_what_is_aligned_to_more_than_a_frame) {
  auto make = [](int n) -> task<line> { co_return line{n}; };
  auto words = []() -> task<pair_of_words> { co_return pair_of_words{1, 2, 3, 4}; };
  for (int i = 0; i < 10; ++i) {
    const line got = sync_wait(make(i));
    EXPECT_TRUE(got.is_aligned());
    EXPECT_EQ(got.n, i);
    EXPECT_EQ(sync_wait(words()).d, 4);
  }
}

WEFT_TEST("task: converts what it returns, and takes braces") {
  auto text = []() -> task<std::string> { co_return "text"; };
  auto list = []() -> task<std::vector<int>> { co_return {1, 2, 3}; };
  auto maybe = []() -> task<std::optional<int>> { co_return std::nullopt; };
  EXPECT_EQ(co_await text(), "text");
  EXPECT_EQ((co_await list()).size(), 3u);
  EXPECT_FALSE((co_await maybe()).has_value());
}

TEST(task, destroys_each_value_that_it_returned_once) {
  std::atomic<int> alive = 0;
  auto make = [](std::atomic<int>& alive) -> task<test::counted> { co_return test::counted{alive}; };
  auto use = [](auto make, std::atomic<int>& alive) -> task<int> {
    auto first = co_await make(alive);
    co_await make(alive);  // dropped
    co_return alive.load();
  };
  EXPECT_EQ(sync_wait(use(make, alive)), 1);
  {
    auto kept = sync_wait(make(alive));
  }
  EXPECT_EQ(alive, 0);
}

// ---- how a task is called -------------------------------------------------------------------------------------------

WEFT_TEST("task: takes tasks, references and values as arguments") {
  auto add = [](task<int> a, task<int> b) -> task<int> { co_return co_await std::move(a) + co_await std::move(b); };
  auto change = [](std::string& text, std::string by) -> task<> {
    text += by;
    co_return;
  };
  EXPECT_EQ(co_await add(number(1), add(number(2), number(3))), 6);
  std::string text = "a";
  co_await change(text, "b");
  EXPECT_EQ(text, "ab");
}

struct account {
  int balance = 10;
  task<int> draw(int n) {
    balance -= co_await number(n);
    co_return balance;
  }
  static task<int> zero() { co_return 0; }
  virtual ~account() = default;
  virtual task<int> fee() const { co_return 1; }
};
struct free_account final : account {
  task<int> fee() const override { co_return 0; }
};

WEFT_TEST("task: is returned by member functions, virtual ones and lambdas with captures") {
  account mine;
  EXPECT_EQ(co_await mine.draw(3), 7);
  EXPECT_EQ(mine.balance, 7);
  EXPECT_EQ(co_await account::zero(), 0);
  const free_account other;
  const account& any = other;
  EXPECT_EQ(co_await any.fee(), 0);

  auto text = std::make_shared<std::string>("captured");
  auto size = [text]() -> task<std::size_t> {
    co_await nothing();
    co_return text->size();
  };
  EXPECT_EQ(co_await size(), 8u);
  EXPECT_EQ(text.use_count(), 2) << "the closure's, and this one";
}

task<int> fibonacci(int n) {
  if (n < 2) co_return n;
  co_return co_await fibonacci(n - 1) + co_await fibonacci(n - 2);
}

WEFT_TEST("task: comes out of std::function, std::invoke and functions that are no coroutines") {
  const std::function<task<int>(int)> erased = fibonacci;
  auto forwarding = [](int n) { return fibonacci(n); };
  EXPECT_EQ(co_await erased(10), 55);
  EXPECT_EQ(co_await std::invoke(forwarding, 10), 55);
}

WEFT_TEST("task: calls itself") { EXPECT_EQ(co_await fibonacci(20), 6765); }

TEST(task, runs_nothing_until_it_is_awaited) {
  bool ran = false;
  auto mark = [](bool& ran) -> task<> {
    ran = true;
    co_return;
  };
  {
    [[maybe_unused]] auto dropped = mark(ran);
  }
  EXPECT_FALSE(ran);
  auto kept = mark(ran);
  EXPECT_FALSE(ran);
  sync_wait(std::move(kept));
  EXPECT_TRUE(ran);
}

TEST(task, can_be_moved_swapped_and_kept_in_a_container) {
  std::vector<task<int>> several;
  for (int i = 0; i < 10; ++i) several.push_back(number(i));
  std::swap(several[0], several[9]);
  auto sum = [](std::vector<task<int>> several) -> task<int> {
    int all = co_await std::move(several[0]) * 100;
    for (std::size_t i = 1; i < several.size(); ++i) all += co_await std::move(several[i]);
    co_return all;
  };
  EXPECT_EQ(sync_wait(sum(std::move(several))), 936);

  task<int> empty;
  EXPECT_FALSE(empty);
  empty = number(5);
  EXPECT_TRUE(empty);
  EXPECT_EQ(sync_wait(std::move(empty)), 5);
  EXPECT_FALSE(empty);  // NOLINT(bugprone-use-after-move): that it is empty is the point
}

// ---- exceptions -----------------------------------------------------------------------------------------------------

TEST(task, an_exception_passes_any_number_of_levels) {
  struct leaf {
    task<long> operator()() const {
      throw std::out_of_range{"leaf"};
      co_return 0;
    }
  } const leaf;
  for (long depth : {0, 1, 2, 10, 1000}) EXPECT_THROW(sync_wait(test::deep(depth, leaf)), std::out_of_range);
}

WEFT_TEST("task: goes on after an exception was caught") {
  int caught = 0;
  for (int i = 0; i < 3; ++i) {
    try {
      co_await throws("again");
    } catch (const std::runtime_error& failure) {
      EXPECT_STREQ(failure.what(), "again");
      ++caught;
    }
  }
  EXPECT_EQ(caught, 3);
  EXPECT_EQ(co_await number(1), 1);
}

struct noisy {
  explicit noisy(std::atomic<int>& alive) : one{alive} {}
  test::counted one;
};

TEST(task, an_exception_is_destroyed_when_it_was_handled) {
  std::atomic<int> alive = 0;
  // One that the compiler may place in its caller's frame, and whose arguments need no destructor.
  auto plain = [](std::atomic<int>* alive) -> task<int> {
    throw noisy{*alive};
    co_return 0;
  };
  auto caller = [](auto plain, std::atomic<int>* alive) -> task<int> {
    int caught = 0;
    for (int i = 0; i < 5; ++i) {
      try {
        caught += co_await plain(alive);
      } catch (const noisy&) {
        ++caught;
      }
    }
    co_return caught;
  };
  EXPECT_EQ(sync_wait(caller(plain, &alive)), 5);
  EXPECT_EQ(alive, 0);
}

TEST(task, a_value_that_cannot_be_made_is_an_exception_at_the_await) {
  struct refuses {
    explicit refuses(int) { throw std::length_error{"made"}; }
  };
  auto make = []() -> task<refuses> { co_return 1; };
  EXPECT_THROW(sync_wait(make()), std::length_error);
}

TEST(task, a_local_whose_destructor_throws_replaces_the_value) {
  struct thrower {
    ~thrower() noexcept(false) { throw std::runtime_error{"left"}; }
  };
  std::atomic<int> alive = 0;
  auto make = [](std::atomic<int>& alive) -> task<test::counted> {
    thrower last;
    co_return test::counted{alive};
  };
  EXPECT_THROW(sync_wait(make(alive)), std::runtime_error);
  EXPECT_EQ(alive, 0);
}

// ---- the machine stack does not grow --------------------------------------------------------------------------------

TEST(task, ten_million_awaits_that_never_wait_need_no_stack) {
  const long rounds = test::rounds(10'000'000);
  long sum = 0;
  test::on_small_stack([&] {
    auto loop = [](long rounds) -> task<long> {
      long sum = 0;
      for (long i = 0; i < rounds; ++i) sum += co_await opaque(number)(1);
      co_return sum;
    };
    sum = sync_wait(loop(rounds));
  });
  EXPECT_EQ(sum, rounds);
}

TEST(task, a_chain_of_a_million_calls_needs_no_stack) {
  const long depth = 1'000'000;
  auto leaf = []() -> task<long> { co_return 0; };
  long reached = 0;
  test::on_small_stack([&] { reached = sync_wait(test::deep(depth, leaf)); });
  EXPECT_EQ(reached, depth);
}

TEST(task, a_chain_of_a_million_calls_is_stopped_without_stack) {
  const long depth = 1'000'000;
  std::atomic<int> alive = 0;
  test::on_small_stack([&] {
    test::gate never;
    auto leaf = [&]() -> task<long> {
      const test::counted one{alive};
      co_await never;
      co_return 0;
    };
    stop_source stop;
    std::jthread stopper{[&] {
      test::until([&] { return never.waiting() == 1; });
      stop.request_stop();
    }};
    EXPECT_THROW(sync_wait(test::deep(depth, leaf), stop.token()), stopped);
  });
  EXPECT_EQ(alive, 0);
}

TEST(task, an_exception_passes_a_hundred_thousand_levels_without_stack) {
  auto leaf = []() -> task<long> {
    throw std::runtime_error{"deep"};
    co_return 0;
  };
  test::on_small_stack([&] { EXPECT_THROW(sync_wait(test::deep(100'000, leaf)), std::runtime_error); });
}

task<long> results_of_results(long depth) {
  if (depth == 0) co_return 0;
  co_return 1 + (co_await as_result(results_of_results(depth - 1))).value();
}

TEST(task, a_chain_through_as_result_needs_no_stack) {
  const long depth = 100'000;
  test::on_small_stack([&] { EXPECT_EQ(sync_wait(results_of_results(depth)), depth); });
}

// ---- frames from a resource -----------------------------------------------------------------------------------------

task<int> in_resource(std::allocator_arg_t, std::pmr::memory_resource*, int n) { co_return n; }
task<int> in_allocator(std::allocator_arg_t, std::pmr::polymorphic_allocator<>, int n) { co_return n; }
task<int> in_shape(std::allocator_arg_t, test::counting_resource*, int n) { co_return n; }

struct with_member {
  int n = 5;
  task<int> get(std::allocator_arg_t, std::pmr::memory_resource*) const { co_return n; }
};

TEST(task, takes_its_frame_from_the_resource_that_follows_allocator_arg) {
  test::counting_resource memory;
  std::size_t before = 0;
  const auto allocated = [&] { return memory.allocations - std::exchange(before, memory.allocations); };

  EXPECT_EQ(sync_wait(in_resource(std::allocator_arg, &memory, 1)), 1);
  EXPECT_EQ(allocated(), 1u);
  EXPECT_EQ(sync_wait(in_allocator(std::allocator_arg, &memory, 2)), 2);
  EXPECT_EQ(allocated(), 1u);
  EXPECT_EQ(sync_wait(in_shape(std::allocator_arg, &memory, 3)), 3);
  EXPECT_EQ(allocated(), 1u);
  EXPECT_EQ(sync_wait(with_member{}.get(std::allocator_arg, &memory)), 5);
  EXPECT_EQ(allocated(), 1u);
  auto closure = [n = 6](std::allocator_arg_t, std::pmr::memory_resource*) -> task<int> { co_return n; };
  EXPECT_EQ(sync_wait(closure(std::allocator_arg, &memory)), 6);
  EXPECT_EQ(allocated(), 1u);
  {
    [[maybe_unused]] auto dropped = in_resource(std::allocator_arg, &memory, 7);
  }
  EXPECT_EQ(allocated(), 1u);
  EXPECT_EQ(memory.live, 0u);
  EXPECT_EQ(memory.live_bytes, 0u);
}

// The buffer is in the caller's frame, and so is then the callee's: it is not elided all the same.
TEST(task, gives_a_frame_back_to_a_resource_whose_memory_is_in_its_callers_frame) {
  class arena final : public std::pmr::memory_resource {
   public:
    int live = 0;

   private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      ++live;
      return local_.allocate(bytes, alignment);
    }
    void do_deallocate(void*, std::size_t, std::size_t) override { --live; }
    bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

    std::array<std::byte, 2000> room_;
    std::pmr::monotonic_buffer_resource local_{room_.data(), room_.size(), std::pmr::null_memory_resource()};
  };
  auto caller = []() -> task<int> {
    arena here;
    EXPECT_EQ(co_await opaque(in_resource)(std::allocator_arg, &here, 1), 1);
    co_return here.live;
  };
  EXPECT_EQ(sync_wait(caller()), 0);
}

TEST(task, a_resource_without_memory_throws_at_the_call_and_leaks_nothing) {
  test::counting_resource memory;
  memory.fail_after = 2;
  std::atomic<int> alive = 0;
  auto take = [](std::allocator_arg_t, std::pmr::memory_resource*, test::counted) -> task<> { co_return; };
  auto caller = [&](auto take) -> task<int> {
    int refused = 0;
    for (int i = 0; i < 5; ++i) {
      try {
        task<> called = take(std::allocator_arg, &memory, test::counted{alive});
        co_await std::move(called);
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    }
    co_return refused;
  };
  EXPECT_EQ(sync_wait(caller(take)), 3);
  EXPECT_EQ(memory.live, 0u);
  EXPECT_EQ(alive, 0);
}

TEST(task, a_dropped_task_frees_its_arguments_and_its_frame) {
  test::counting_resource memory;
  std::atomic<int> alive = 0;
  auto take = [](std::allocator_arg_t, std::pmr::memory_resource*, test::counted) -> task<> { co_return; };
  {
    auto first = take(std::allocator_arg, &memory, test::counted{alive});
    [[maybe_unused]] auto second = std::move(first);
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(memory.live, 1u);
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(memory.live, 0u);
}

TEST(task, a_frame_goes_with_its_task) {
  test::counting_resource memory;
  auto number = [](std::allocator_arg_t, std::pmr::memory_resource*, int n) -> task<int> { co_return n; };
  auto awaits = [&]() -> task<> {
    EXPECT_EQ(co_await number(std::allocator_arg, &memory, 1), 1);
    EXPECT_EQ(memory.live, 0u);  // with the temporary
    {
      auto named = number(std::allocator_arg, &memory, 2);
      EXPECT_EQ(co_await std::move(named), 2);
      auto other = std::move(named);
      EXPECT_FALSE(other);  // NOLINT(bugprone-use-after-move): its result was taken
    }
    EXPECT_EQ(memory.live, 0u);
  };
  sync_wait(awaits());
}

TEST(task, may_outlive_the_root_that_awaited_it) {
  test::counting_resource memory;
  auto number = [](std::allocator_arg_t, std::pmr::memory_resource*, int n) -> task<int> { co_return n; };
  auto awaits = [](task<int>& one) -> task<int> { co_return co_await std::move(one); };
  {
    auto one = number(std::allocator_arg, &memory, 3);
    EXPECT_EQ(sync_wait(awaits(one)), 3);
    auto unawaited = number(std::allocator_arg, &memory, 4);
    sync_wait([](task<int>&) -> task<> { co_return; }(unawaited));
  }
  EXPECT_EQ(memory.live, 0u);
}

}  // namespace
