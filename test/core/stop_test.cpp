#include <weft/clock.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/stop.hpp>
#include <weft/with.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using weft::stop_callback;
using weft::stop_source;
using weft::stop_token;

TEST(stop, is_requested_once_and_seen_by_all_tokens) {
  stop_source source;
  const stop_token token = source.token(), copy = token;
  EXPECT_FALSE(source.stop_requested());
  EXPECT_FALSE(token.stop_requested());
  EXPECT_EQ(token.cause(), nullptr);
  EXPECT_TRUE(source.request_stop());
  EXPECT_FALSE(source.request_stop());
  EXPECT_TRUE(token.stop_requested() && copy.stop_requested());
  EXPECT_EQ(token, copy);
}

TEST(stop, a_token_of_nothing_never_stops) {
  const stop_token none;
  EXPECT_FALSE(none.stop_possible());
  EXPECT_FALSE(none.stop_requested());
  EXPECT_EQ(none.cause(), nullptr);
  const stop_callback unused{none, [] { FAIL() << "nobody stops it"; }};
  stop_source source;
  EXPECT_TRUE(source.token().stop_possible());
  EXPECT_NE(source.token(), none);
}

TEST(stop, keeps_the_first_cause_and_where_it_came_from) {
  stop_source source;
  source.request_stop({"shutting down"});
  const unsigned line = __LINE__ - 1;
  source.request_stop({"again"});
  ASSERT_NE(source.cause(), nullptr);
  EXPECT_EQ(std::string_view{source.cause()->reason}, "shutting down");
  EXPECT_EQ(source.cause()->where.line(), line);
  EXPECT_EQ(source.token().cause(), source.cause());
}

TEST(stop, calls_each_callback_once_outside_of_any_lock) {
  stop_source source;
  int called = 0;
  const stop_callback first{source.token(), [&] { ++called; }};
  const stop_callback second{source.token(), [&] {
                               ++called;
                               EXPECT_TRUE(source.stop_requested());
                               EXPECT_FALSE(source.request_stop());
                               const stop_callback nested{source.token(), [&] { ++called; }};
                             }};
  source.request_stop();
  EXPECT_EQ(called, 3);
  source.request_stop();
  EXPECT_EQ(called, 3);
}

TEST(stop, calls_at_once_what_registers_too_late) {
  stop_source source;
  source.request_stop();
  int called = 0;
  {
    const stop_callback late{source.token(), [&] { ++called; }};
  }
  EXPECT_EQ(called, 1);
}

TEST(stop, does_not_call_what_was_taken_out) {
  stop_source source;
  std::vector<std::unique_ptr<stop_callback<void (*)()>>> several;
  for (int i = 0; i < 5; ++i)
    several.push_back(std::make_unique<stop_callback<void (*)()>>(source.token(), [] { ADD_FAILURE(); }));
  for (std::size_t i : {2, 0, 4, 1, 3}) several[i].reset();  // from the middle and both ends
  source.request_stop();
}

TEST(stop, a_callback_may_destroy_itself) {
  stop_source source;
  struct last_words {
    std::optional<stop_callback<last_words>>* self;
    int* called;
    void operator()() {
      int& count = *called;
      self->reset();  // *this is gone after this line
      ++count;
    }
  };
  int called = 0;
  std::optional<stop_callback<last_words>> callback;
  callback.emplace(source.token(), last_words{&callback, &called});
  const stop_callback next{source.token(), [&] { ++called; }};
  source.request_stop();
  EXPECT_EQ(called, 2);
  EXPECT_FALSE(callback.has_value());
}

TEST(stop, a_callback_may_take_out_those_that_come_later) {
  stop_source source;
  std::optional<stop_callback<void (*)()>> other;
  other.emplace(source.token(), [] { FAIL() << "it was taken out"; });
  const stop_callback takes_out{source.token(), [&] { other.reset(); }};  // newest first
  source.request_stop();
  EXPECT_FALSE(other.has_value());
}

TEST(stop, the_destructor_waits_for_a_callback_on_another_thread) {
  for (int i = 0; i < test::rounds(1000); ++i) {
    stop_source source;
    std::atomic<bool> entered = false;
    bool left = false;  // plain: the destructor carries the edge
    std::optional<stop_callback<std::function<void()>>> callback;
    callback.emplace(source.token(), [&] {
      entered = true;
      std::this_thread::yield();
      left = true;
    });
    std::jthread stopper{[&] { source.request_stop(); }};
    test::until([&] { return entered.load(); });
    callback.reset();
    EXPECT_TRUE(left);
  }
}

TEST(stop, what_led_to_it_is_visible_to_who_sees_it) {
  for (int i = 0; i < test::rounds(1000); ++i) {
    stop_source source;
    int reason = 0;
    std::jthread stopper{[&] {
      reason = 7;
      source.request_stop();
    }};
    test::until([&] { return source.stop_requested(); });
    EXPECT_EQ(reason, 7);
  }
}

