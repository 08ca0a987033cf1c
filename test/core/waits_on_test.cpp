// What each wait tells of itself: what it is for, where that is, and who has it.
#include <weft/observe.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/shared_task.hpp>
#include <weft/sync.hpp>

#include "support/debug_note.hpp"
#include "support/weft_test.hpp"

namespace {

using weft::scope;
using weft::task;
using weft::wait_subject;
using weft::with_scope;
using weft::detail::root;
using weft::detail::sleeper;
using subjects = std::vector<wait_subject>;

// A task that has been started, and waits; it is stopped in the end, if it has not ended by then.
class waiting {
 public:
  explicit waiting(std::function<task<>()> wait) : wait_{std::move(wait)} {
    start(run(), [this](weft::result<void>) { self_ = nullptr; });
  }
  waiting(const waiting&) = delete;
  ~waiting() {
    if (self_ != nullptr) self_->request_stop();
    EXPECT_TRUE(ended());
  }

  const void* id() const { return static_cast<const sleeper*>(self_); }
  bool ended() const { return self_ == nullptr; }
  subjects on() const {
    subjects told = waits_on(weft::detail::id_of(*self_));
    if (told.size() == 1 && std::string_view{told[0].what} != "select") {
      EXPECT_EQ(test::seen_from_outside(id()), told[0]) << "by what the library's notes say";
    }
    return told;
  }

 private:
  task<> run() {
    self_ = weft::detail::current_root();
    co_await wait_();
  }

