// Batch and flush: a batch is written when it has a hundred, or 50 ms after its first entry; and a stop cuts none in two.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#include <utility>

#define main program
#include "../../examples/recipes/batch_and_flush.cpp"
#undef main

namespace {

// Where batches go.
struct log {
  std::vector<std::pair<w::clock::duration, std::size_t>> batches;  // when each began to be written, and its size
  std::vector<int> begun, written;                                  // entries

  w::task<> write(const std::vector<int>& batch) {
    batches.emplace_back(w::test::elapsed(), batch.size());
    begun.insert(begun.end(), batch.begin(), batch.end());
    co_await w::sleep_for(5ms);
    written.insert(written.end(), batch.begin(), batch.end());
  }
};
using batches = std::vector<std::pair<w::clock::duration, std::size_t>>;

w::task<> send(w::sender<int> to, int from, int count) {
  for (int i = 0; i != count; ++i) co_await to.send(from + i);
}

TEST(batch_and_flush, writes_a_hundred_at_once_and_the_rest_in_time) {
  w::test::for_each_seed(20, [](std::uint64_t seed) {
    w::test::run({.seed = seed}, []() -> w::task<> {
      w::channel<int> entries{16};
      log to;
      const auto write = [&](const std::vector<int>& batch) { return to.write(batch); };
      const auto produce = [&]() -> w::task<> {
        co_await send(entries, 0, 250);
        co_await w::sleep_for(1s);
        for (int i = 0; i != 3; ++i) {
          co_await entries.send(250 + i);
          co_await w::sleep_for(20ms);
        }
        co_await w::sleep_for(1s);
        co_await entries.send(253);
        entries.close();
      };
      co_await w::when_all(collect(entries, write), produce());
      // 50 ms after the first entry, although others have come since; and the last one as soon as the channel is closed.
      EXPECT_EQ(to.batches, (batches{{0ms, 100}, {5ms, 100}, {60ms, 50}, {1060ms, 3}, {2070ms, 1}}));
      EXPECT_EQ(to.written.size(), 254U);
    });
  });
}

TEST(batch_and_flush, has_who_sends_wait_while_it_writes) {
  w::test::run([]() -> w::task<> {
    w::channel<int> entries{16};
    const auto write = [](const std::vector<int>&) -> w::task<> { co_await w::sleep_for(1h); };
    int sent = 0;
    const auto produce = [&]() -> w::task<> {
      for (;; ++sent) co_await entries.send(int{sent});
    };
    auto both = w::when_all(collect(entries, write), produce());
    const auto ended = co_await w::as_result(w::timeout(30min, std::move(both)));
    EXPECT_EQ(ended.error(), w::errc::timed_out);
    EXPECT_EQ(sent, 100 + 16);
  });
}

struct is_stopped {
  w::channel<int> entries{16};
  log to;

  w::task<> produce() {
    co_await send(entries, 0, 2);
    co_await w::sleep_for(52ms);
    co_await send(entries, 2, 1);
    entries.close();
  }
  w::task<> run() {
    const auto write = [this](const std::vector<int>& batch) { return to.write(batch); };
    co_await w::when_all(collect(entries, write), produce());
  }
  void check(const w::result<void>& how) const {
    w::test::require(to.begun == to.written, "a batch was begun and not written");
    for (std::size_t i = 0; i != to.written.size(); ++i)
      w::test::require(to.written[i] == static_cast<int>(i), "an entry is out of order, or came twice");
    w::test::require(how ? to.written.size() == 3 : how.is_stopped(), "an entry was lost");
  }
};
// If who sends were stopped alone, who collects would wait for ever: a program stops them together.
constexpr w::test::sweep_options together{.each_alone = false};
TEST(batch_and_flush, ends_what_it_has_begun_to_write_wherever_it_is_stopped) {
  w::test::cancellation_sweep<is_stopped>(together, "batch and flush");
}

}  // namespace
