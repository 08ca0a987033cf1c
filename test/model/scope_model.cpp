// The ends of forks and of their scope: against a view, against a handle that goes, against a stop. Forks go on where they
// are woken, by an executor that runs at once, and so end on another thread than their scope.
// Mutates: include/weft/detail/scope/scope_core.hpp src/scope/fork_end.hpp
#include <optional>
#include <weft/future.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>

#include "scope/fork_on.cpp"
#include "scope/scope.cpp"
#include "scope/scope_end.cpp"
#include "scope/scope_start.cpp"
#include "scope/scope_stop.cpp"
#include "sync/event.cpp"
#include "sync/gate.cpp"
#include "sync/once.cpp"

#include "world.hpp"
//
#include <weft/detail/core/walk.hpp>

// No model walks.
const weft::detail::wait_children weft::detail::scope_core::walk{};

// What a scope has besides: no clock, and nobody asks why.
namespace weft {
clock& real_clock() noexcept { std::abort(); }
void overdue_handler::print(void*, const overdue_scope&) noexcept {}
namespace detail {
bool is_per_worker(const std::pmr::memory_resource*) noexcept { return false; }
const void* thrown_in(const std::exception_ptr&) noexcept { return nullptr; }
ambient_memory::ambient_memory(frame_source* source) noexcept : outer_{source} {}
ambient_memory::~ambient_memory() { outer_ = nullptr; }
frame_source::frame_source(std::pmr::memory_resource* resource, bool) noexcept
    : resource_{resource}, keeps_below_{0}, outer_{nullptr}, trace_{nullptr} {}
frame_source::~frame_source() {}
bool frame_source::trim() noexcept { return false; }
void scope_core::alarm::set(clock::time_point) noexcept {}
void scope_core::alarm::ring(timer& self) noexcept {
  auto& mine = static_cast<alarm&>(self);
  mine.rung_(mine.of_);
}
void scope_core::deadline_passed(scope_core&) noexcept {}
void scope_core::is_overdue(scope_core&) noexcept {}
void scope_core::look_at_clock(root&) noexcept {}
}  // namespace detail
}  // namespace weft

namespace {

using model::run;
using model::watched;
using weft::fork;
using weft::fork_view;
using weft::future;
using weft::promise;
using weft::scope;
using weft::stop_source;
using weft::task;

// A scope on the first thread, and a value for its fork from the second.
template <class Scenario, unsigned threads>
struct scope_and_value : rl::test_suite<Scenario, threads>, model::world {
  weft::inline_executor where_woken;
  std::optional<promise<watched>> set;
  std::optional<future<watched>> outcome;
  model::plain<int> forks_ended = 0;
  int got = 0;
  bool ended = false;

  void before() {
    this->begin();
    set.emplace();
    outcome.emplace(set->get_future());
  }
  void after() { outcome.reset(); }
  void set_value() {
    set->set_value(watched{7});
    set.reset();
  }

  task<watched> take() {
    watched value = co_await *std::move(outcome);
    forks_ended = forks_ended + 1;
    co_return std::move(value);
  }
};

// The fork ends while the body looks at it through a view; the handle is gone by then.
struct view_and_end : scope_and_value<view_and_end, 2> {
  void thread(unsigned which) {
    if (which == 1) return set_value();
    auto body = [this](scope& s) -> task<> {
      const fork_view<watched> seen = s.fork_on(where_woken, take()).view();
      got = (co_await seen).get();
    };
    RL_ASSERT(run(weft::with_scope(body)));
    RL_ASSERT(got == 7 && forks_ended == 1);
  }
};

// The fork ends while the body asks whether it has, and then looks at the value without waiting.
struct poll_and_end : scope_and_value<poll_and_end, 2> {
  void thread(unsigned which) {
    if (which == 1) return set_value();
    auto body = [this](scope& s) -> task<> {
      fork<watched> one = s.fork_on(where_woken, take());
      if (one.done()) got = (co_await one).get();
    };
    RL_ASSERT(run(weft::with_scope(body)));
    RL_ASSERT((got == 0 || got == 7) && forks_ended == 1);
  }
};

// The fork ends while its value is awaited to be moved out.
struct take_and_end : scope_and_value<take_and_end, 2> {
  void thread(unsigned which) {
    if (which == 1) return set_value();
    auto body = [this](scope& s) -> task<> {
      fork<watched> one = s.fork_on(where_woken, take());
      const watched value = co_await std::move(one);
      got = value.get();
    };
    RL_ASSERT(run(weft::with_scope(body)));
    RL_ASSERT(got == 7 && forks_ended == 1);
  }
};

// The last fork ends while the scope does: the body has returned, and the handle goes.
struct end_and_end : scope_and_value<end_and_end, 2> {
  void thread(unsigned which) {
    if (which == 1) return set_value();
    auto body = [this](scope& s) -> task<> {
      s.fork_on(where_woken, take());
      co_return;
    };
    RL_ASSERT(run(weft::with_scope(body)));
    RL_ASSERT(forks_ended == 1);
  }
};

// The scope is stopped while its fork ends, and while the body waits for it.
struct stop_and_end : scope_and_value<stop_and_end, 3> {
  stop_source stop;

