// Who was let through may destroy what let it through, though the call that did so has not returned: in that call, where the
// waiter has no executor and goes on in it; and on another thread, meanwhile.
#include <weft/test.hpp>
#include <weft/weft.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task;

/// `wait(primitive)` is awaited by a task that then destroys the primitive; `let(primitive)` ends that wait.
template <class Primitive, class Wait, class Let>
void let_through_and_destroy(Wait wait, Let let) {
  weft::pool pool{{.threads = 2}};
  for (int i = 0; i != test::rounds(1000) + 1; ++i) {
    auto owned = std::make_unique<Primitive>();
    Primitive& primitive = *owned;
    std::atomic<bool> begun = false, over = false;
    auto body = [&]() -> task<> {
      auto work = wait(primitive);
      begun = true;
      co_await std::move(work);
      owned.reset();
      over = true;
    };
    if (i == 0)
      weft::start(body(), [](const auto&) {});  // goes on in let()
    else
      weft::start(pool.executor(), body(), [](const auto&) {});
    test::until([&] { return begun.load(); });
    let(primitive);
    test::until([&] { return over.load(); });
  }
}

TEST(let_through, by_an_event) {
  let_through_and_destroy<weft::event>([](weft::event& e) -> task<> { co_await e.wait(); },
                                       [](weft::event& e) { e.set(); });
}
TEST(let_through, by_an_auto_event) {
  let_through_and_destroy<weft::auto_event>([](weft::auto_event& e) -> task<> { co_await e.wait(); },
                                            [](weft::auto_event& e) { e.set(); });
}

struct latch_of_two : weft::latch {
  latch_of_two() : weft::latch{2} {}
};
TEST(let_through, by_a_latch) {
  let_through_and_destroy<latch_of_two>([](weft::latch& l) -> task<> { co_await l.arrive_and_wait(); },
                                        [](weft::latch& l) { l.count_down(); });
}

struct barrier_of_two : weft::barrier {
  barrier_of_two() : weft::barrier{2} {}
};
TEST(let_through, by_a_barrier) {
  let_through_and_destroy<barrier_of_two>([](weft::barrier& b) -> task<> { co_await b.arrive_and_wait(); },
                                          [](weft::barrier& b) { b.drop(); });
}

struct empty_semaphore : weft::semaphore {
  empty_semaphore() : weft::semaphore{0} {}
};
TEST(let_through, by_a_semaphore) {
  let_through_and_destroy<empty_semaphore>(
      [](weft::semaphore& s) -> task<> {
        auto permit = co_await s.acquire();
        permit.keep();
      },
      [](weft::semaphore& s) { s.release(); });
}

struct held_mutex {
  weft::mutex mutex;
  std::optional<weft::mutex::guard> held{mutex.try_lock()};
};
TEST(let_through, by_a_mutex) {
  let_through_and_destroy<held_mutex>([](held_mutex& m) -> task<> { auto mine = co_await m.mutex.lock(); },
                                      [](held_mutex& m) {
                                        auto held = std::move(*m.held);
                                        held.unlock();
                                      });
}

struct held_shared_mutex {
  weft::shared_mutex mutex;
  std::optional<decltype(weft::sync_wait(mutex.lock()))> held{weft::sync_wait(mutex.lock())};
};
TEST(let_through, by_a_shared_mutex) {
  const auto let = [](held_shared_mutex& m) {
    auto held = std::move(*m.held);
    held.unlock();
  };
  let_through_and_destroy<held_shared_mutex>(
      [](held_shared_mutex& m) -> task<> { auto mine = co_await m.mutex.lock(); }, let);
  let_through_and_destroy<held_shared_mutex>(
      [](held_shared_mutex& m) -> task<> { auto mine = co_await m.mutex.lock_shared(); }, let);
}

struct condition {
  weft::mutex mutex;
  weft::condition_variable changed;
  std::atomic<bool> waits = false;
};
TEST(let_through, by_a_condition_variable) {
  const auto wait = [](condition& c) -> task<> {
    auto held = co_await c.mutex.lock();
    c.waits = true;
    co_await c.changed.wait(held);
  };
  const auto when_it_waits = [](condition& c) {
    test::until([&] { return c.waits.load(); });
    test::until([&] { return static_cast<bool>(c.mutex.try_lock()); });
  };
  let_through_and_destroy<condition>(wait, [=](condition& c) {
    when_it_waits(c);
    c.changed.notify_one();
  });
  let_through_and_destroy<condition>(wait, [=](condition& c) {
    when_it_waits(c);
    c.changed.notify_all();
  });
}

struct called_once {
  weft::once once;
  weft::event begun, may_end;
};
TEST(let_through, by_once) {
  let_through_and_destroy<called_once>(
      [](called_once& o) -> task<> {
        auto work = [&]() -> task<> {
          o.begun.set();
          co_await o.may_end.wait();
        };
        co_await o.once.call(work);
      },
      [](called_once& o) {
        weft::sync_wait(o.begun.wait());
        o.may_end.set();
      });
}