  std::function<task<>()> wait_;
  root* self_ = nullptr;
};

TEST(waits_on, a_mutex_that_somebody_holds) {
  weft::mutex m;
  weft::event over;
  const auto hold = [&]() -> task<> {
    const auto held = co_await m.lock();
    co_await over.wait();
  };
  std::optional<waiting> first{hold};
  waiting second{hold}, third{hold};
  EXPECT_EQ(first->on(), (subjects{{"event", &over, nullptr}}));
  EXPECT_EQ(second.on(), (subjects{{"mutex", &m, first->id()}}));
  EXPECT_EQ(third.on(), (subjects{{"mutex", &m, first->id()}}));
  first.reset();  // it is stopped, and the mutex handed on
  EXPECT_EQ(second.on(), (subjects{{"event", &over, nullptr}}));
  EXPECT_EQ(third.on(), (subjects{{"mutex", &m, second.id()}}));
  over.set();
  EXPECT_TRUE(second.ended() && third.ended());
  EXPECT_FALSE(m.is_locked());

  const auto held = m.try_lock();
  waiting fourth{hold};
  EXPECT_EQ(fourth.on(), (subjects{{"mutex", &m, nullptr}})) << "who took it by try_lock() is not known";
}

TEST(waits_on, a_mutex_of_guarded_and_of_once) {
  weft::guarded<int> number{1};
  weft::once once;
  weft::event over;
  const auto use = [&]() -> task<> {
    const auto held = co_await number.lock();
    co_await over.wait();
  };
  auto wait = [&] { return over.wait(); };
  const auto call = [&]() -> task<> { co_await once.call(wait); };
  waiting uses{use}, uses_too{use}, calls{call}, calls_too{call};
  EXPECT_EQ(uses_too.on(), (subjects{{"mutex", &number, uses.id()}}));
  EXPECT_EQ(calls_too.on(), (subjects{{"once", &once, calls.id()}}));
  over.set();
}

TEST(waits_on, a_shared_mutex_that_somebody_has_alone_or_may_upgrade) {
  weft::shared_mutex m;
  weft::event over, upgrade;
  const auto alone = [&]() -> task<> {
    const auto held = co_await m.lock();
    co_await over.wait();
  };
  const auto shared = [&]() -> task<> {
    const auto held = co_await m.lock_shared();
    co_await over.wait();
  };
  const auto upgrades = [&]() -> task<> {
    auto held = co_await m.lock_upgradable();
    co_await upgrade.wait();
    const auto upgraded = co_await std::move(held).upgrade();
    co_await over.wait();
  };
  {
    std::optional<waiting> shares{shared};
    waiting may_upgrade{upgrades}, writes{alone};
    EXPECT_EQ(writes.on(), (subjects{{"shared_mutex", &m, may_upgrade.id()}}));
    upgrade.set();
    EXPECT_EQ(may_upgrade.on(), (subjects{{"shared_mutex, to upgrade", &m, nullptr}})) << "readers are only counted";
    waiting reads{shared};
    EXPECT_EQ(reads.on(), (subjects{{"shared_mutex", &m, nullptr}}));
    shares.reset();
    EXPECT_EQ(may_upgrade.on(), (subjects{{"event", &over, nullptr}}));
    EXPECT_EQ(reads.on(), (subjects{{"shared_mutex", &m, may_upgrade.id()}}));
    EXPECT_EQ(writes.on(), (subjects{{"shared_mutex", &m, may_upgrade.id()}}));
    over.set();
  }
  over.reset();
  waiting has_it{alone}, wants_it{alone};
  EXPECT_EQ(wants_it.on(), (subjects{{"shared_mutex", &m, has_it.id()}}));
  over.set();
}

TEST(waits_on, what_nobody_alone_brings_about) {
  weft::semaphore permits{0};
  weft::event event;
  weft::auto_event auto_event;
  weft::latch latch{2};
  weft::barrier barrier{2};
  weft::condition_variable changed;
  weft::mutex m;
  waiting a{[&]() -> task<> { static_cast<void>(co_await permits.acquire(2)); }};
  waiting b{[&]() -> task<> { co_await event.wait(); }};
  waiting c{[&]() -> task<> { co_await auto_event.wait(); }};
  waiting d{[&]() -> task<> { co_await latch.arrive_and_wait(); }};
  waiting e{[&]() -> task<> { co_await barrier.arrive_and_wait(); }};
  waiting f{[&]() -> task<> {
    auto held = co_await m.lock();
    co_await changed.wait(held);
  }};
  EXPECT_EQ(a.on(), (subjects{{"semaphore", &permits, nullptr}}));
  EXPECT_EQ(b.on(), (subjects{{"event", &event, nullptr}}));
  EXPECT_EQ(c.on(), (subjects{{"auto_event", &auto_event, nullptr}}));
  EXPECT_EQ(d.on(), (subjects{{"latch", &latch, nullptr}}));
  EXPECT_EQ(e.on(), (subjects{{"barrier", &barrier, nullptr}}));
  EXPECT_EQ(f.on(), (subjects{{"condition_variable", &changed, nullptr}}));
}

TEST(waits_on, channels_and_the_cases_of_a_select) {
  weft::channel<int> in{0}, out{0};
  weft::broadcast<int> news{{.capacity = 1}};
  weft::watch<int> state{0};
  auto hears = news.subscribe();
  auto watches = state.subscribe(), chooses = state.subscribe();
  waiting a{[&]() -> task<> { co_await out.send(1); }};
  waiting b{[&]() -> task<> { co_await in.receive(); }};
  waiting c{[&]() -> task<> { co_await hears.receive(); }};
  waiting d{[&]() -> task<> {
    co_await watches.receive();
    co_await watches.receive();
  }};
  static_cast<void>(weft::sync_wait(chooses.receive()));
  EXPECT_EQ(a.on(), (subjects{{"channel, to send", &out, nullptr}}));
  EXPECT_EQ(b.on(), (subjects{{"channel, to receive", &in, nullptr}}));
  EXPECT_EQ(c.on(), (subjects{{"broadcast, to receive", &news, nullptr}}));
  EXPECT_EQ(d.on(), (subjects{{"watch, to receive", &state, nullptr}}));

  weft::channel<int> more{0};
  waiting e{[&]() -> task<> {
    static_cast<void>(co_await select(weft::on_receive(more), weft::on_send(more, 1), weft::on_receive(chooses),
                                      weft::after(std::chrono::hours{1})));
  }};
  const subjects cases = e.on();
  ASSERT_EQ(cases.size(), 4u);
  const auto is_there = [&](const wait_subject& one) {  // in any order: two of them are in lines of one channel
    return std::find(cases.begin(), cases.end(), one) != cases.end();
  };
  EXPECT_TRUE(is_there({"channel, to receive", &more, nullptr}));
  EXPECT_TRUE(is_there({"channel, to send", &more, nullptr}));
  EXPECT_TRUE(is_there({"watch, to receive", &state, nullptr}));
  EXPECT_EQ(std::count_if(cases.begin(), cases.end(), [](auto& one) { return std::string_view{one.what} == "clock"; }),
            1);
  waiting f{[]() -> task<> { static_cast<void>(co_await select(std::vector<weft::receive_case<int>>{})); }};
  EXPECT_EQ(f.on(), (subjects{{"select", nullptr, nullptr}}));
}

TEST(waits_on, what_runs_beside_it) {
  weft::event over;
  weft::promise<int> later;
  auto future = later.get_future();
  const void* fork_id = nullptr;
  waiting a{[&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      auto fork = s.fork([&]() -> task<> {
        fork_id = static_cast<const sleeper*>(weft::detail::current_root());
        co_await over.wait();
      });
      co_await std::move(fork);
    };
    co_await with_scope(body);
  }};
  EXPECT_EQ(a.on().size(), 1u);
  EXPECT_STREQ(a.on()[0].what, "children of a scope");
  waiting b{[&]() -> task<> { co_await when_all(over.wait(), over.wait()); }};
  ASSERT_EQ(b.on().size(), 1u);
  EXPECT_STREQ(b.on()[0].what, "children of a when_all");
  waiting c{[&]() -> task<> { co_await when_any(over.wait(), over.wait()); }};
  ASSERT_EQ(c.on().size(), 1u);
  EXPECT_STREQ(c.on()[0].what, "children of a when_any or the like");
  waiting d{[&]() -> task<> { co_await std::move(future); }};
  ASSERT_EQ(d.on().size(), 1u);
  EXPECT_STREQ(d.on()[0].what, "future");
  weft::promise<> another;
  auto answer = another.get_future();
  waiting beside{[&]() -> task<> { co_await weft::select(weft::on(answer), weft::on(over.wait())); }};
  ASSERT_EQ(beside.on().size(), 2u);
  EXPECT_STREQ(beside.on()[0].what, "future");
  waiting e{[&]() -> task<> { co_await weft::sleep_for(std::chrono::hours{1}); }};
  ASSERT_EQ(e.on().size(), 1u);
  EXPECT_STREQ(e.on()[0].what, "clock");