// Threads register and take out callbacks while one of them stops: each callback is called at most once, never after
// its destructor, and always if it was there when the stop came.
TEST(stop, registering_and_taking_out_race_with_a_stop) {
  for (int round = 0; round < test::rounds(500); ++round) {
    stop_source source;
    std::latch all{4};
    std::array<std::atomic<int>, 3> missed{};
    std::array<std::jthread, 4> threads;
    for (std::size_t t = 0; t < 3; ++t)
      threads[t] = std::jthread{[&, t] {
        all.arrive_and_wait();
        for (bool stopped = false; !stopped;) {
          int called = 0, also_called = 0;
          {
            const stop_callback one{source.token(), [&] { ++called; }};
            const stop_callback two{source.token(), [&] { ++also_called; }};
            stopped = source.stop_requested();
          }
          EXPECT_LE(called, 1);
          if (stopped && called + also_called != 2) ++missed[t];
        }
      }};
    threads[3] = std::jthread{[&] {
      all.arrive_and_wait();
      source.request_stop();
    }};
    for (auto& one : threads) one.join();
    // The stop was seen while both were registered, so both were called before their destructors returned, unless they
    // were taken out of the list before the stopper came to them.
    for (auto& one : missed) EXPECT_LE(one, 1);
  }
}

// ---- destroyed while it stops -----------------------------------------------------------------------------------------

TEST(stop, a_callback_that_has_destroyed_itself_may_destroy_the_source) {
  struct last_words {
    std::unique_ptr<stop_source>* source;
    std::optional<stop_callback<last_words>>* self;
    void operator()() {
      std::unique_ptr<stop_source>& mine = *source;
      self->reset();  // *this is gone after this line
      mine.reset();
    }
  };
  auto source = std::make_unique<stop_source>();
  std::optional<stop_callback<last_words>> callback;
  callback.emplace(source->token(), last_words{&source, &callback});
  EXPECT_TRUE(source->request_stop());
  EXPECT_EQ(source, nullptr);
  EXPECT_FALSE(callback.has_value());
}

TEST(stop, a_callback_may_destroy_the_source_and_those_that_come_later) {
  auto source = std::make_unique<stop_source>();
  int called = 0;
  std::optional<stop_callback<std::function<void()>>> first, second, third;
  first.emplace(source->token(), [] { ADD_FAILURE() << "it was taken out"; });
  second.emplace(source->token(), [] { ADD_FAILURE() << "it was taken out"; });
  third.emplace(source->token(), [&source, &called, &first, &second, &third] {
    ++called;
    first.reset();
    second.reset();
    std::unique_ptr<stop_source>& mine = source;
    third.reset();  // this closure is gone after this line
    mine.reset();
  });
  EXPECT_TRUE(source->request_stop());
  EXPECT_EQ(called, 1);
  EXPECT_EQ(source, nullptr);
}

weft::task<> waits_under_a_source_of_its_own(std::atomic<stop_source*>& handle) {
  const auto mine = std::make_unique<stop_source>();
  auto body = [&]() -> weft::task<> {
    handle = mine.get();
    co_await weft::sleep_for(std::chrono::hours{1});
  };
  co_await weft::with_stop(mine->token(), body);
}

TEST(stop, a_task_that_is_stopped_may_own_the_source) {
  std::atomic<stop_source*> handle = nullptr;
  bool stopped = false;
  weft::start(waits_under_a_source_of_its_own(handle),
              [&](const weft::result<void>& how) { stopped = how.is_stopped(); });
  handle.load()->request_stop();
  EXPECT_TRUE(stopped);
}

TEST(stop, a_task_that_is_stopped_may_own_the_source_on_another_thread) {
  weft::pool pool{{.threads = 2}};
  for (int i = 0; i < test::rounds(2000); ++i) {
    std::atomic<stop_source*> handle = nullptr;
    std::atomic<bool> over = false;
    weft::start(pool.executor(), waits_under_a_source_of_its_own(handle), [&](const auto&) { over = true; });
    test::until([&] { return handle.load() != nullptr; });
    handle.load()->request_stop();
    test::until([&] { return over.load(); });
  }
}

// The callback runs on while another thread destroys the source: neither waits for the other.
TEST(stop, another_thread_may_destroy_the_source_while_a_callback_without_a_node_runs_on) {
  auto source = std::make_unique<stop_source>();
  std::atomic<bool> gone = false;
  std::latch may_go{1};
  struct lasts {
    std::optional<stop_callback<lasts>>* self;
    std::latch* may_go;
    std::atomic<bool>* gone;
    void operator()() {
      std::latch& may = *may_go;
      std::atomic<bool>& is_gone = *gone;
      self->reset();  // *this is gone after this line
      may.count_down();
      test::until([&] { return is_gone.load(); });
    }
  };
  std::optional<stop_callback<lasts>> lasting;
  lasting.emplace(source->token(), lasts{&lasting, &may_go, &gone});
  stop_source& handle = *source;
  std::jthread stopper{[&] { EXPECT_TRUE(handle.request_stop()); }};
  may_go.wait();
  source.reset();
  gone = true;
}

TEST(stop_death, a_source_is_not_destroyed_by_a_callback_that_is_on_it) {
  auto source = std::make_unique<stop_source>();
  const stop_callback callback{source->token(), [&] { source.reset(); }};
  EXPECT_DEATH(source->request_stop(), "a stop_source was destroyed by a stop_callback that is still on it");
}

}  // namespace