struct rendezvous : weft::channel<int> {
  rendezvous() : weft::channel<int>{0} {}
};
TEST(let_through, by_a_channel) {
  const auto receive = [](rendezvous& c) -> task<> { co_await c.receive(); };
  let_through_and_destroy<rendezvous>(receive, [](rendezvous& c) { test::until([&] { return c.try_send(1); }); });
  let_through_and_destroy<rendezvous>(receive, [](rendezvous& c) { c.close(); });
  let_through_and_destroy<rendezvous>([](rendezvous& c) -> task<> { co_await c.send(1); },
                                      [](rendezvous& c) { test::until([&] { return c.try_receive().has_value(); }); });
}

struct subscribed {
  weft::broadcast<int> channel;
  decltype(channel.subscribe()) receiver = channel.subscribe();
};
TEST(let_through, by_a_broadcast) {
  const auto receive = [](subscribed& b) -> task<> { co_await b.receiver.receive(); };
  let_through_and_destroy<subscribed>(receive, [](subscribed& b) { EXPECT_TRUE(b.channel.try_send(1)); });
  let_through_and_destroy<subscribed>(receive, [](subscribed& b) { b.channel.close(); });
}

TEST(let_through, by_a_promise) {
  let_through_and_destroy<weft::promise<int>>(
      [](weft::promise<int>& p) {
        auto take = [](weft::future<int> from) -> task<> { co_await std::move(from); };
        return take(p.get_future());
      },
      [](weft::promise<int>& p) { p.set_value(1); });
}

struct shared_work {
  weft::event may_end;
  weft::shared_task<int> work = run(may_end);
  static weft::shared_task<int> run(weft::event& may_end) {
    co_await may_end.wait();
    co_return 1;
  }
};
TEST(let_through, by_a_shared_task) {
  let_through_and_destroy<shared_work>([](shared_work& s) -> task<> { co_await s.work; },
                                       [](shared_work& s) { s.may_end.set(); });
}

// The scope is in the frame that goes on behind it.
struct stopped_scope {
  std::atomic<weft::scope*> scope = nullptr;
};
TEST(let_through, by_the_stop_of_a_scope) {
  let_through_and_destroy<stopped_scope>(
      [](stopped_scope& s) -> task<> {
        auto sleeps = []() -> task<> { co_await weft::sleep_for(1h); };
        auto body = [&](weft::scope& in) -> task<> {
          for (int i = 0; i != 3; ++i) in.fork(sleeps());
          s.scope = &in;
          co_await sleeps();
        };
        EXPECT_TRUE((co_await weft::as_result(weft::with_scope(body))).is_stopped());
      },
      [](stopped_scope& s) {
        test::until([&] { return s.scope.load() != nullptr; });
        s.scope.load()->request_stop();
      });
}

TEST(let_through, by_the_end_of_a_fiber_on_a_stack_of_the_pool_that_goes) {
  let_through_and_destroy<weft::stack_pool>(
      [](weft::stack_pool& stacks) -> task<> {
        auto body = [&](weft::scope& s) -> task<> {
          auto fiber = s.go(weft::stack_options{.pool = &stacks}, [] { weft::this_fiber::yield(); });
          co_await std::move(fiber);
        };
        co_await weft::with_scope(body);
      },
      [](weft::stack_pool&) {});
}

// ---- by what runs them ------------------------------------------------------------------------------------------------

template <class Executor>
void last_job_destroys() {
  const auto ends = [](std::unique_ptr<Executor>& mine) -> task<> {
    mine.reset();
    co_return;
  };
  const auto pumps = [](Executor& mine) -> task<> {
    EXPECT_EQ(mine.run_all(), 1u);
    co_return;
  };
  for (const bool nested : {false, true}) {
    auto owned = std::make_unique<Executor>();
    Executor& executor = *owned;
    if (nested) weft::start(executor, pumps(executor), [](const auto&) {});
    weft::start(executor, ends(owned), [](const auto&) {});
    EXPECT_EQ(executor.run_all(), 1u);
    EXPECT_EQ(owned, nullptr);
  }
}
TEST(let_through, the_last_job_destroys_a_manual_executor) { last_job_destroys<weft::manual_executor>(); }
TEST(let_through, the_last_job_destroys_a_seeded_executor) { last_job_destroys<weft::test::seeded_executor>(); }

TEST(let_through, the_last_timer_destroys_a_virtual_clock) {
  struct alarm : weft::timer {
    explicit alarm(std::unique_ptr<weft::test::virtual_clock>& of) : timer{ring}, clock{of} {}
    static void ring(weft::timer& self) noexcept { static_cast<alarm&>(self).clock.reset(); }
    std::unique_ptr<weft::test::virtual_clock>& clock;
  };
  for (const bool one : {false, true}) {
    auto owned = std::make_unique<weft::test::virtual_clock>();
    weft::test::virtual_clock& clock = *owned;
    alarm ends{owned};
    clock.arm(ends, clock.now() + 5ms);
    if (one)
      EXPECT_TRUE(clock.advance_to_next());
    else
      clock.advance(10ms);
    EXPECT_EQ(owned, nullptr);
  }
}

}  // namespace
