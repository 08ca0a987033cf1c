// Senders of stdexec in tasks, tasks as senders, and a pool as a scheduler.
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stdexec/execution.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <weft/event.hpp>
#include <weft/hop.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/senders.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_scheduler;
using weft::as_sender;
using weft::from_sender;
using weft::sync_wait;
using weft::task;

// ---- a sender in a task ---------------------------------------------------------------------------------------------------

TEST(from_sender, gives_what_the_sender_completes_with) {
  const auto body = []() -> task<> {
    static_assert(std::is_same_v<decltype(from_sender(stdexec::just())), task<void>>);
    static_assert(std::is_same_v<decltype(from_sender(stdexec::just(1))), task<int>>);
    static_assert(std::is_same_v<decltype(from_sender(stdexec::just(1, 'c'))), task<std::tuple<int, char>>>);
    co_await from_sender(stdexec::just());
    EXPECT_EQ(co_await from_sender(stdexec::just(20) | stdexec::then([](int n) { return n + 1; })), 21);
    auto [n, text] = co_await from_sender(stdexec::just(1, std::string{"one"}));
    EXPECT_EQ(n, 1);
    EXPECT_EQ(text, "one");
    const auto pointer = co_await from_sender(stdexec::just(std::make_unique<int>(5)));
    EXPECT_EQ(*pointer, 5);
  };
  sync_wait(body());
}

TEST(from_sender, throws_what_the_sender_fails_with) {
  const auto body = []() -> task<> {
    EXPECT_THROW(co_await from_sender(stdexec::just() | stdexec::then([]() -> int { throw std::out_of_range{"far"}; })),
                 std::out_of_range);
    const auto coded =
        co_await weft::as_result(from_sender(stdexec::just_error(std::make_error_code(std::errc::broken_pipe))));
    EXPECT_EQ(coded.error(), std::errc::broken_pipe);
    bool caught = false;
    try {
      co_await from_sender(stdexec::just_error(42));
    } catch (int number) {
      caught = number == 42;
    }
    EXPECT_TRUE(caught);
  };
  sync_wait(body());
}

TEST(from_sender, a_value_whose_move_throws_is_the_failure) {
  struct sharp {
    sharp() = default;
    sharp(sharp&& other) : moves{other.moves + 1} {
      if (moves == limit) throw std::runtime_error{"moved"};
    }
    int moves = 0, limit = 0;
  };
  // Wherever on its way it throws, the task gets the exception, and nothing is terminated.
  for (int limit = 1; limit != 6; ++limit) {
    const auto body = [&]() -> task<bool> {
      auto makes = stdexec::just() | stdexec::then([limit] {
                     sharp made;
                     made.limit = limit;
                     return made;
                   });
      co_return (co_await weft::as_result(from_sender(std::move(makes)))).has_value();
    };
    static_cast<void>(sync_wait(body()));
  }
}

TEST(from_sender, a_stopped_sender_stops_the_task) {
  bool went_on = false;
  const auto body = [&]() -> task<> {
    co_await from_sender(stdexec::just_stopped());
    went_on = true;
  };
  EXPECT_THROW(sync_wait(body()), weft::stopped);
  EXPECT_FALSE(went_on);
}

// A sender that completes when it is told to stop, and not before.
struct waits_for_stop {
  using sender_concept = stdexec::sender_t;
  using completion_signatures = stdexec::completion_signatures<stdexec::set_value_t(int), stdexec::set_stopped_t()>;

  template <class Receiver>
  struct operation {
    using operation_state_concept = stdexec::operation_state_t;
    struct ends {
      operation* of;
      void operator()() const noexcept {
        if (of->gives_a_value)
          stdexec::set_value(std::move(of->receiver), 7);
        else
          stdexec::set_stopped(std::move(of->receiver));
      }
    };
    using token = stdexec::stop_token_of_t<stdexec::env_of_t<Receiver>>;

    operation(Receiver r, bool value, std::atomic<bool>* begun)
        : receiver(std::move(r)), gives_a_value{value}, has_begun{begun} {}
    operation(const operation&) = delete;
    void start() & noexcept {
      std::atomic<bool>* const tells = has_begun;
      on_stop.emplace(stdexec::get_stop_token(stdexec::get_env(receiver)), ends{this});
      *tells = true;
    }