  void thread(unsigned which) {
    if (which == 1) return set_value();
    if (which == 2) return static_cast<void>(stop.request_stop());
    auto body = [this](scope& s) -> task<> {
      fork<watched> one = s.fork_on(where_woken, take());
      got = (co_await one).get();
    };
    ended = run(weft::with_scope(body), stop.token());
    RL_ASSERT(got == (ended ? 7 : 0));
    RL_ASSERT(forks_ended <= 1 && (!ended || forks_ended == 1));
  }
};

// The scope is stopped from outside while its fork ends, and the body has returned: it has its value if the fork has one.
struct stop_without_body : scope_and_value<stop_without_body, 3> {
  stop_source stop;

  void thread(unsigned which) {
    if (which == 1) return set_value();
    if (which == 2) return static_cast<void>(stop.request_stop());
    auto body = [this](scope& s) -> task<> {
      s.fork_on(where_woken, take());
      co_return;
    };
    ended = run(weft::with_scope(body), stop.token());
    RL_ASSERT(ended == (forks_ended == 1));
  }
};

// The same, while the scope stops itself: where the fork was stopped, either stop may have been there first, but one that was
// over from outside before the scope began to stop itself is never masked.
struct stops_from_both_sides : scope_and_value<stops_from_both_sides, 3> {
  stop_source stop;
  model::plain<bool> told = false;

  void thread(unsigned which) {
    if (which == 1) return set_value();
    if (which == 2) return static_cast<void>(stop.request_stop());
    told = false;
    auto body = [this](scope& s) -> task<> {
      s.fork_on(where_woken, take());
      told = stop.stop_requested();
      s.request_stop();
      co_return;
    };
    ended = run(weft::with_scope({.stop = stop.token()}, body));
    RL_ASSERT(forks_ended == 0 || ended);
    RL_ASSERT(forks_ended == 1 || !told || !ended);
  }
};

// A fork that is left for others to take: the second thread takes it, or the body that awaits it finds it there.
struct steal_and_await : scope_and_value<steal_and_await, 2> {
  weft::detail::pool_worker seat;

  void before() {
    this->begin();
    weft::detail::workers[0].of_pool = &seat;
  }
  void after() {}
  task<watched> give() {
    forks_ended = forks_ended + 1;
    co_return watched{7};
  }
  void thread(unsigned which) {
    if (which == 1) {
      if (weft::job* const taken = seat.forks.steal()) taken->run(*taken);
      return;
    }
    auto body = [this](scope& s) -> task<> {
      fork<watched> one = s.fork(give());
      got = (co_await std::move(one)).get();
    };
    RL_ASSERT(run(weft::with_scope(body)));
    RL_ASSERT(got == 7 && forks_ended == 1);
  }
};

// The same, while a third one stops the scope: the fork begins all the same, and the value is there or the stop.
struct steal_and_stop : scope_and_value<steal_and_stop, 3> {
  stop_source stop;
  weft::detail::pool_worker seat;