  const void* body_id = nullptr;
  subjects body_waits;
  root* body_root = nullptr;
  waiting f{[&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      body_root = weft::detail::current_root();
      body_id = static_cast<const sleeper*>(body_root);
      auto fork = s.fork([&]() -> task<> {
        fork_id = static_cast<const sleeper*>(weft::detail::current_root());
        co_await over.wait();
      });
      co_await std::move(fork);
    };
    co_await with_scope(body);
  }};
  body_waits = waits_on(weft::detail::id_of(*body_root));
  EXPECT_EQ(test::seen_from_outside(body_id), body_waits.at(0));
  EXPECT_EQ(body_waits, (subjects{{"fork", fork_id, fork_id}}));

  auto work = [&]() -> task<> { co_await over.wait(); };
  weft::shared_task<> shared{work()};
  waiting g{[&]() -> task<> { co_await shared; }};
  ASSERT_EQ(g.on().size(), 1u);
  EXPECT_STREQ(g.on()[0].what, "shared_task");
  EXPECT_NE(g.on()[0].held_by, nullptr);
  EXPECT_EQ(g.on()[0].held_by, g.on()[0].at);
  over.set();
}

TEST(waits_on, of_a_fiber_and_of_one_that_does_not_wait) {
  weft::mutex m;
  weft::event over;
  root* fiber = nullptr;
  const auto hold = [&]() -> task<> {
    const auto held = co_await m.lock();
    EXPECT_EQ(waits_on(weft::detail::id_of(*weft::detail::current_root())), subjects{}) << "it runs";
    co_await over.wait();
  };
  waiting holds{hold};
  waiting waits{[&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      s.go([&] {
        fiber = weft::detail::current_root();
        const auto held = weft::await(m.lock());
      });
      co_return;
    };
    co_await with_scope(body);
  }};
  EXPECT_EQ(waits_on(weft::detail::id_of(*fiber)), (subjects{{"mutex", &m, holds.id()}}));
  over.set();
}

TEST(waits_on, is_printed) {
  const auto text = [](const wait_subject& what) {
    std::ostringstream out;
    out << what;
    return std::move(out).str();
  };
  const auto* at = reinterpret_cast<const void*>(0x1230);
  EXPECT_EQ(text({"mutex", at, reinterpret_cast<const void*>(0x4560)}), "mutex 0x1230 held by root 0x4560");
  EXPECT_EQ(text({"semaphore", at, nullptr}), "semaphore 0x1230");
  EXPECT_EQ(text({"callback", nullptr, nullptr}), "callback");
}

// Under the thread sanitizer: who asks, who wakes and who stops meet.
TEST(waits_on, agrees_with_whoever_wakes_meanwhile) {
  weft::mutex m;
  weft::channel<int> c{0};
  std::atomic<root*> self{nullptr};
  std::atomic<bool> over{false};
  const int rounds = test::rounds(300);
  std::thread waits{[&] {
    auto all = [&]() -> task<> {
      self = weft::detail::current_root();
      for (int i = 0; i != rounds; ++i) {
        const auto held = co_await m.lock();
        static_cast<void>(co_await select(weft::on_receive(c), weft::on_receive(c)));
      }
      self = nullptr;
      c.close();
      while (!over) co_await weft::yield();  // who asks holds what keeps it alive
    };
    weft::sync_wait(all());
  }};
  std::thread wakes{[&] {
    auto all = [&]() -> task<> {
      while (!c.is_closed()) {
        {
          const auto held = m.try_lock();
          std::this_thread::yield();
        }
        static_cast<void>(co_await select(weft::on_send(c, 1), weft::after(std::chrono::microseconds{200})));
      }
    };
    auto how = weft::sync_wait(weft::as_result(all()));
    static_cast<void>(how);  // the last send may find it closed
  }};
  while (self.load() == nullptr && !c.is_closed()) std::this_thread::yield();  // it may be over before this looks
  while (root* const one = self.load())
    for (const wait_subject& what : waits_on(weft::detail::id_of(*one))) {
      const std::string_view name = what.what;
      EXPECT_TRUE(name == "mutex" || name == "channel, to receive") << name;
    }
  over = true;
  waits.join();
  wakes.join();
}

}  // namespace