    Receiver receiver;
    bool gives_a_value;
    std::atomic<bool>* has_begun;
    std::optional<stdexec::stop_callback_for_t<token, ends>> on_stop;
  };
  template <class Receiver>
  operation<Receiver> connect(Receiver receiver) const {
    return {std::move(receiver), gives_a_value, begun};
  }

  bool gives_a_value;
  std::atomic<bool>* begun;
};

TEST(from_sender, a_stop_reaches_the_sender) {
  for (const bool gives_a_value : {false, true})
    for (int i = 0; i != test::rounds(100); ++i) {
      weft::stop_source stop;
      std::atomic<bool> begun{false};
      std::thread stops{[&] {
        if (i % 2 == 0) test::until([&] { return begun.load(); });
        stop.request_stop();
      }};
      weft::result<int> got;
      bool ended = false;
      const auto body = [&]() -> task<int> {
        got = co_await weft::as_result(from_sender(waits_for_stop{gives_a_value, &begun}));
        ended = true;
        co_return 0;
      };
      try {
        sync_wait(body(), stop.token());
      } catch (weft::stopped) {
      }
      stops.join();
      if (ended && got.has_value()) {
        EXPECT_EQ(*got, 7);
        EXPECT_TRUE(gives_a_value);
      }
    }
}

TEST(from_sender, a_task_that_was_stopped_before_starts_no_sender) {
  weft::stop_source stop;
  stop.request_stop();
  std::atomic<bool> begun{false};
  const auto body = [&]() -> task<> { co_await from_sender(waits_for_stop{false, &begun}); };
  EXPECT_THROW(sync_wait(body(), stop.token()), weft::stopped);
  EXPECT_FALSE(begun);
}

TEST(from_sender, resumes_on_the_tasks_own_executor) {
  weft::pool workers{{.threads = 2}}, others{{.threads = 1}};
  const auto body = [&]() -> task<> {
    std::thread::id there;
    co_await from_sender(stdexec::schedule(as_scheduler(others)) |
                         stdexec::then([&] { there = std::this_thread::get_id(); }));
    EXPECT_NE(there, std::this_thread::get_id());
    EXPECT_EQ(weft::current_env().executor, &workers);
    // The sender sees where the task runs.
    const auto scheduler = co_await from_sender(stdexec::read_env(stdexec::get_scheduler));
    EXPECT_EQ(scheduler, as_scheduler(workers));
  };
  workers.run(body());
}

TEST(from_sender, many_at_once) {
  weft::pool workers{{.threads = 3}};
  std::atomic<int> sum{0};
  const auto body = [&](weft::scope& all) -> task<> {
    for (int i = 0; i != test::rounds(2000); ++i)
      all.fork([&, i]() -> task<> {
        sum += co_await from_sender(stdexec::schedule(as_scheduler(workers)) | stdexec::then([i] { return i % 10; }));
      });
    co_return;
  };
  workers.run(weft::with_scope(body));
  EXPECT_EQ(sum, test::rounds(2000) / 10 * 45);
}

// ---- a task as a sender ---------------------------------------------------------------------------------------------------

task<int> answer(int n) {
  co_await weft::yield();
  co_return n;
}

TEST(as_sender, completes_with_what_the_task_ends_with) {
  auto [n] = stdexec::sync_wait(as_sender(answer(42)) | stdexec::then([](int n) { return n + 1; })).value();
  EXPECT_EQ(n, 43);
  const auto nothing = []() -> task<> { co_return; };
  EXPECT_TRUE(stdexec::sync_wait(as_sender(nothing())).has_value());
  const auto fails = []() -> task<> {
    throw std::out_of_range{"far"};
    co_return;
  };
  EXPECT_THROW(stdexec::sync_wait(as_sender(fails())), std::out_of_range);
  const auto stops = []() -> task<> {
    co_await weft::from_callback([](weft::callback<> done) { done.set_stopped(); });
  };
  EXPECT_FALSE(stdexec::sync_wait(as_sender(stops())).has_value());
  int there = 5;
  const auto refers = [&]() -> task<int&> { co_return there; };
  stdexec::sync_wait(as_sender(refers()) | stdexec::then([&](int& one) { EXPECT_EQ(&one, &there); }));
}