  void before() {
    this->begin();
    weft::detail::workers[0].of_pool = &seat;
  }
  void after() {}
  task<watched> give() {
    forks_ended = forks_ended + 1;
    co_return watched{7};
  }
  void thread(unsigned which) {
    if (which == 2) return static_cast<void>(stop.request_stop());
    if (which == 1) {
      if (weft::job* const taken = seat.forks.steal()) taken->run(*taken);
      return;
    }
    auto body = [this](scope& s) -> task<> {
      fork<watched> one = s.fork(give());
      got = (co_await std::move(one)).get();
    };
    ended = run(weft::with_scope(body), stop.token());
    RL_ASSERT(got == (ended ? 7 : 0) && forks_ended == 1);
  }
};

// The fork alone is stopped by its handle, which then goes, while it ends.
struct stop_fork_and_end : scope_and_value<stop_fork_and_end, 2> {
  void thread(unsigned which) {
    if (which == 1) return set_value();
    auto body = [this](scope& s) -> task<> {
      fork<watched> one = s.fork_on(where_woken, take());
      one.request_stop();
      co_return;
    };
    RL_ASSERT(run(weft::with_scope(body)));
    RL_ASSERT(forks_ended <= 1);
  }
};

// A root that nobody has an executor for: it goes on wherever it is woken.
class free_root final : public weft::detail::root {
 public:
  free_root() noexcept : root{&own_env_, nullptr, has_ended} {}

  void start(task<>&& work) {
    frame_ = weft::detail::task_access::release(std::move(work));
    adopt(frame_, frame_.promise());
    run_here();
  }
  int ended() const { return ended_; }

 private:
  static void has_ended(root& self, bool stopped) noexcept {
    auto& mine = static_cast<free_root&>(self);
    mine.ended_ = mine.ended_ + 1;
    if (!stopped) mine.frame_.destroy();
    weft::detail::leave_root();
  }

  weft::env own_env_;
  std::coroutine_handle<weft::detail::task_promise<void>> frame_;
  model::plain<int> ended_ = 0;
};

// Forks that wait in one line are told together, and unwound by the stopper, while what they wait for is there. One of them
// is looked at by a fork that waits for it.
struct stop_and_wake : rl::test_suite<stop_and_wake, 2>, model::world {
  std::optional<free_root> all;
  std::optional<weft::event> door;
  stop_source stop;
  model::plain<int> passed[2] = {0, 0}, gone[2] = {0, 0};

  struct leaves {
    model::plain<int>& gone;
    ~leaves() { gone = gone + 1; }
  };

  void before() {
    begin();
    for (int i = 0; i != 2; ++i) passed[i] = gone[i] = 0;
    all.emplace();
    door.emplace();
  }
  task<> wait(int which) {
    const leaves here{gone[which]};
    co_await door->wait();
    passed[which] = passed[which] + 1;
  }
  task<> body(scope& s) {
    const fork_view<> first = s.fork(wait(0)).view();
    s.fork(wait(1));
    co_await first;
  }
  task<> whole() {
    auto inside = [this](scope& s) { return body(s); };
    co_await weft::with_scope({.stop = stop.token()}, inside);
  }
  void thread(unsigned which) {
    if (which == 1) return static_cast<void>(stop.request_stop());
    all->start(whole());
    door->set();
  }
  void after() {
    RL_ASSERT(all->ended() == 1);
    for (int i = 0; i != 2; ++i) RL_ASSERT(passed[i] <= gone[i] && gone[i] <= 1);
    door.reset();
    all.reset();
  }
};

}  // namespace

int main() {
  model::check<view_and_end>("view and end", 1);
  model::check<poll_and_end>("poll and end", 1, 100'000, 2);
  model::check_some<take_and_end>("take and end", 20'000);
  model::check_some<end_and_end>("end and end", 20'000);
  model::check_some<stop_fork_and_end>("stop a fork and end", 20'000);
  model::check<steal_and_await>("steal and await", 2, 20'000);
  model::check_some<steal_and_stop>("steal and stop", 20'000);
  model::check_some<stop_and_end>("stop and end", 20'000);
  model::check_some<stop_without_body>("stop without the body", 20'000);
  model::check_some<stops_from_both_sides>("stops from both sides", 20'000);
  model::check_some<stop_and_wake>("stop and wake", 20'000);
}