TEST(as_sender, runs_on_a_pool_among_others) {
  weft::pool workers{{.threads = 2}};
  auto all = stdexec::when_all(as_sender(workers, answer(1)), as_sender(workers, answer(2)),
                               stdexec::schedule(as_scheduler(workers)) | stdexec::then([] { return 3; }));
  auto [a, b, c] = stdexec::sync_wait(std::move(all)).value();
  EXPECT_EQ(a + b + c, 6);
}

// One of several fails: when_all stops the others, and the task hears of it.
TEST(as_sender, a_stop_of_the_receiver_stops_the_task) {
  weft::pool workers{{.threads = 2}};
  for (int i = 0; i != test::rounds(200); ++i) {
    std::atomic<bool> waits{false}, went_on{false};
    weft::event never;
    const auto sleeps = [&]() -> task<> {
      waits = true;
      co_await never.wait();
      went_on = true;
    };
    const auto fails = [&]() -> task<> {
      if (i % 2 == 0)
        while (!waits) co_await weft::yield();
      throw std::runtime_error{"one of them"};
    };
    EXPECT_THROW(stdexec::sync_wait(stdexec::when_all(as_sender(workers, sleeps()), as_sender(workers, fails()))),
                 std::runtime_error);
    EXPECT_FALSE(went_on);
  }
}

TEST(as_sender, one_that_is_never_connected_destroys_its_task) {
  const auto owned = std::make_shared<int>(1);
  const auto holds = [](std::shared_ptr<int>) -> task<> { co_return; };
  {
    const auto never = as_sender(holds(owned));
    EXPECT_EQ(owned.use_count(), 2);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(as_sender, there_and_back) {
  weft::pool workers{{.threads = 2}};
  const auto body = [&]() -> task<int> { co_return co_await from_sender(as_sender(workers, answer(9))); };
  EXPECT_EQ(workers.run(body()), 9);
}

// ---- an executor as a scheduler ---------------------------------------------------------------------------------------------

TEST(as_scheduler, is_one) {
  static_assert(stdexec::scheduler<weft::executor_scheduler>);
  weft::pool workers{{.threads = 2}}, others{{.threads = 1}};
  EXPECT_EQ(as_scheduler(workers), as_scheduler(workers));
  EXPECT_NE(as_scheduler(workers), as_scheduler(others));
  EXPECT_EQ(stdexec::get_forward_progress_guarantee(as_scheduler(workers)),
            stdexec::forward_progress_guarantee::parallel);
  const auto main = std::this_thread::get_id();
  auto on_pool = stdexec::starts_on(as_scheduler(workers),
                                    stdexec::just() | stdexec::then([] { return std::this_thread::get_id(); }));
  auto [id] = stdexec::sync_wait(std::move(on_pool)).value();
  EXPECT_NE(id, main);
}

struct notes_outcome {
  using receiver_concept = stdexec::receiver_t;
  std::string* outcome;
  stdexec::inplace_stop_source* stop;
  void set_value() noexcept { *outcome = "value"; }
  void set_stopped() noexcept { *outcome = "stopped"; }
  auto get_env() const noexcept { return stdexec::prop{stdexec::get_stop_token, stop->get_token()}; }
};

TEST(as_scheduler, what_is_stopped_before_it_begins_completes_stopped) {
  weft::manual_executor later;
  for (const bool stops : {false, true}) {
    std::string outcome;
    stdexec::inplace_stop_source stop;
    auto operation = stdexec::connect(stdexec::schedule(as_scheduler(later)), notes_outcome{&outcome, &stop});
    stdexec::start(operation);
    EXPECT_EQ(outcome, "");
    if (stops) stop.request_stop();
    later.run_all();
    EXPECT_EQ(outcome, stops ? "stopped" : "value");
  }
}

}  // namespace
