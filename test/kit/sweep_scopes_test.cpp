// Scopes, their policies, and what is inherited, with a stop at each place, and without memory.
#include <weft/executor_set.hpp>
#include <weft/scope.hpp>

#include <memory_resource>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/traced.hpp>
#include <weft/with.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::scope;
using weft::with_scope;

template <class By>
struct forks : counts_values {
  part<By> run() {
    auto body = [this](scope& s) -> task<int> {
      weft::fork<int> a = s.fork(hold(*this, 3));
      weft::fork<counted> b = s.fork(make(*this, 1));
      s.fork(hold(*this, 5));  // awaited by nobody
      auto plain = [](int n) { return n + 1; };
      weft::fork<int> c = s.fork(plain, 1);
      auto later = [](int n) { return nap(2, n); };
      weft::fork<int> d = s.fork(later, 7);
      const counted moved = co_await std::move(b);
      const int kept = co_await a;
      co_return kept + co_await std::move(c) + co_await std::move(d);
    };
    require(co_await with_scope(body) == 10, "a value was lost");
    co_await rest(1);
  }
};
TEST(sweep, scope) { sweep_both<forks>("with_scope, scope::fork, fork"); }

template <class By>
struct forks_here : counts_values {
  part<By> by_another(scope& s) {
    auto keeps = [](counted, int after) -> task<int> { co_return co_await nap(after); };
    weft::fork<int> one = s.fork_here(keeps, value(), 2);
    require(co_await std::move(one) == 1, "a value was lost");
  }
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      weft::fork<int> a = s.fork_here(hold(*this, 3));
      auto plain = [](int n) { return n + 1; };
      weft::fork<int> b = s.fork_here(plain, 1);
      co_await together(by_another(s), by_another(s));
      require(co_await std::move(a) + co_await std::move(b) == 3, "a value was lost");
    };
    co_await with_scope(body);
  }
};
TEST(sweep, fork_here) { sweep_both<forks_here>("scope::fork_here"); }

template <class By>
struct views : counts_values {
  task<int> reads(weft::fork_view<int> of, int after) {
    const counted held = value();
    co_await rest(after);
    co_return co_await of;
  }
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      auto shared = s.fork(hold(*this, 3, 5)).view();
      auto one = s.fork(reads(shared, 1));
      auto two = s.fork(reads(shared, 4));
      require(co_await std::move(one) + co_await std::move(two) == 10, "a value was lost");
      require(co_await shared == 5, "a value was lost");
    };
    co_await with_scope(body);
  }
};
TEST(sweep, fork_view) { sweep_both<views>("fork_view, fork::view"); }

template <class By>
struct elsewhere : counts_values {
  weft::inline_executor there;
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      auto one = s.fork_on(there, hold(*this, 1));
      auto plain = [](int n) { return n; };
      auto two = s.fork_on(there, plain, 3);
      require(co_await std::move(one) + co_await std::move(two) == 4, "a value was lost");
    };
    co_await with_scope(body);
  }
};
TEST(sweep, fork_on) { sweep_both<elsewhere>("scope::fork_on"); }

template <class By>
struct on_threads : counts_values {
  weft::new_thread_executor there;
  task<int> works() {
    const counted held = value();
    co_await weft::yield();
    co_return 1;
  }
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      auto one = s.fork_on(there, works());
      auto two = s.fork_on(there, works());
      co_await rest(1);  // the others may be faster than anybody can wait for them
      require(co_await std::move(one) + co_await std::move(two) == 2, "a value was lost");
    };
    co_await with_scope(body);
  }
};
TEST(sweep, fork_on_threads) { sweep_both<on_threads>("scope::fork_on", {.inline_completion = false}); }

template <class By>
struct rooms : counts_values {
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      for (int i = 0; i != 5; ++i) {
        co_await s.room();
        s.fork(hold(*this, 1 + i % 2));
      }
      s.reclaim();
    };
    co_await with_scope({.max_children = 2}, body);
  }
};
TEST(sweep, room) { sweep_both<rooms>("scope::room, scope_options::max_children"); }

template <class By>
struct takes_room : counts_values {
  part<By> one_more(scope& s, int milliseconds) {
    auto keeps = [](counted, int after) -> task<int> { co_return co_await nap(after); };
    counted given = value();  // goes with the work, also where that never begins
    weft::fork<int> one = co_await s.fork_when_room(keeps, std::move(given), milliseconds);
    require(co_await std::move(one) == 1, "a value was lost");
  }
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      s.fork(hold(*this, 2));
      co_await together(one_more(s, 1), one_more(s, 2), one_more(s, 1));
      weft::fork<int> last = co_await s.fork_when_room(hold(*this, 1));
      require(co_await std::move(last) == 1, "a value was lost");
    };
    co_await with_scope({.max_children = 1}, body);
  }
};
TEST(sweep, fork_when_room) { sweep_both<takes_room>("scope::fork_when_room, scope_options::max_children"); }

template <class By>
struct stops_itself : counts_values {
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      auto late = s.fork(hold(*this, 10));
      auto told = s.fork(hold(*this, 10));
      co_await rest(1);
      told.request_stop();
      co_await rest(1);
      s.request_stop();
      co_await rest(1);
    };
    const auto how = co_await as_result(with_scope(body));
    require(how.is_stopped() || test::lacked_memory(how), "a stop was lost");
    co_await rest(1);
  }
};
TEST(sweep, stop_of_a_scope) { sweep_both<stops_itself>("with_scope"); }

// ---- policies ---------------------------------------------------------------------------------------------------------------

template <class By>
struct fails_fast : counts_values {
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      s.fork(hold(*this, 5));
      s.fork(fail(2));
      s.fork(fail(2, "the second"));
      co_await hold(*this, 4);
    };
    const auto how = co_await as_result(with_scope(body));
    require(how.is_stopped() || how.exception() != nullptr || how.has_value(), "a failure was lost");
    co_await rest(1);
  }
};
TEST(sweep, fail_fast) { sweep_both<fails_fast>("with_scope, fail_fast"); }

template <class By>
struct body_fails : counts_values {
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      s.fork(hold(*this, 5));
      co_await fail(1);
    };
    const auto how = co_await as_result(with_scope(body));
    require(!how.has_value(), "a failure was lost");
    co_await rest(1);
  }
};
TEST(sweep, a_body_that_fails) { sweep_both<body_fails>("with_scope"); }

template <class By>
struct collects : counts_values {
  part<By> run() {
    weft::error_list errors;
    auto body = [this](scope& s) -> task<> {
      s.fork(fail(1));
      s.fork(fail(2));
      s.fork(hold(*this, 3));
      co_await rest(1);
    };
    const auto how = co_await as_result(with_scope({.on_error = weft::collect_all_errors, .errors = &errors}, body));
    require(errors.size() <= 3, "a failure came twice");
    require(!how.has_value() || errors.empty(), "a failure was lost");
    co_await rest(1);
  }
};
TEST(sweep, collect_all_errors) { sweep_both<collects>("with_scope, collect_all_errors, scope_options::errors"); }

template <class By>
struct handles : counts_values {
  int handled = 0;
  part<By> run() {
    auto handler = [this](std::exception_ptr) { ++handled; };
    auto body = [this](scope& s) -> task<> {
      s.fork(fail(1));
      s.fork(fail(2));
      s.fork(hold(*this, 3));
      co_await rest(1);
    };
    co_await with_scope({.on_error = handler}, body);
    co_await rest(1);
  }
};
TEST(sweep, handler) { sweep_both<handles>("with_scope, scope_options::on_error"); }

template <class By>
struct supervises : counts_values {
  int failures = 2;
  part<By> run() {
    auto again = [](std::exception_ptr) { return weft::on_failure::restart; };
    auto work = [this](int) -> task<> {
      const counted held = value();
      co_await rest(1);
      if (failures-- > 0) throw std::runtime_error{"as planned"};
    };
    auto body = [&](scope& s) -> task<> {
      s.fork(work, 1);
      s.fork(hold(*this, 2));
      co_await rest(1);
    };
    const weft::error_policy policy = weft::supervise(again, {.restarts = 5, .within = 1min});
    co_await with_scope({.on_error = policy}, body);
  }
};
TEST(sweep, supervise) { sweep_both<supervises>("with_scope, supervise"); }

// One that runs elsewhere, and is stopped by a token of its own, and by the time.
template <class By>
struct elsewhere_until : counts_values {
  weft::stop_source source;
  weft::inline_executor there;
  part<By> run() {
    auto body = [this](scope& s) -> task<int> {
      s.fork(hold(*this, 4));
      co_return co_await hold(*this, 2);
    };
    const auto now = weft::current_clock().now();
    const auto late = co_await as_result(with_scope({.executor = &there, .deadline = now + 1ms}, body));
    require(late.is_stopped() || test::lacked_memory(late), "a deadline was lost");
    const auto in_time = co_await as_result(with_scope({.executor = &there, .deadline = now + 1min}, body));
    require(in_time.has_value() || in_time.is_stopped() || test::lacked_memory(in_time), "a value was lost");
    auto stops = [this, body](scope& s) -> task<int> {
      const auto told = s.fork(rest(1));
      source.request_stop();
      co_return co_await body(s);
    };
    const auto how = co_await as_result(with_scope({.stop = source.token()}, stops));
    require(how.is_stopped() || test::lacked_memory(how), "a stop was lost");
    co_await rest(1);
  }
};
TEST(sweep, options) {
  sweep_both<elsewhere_until>("with_scope, scope_options::executor, scope_options::stop, scope_options::deadline");
}

// Its fork puts a stop off for longer than it may.
template <class By>
struct overdue : counts_values {
  int reports = 0;
  part<By> run() {
    auto told = [this](const weft::overdue_scope& of) { reports += of.ignoring != 0 ? 1 : 100; };
    auto body = [this](scope& s) -> task<> {
      s.fork(weft::shielded(hold(*this, 5)));
      co_await rest(1);
      s.request_stop();
      co_await rest(1);
    };
    const auto how = co_await as_result(with_scope({.stop_within = 2ms, .on_overdue = told}, body));
    require(how.is_stopped() || test::lacked_memory(how), "a stop was lost");
    co_await rest(1);
  }
  void check() {
    counts_values::check();
    require(reports <= 1, "it was told more than once, or of nobody");
  }
};
TEST(sweep, overdue) { sweep_both<overdue>("with_scope, scope_options::stop_within, scope_options::on_overdue"); }

// ---- what is inherited --------------------------------------------------------------------------------------------------------

template <class By>
struct own_memory : counts_values {
  test::counting_resource arena;
  part<By> run() {
    auto body = [this](scope& s) -> task<> {
      auto one = s.fork(hold(*this, 2));
      s.fork(hold(*this, 1));
      co_await std::move(one);
    };
    co_await with_scope({.memory = &arena}, body);
    auto work = [this]() -> task<> { co_await hold(*this, 1); };
    co_await weft::with_memory(&arena, work);
  }
  void check() {
    counts_values::check();
    require(arena.live == 0, "a block of the resource was not given back");
  }
};
// A task without an executor goes on where it is stopped, on another thread, and the resource is not for several.
TEST(sweep, memory) {
  sweep_both<own_memory>("with_scope, scope_options::memory, with_memory", {.inline_completion = false});
}

const weft::local<int> name{0};

template <class By>
struct inherits : counts_values {
  weft::stop_source source;
  weft::inline_executor there;
  part<By> run() {
    auto work = [this]() -> task<int> { co_return co_await hold(*this, 1, name.get()); };
    require(co_await weft::with_local(name, 7, work) == 7, "a local was lost");
    weft::env other = weft::current_env();
    other.executor = &there;
    require(co_await weft::with_env(other, work) == 0, "an environment was lost");
    require(co_await weft::with_stop(source.token(), work) == 0, "a value was lost");
    const weft::executor_set places{there};
    auto asks = [this]() -> task<int> {
      require(&weft::executor_of<weft::inline_executor>() == &there, "an executor was lost");
      co_return co_await hold(*this, 1, 0);
    };
    require(co_await weft::with_executors(places, asks) == 0, "a value was lost");
    auto stops = [this]() -> task<> {
      co_await rest(1);
      source.request_stop();
      co_await rest(1);
    };
    const auto how = co_await as_result(weft::with_stop(source.token(), stops));
    require(how.is_stopped() || test::lacked_memory(how), "a stop was lost");
    const auto late = co_await as_result(weft::with_deadline(1ms, [this]() -> task<int> { return hold(*this, 5); }));
    require(late.is_stopped() || test::lacked_memory(late), "a deadline was lost");
    require(co_await weft::with_deadline(5ms, work) == 0, "a value was lost");
    auto traced = [this]() -> task<int> {
      require(weft::this_task::is_traced(), "a trace was lost");
      co_return co_await hold(*this, 1, 0);
    };
    require(co_await weft::with_trace({.name = "swept"}, traced) == 0, "a value was lost");
    require(!weft::this_task::is_traced(), "a trace has not ended");
    co_await rest(1);
  }
};
TEST(sweep, inherited) {
  sweep_both<inherits>("with_local, with_env, with_executors, with_stop, with_deadline, with_trace");
}

template <class By>
struct shields : counts_values {
  int begun = 0, ended = 0;
  task<int> whole() {
    ++begun;
    const counted held = value();
    co_await rest(1);
    co_await weft::when_all(rest(1), rest(2));
    ++ended;
    co_return 1;
  }
  part<By> run() {
    co_await rest(1);
    co_await weft::shielded(whole());
    co_await rest(1);
  }
  void check(const weft::result<void>& how) {
    counts_values::check();
    require(begun == ended || test::lacked_memory(how), "what was shielded was torn apart");
    require(!how.exception() || test::lacked_memory(how), "it failed otherwise");
  }
};
TEST(sweep, shielded) { sweep_both<shields>("shielded", {.each_alone = false}); }

template <class By>
struct starts_detached : counts_values {
  weft::inline_executor there;
  part<By> run() {
    auto work = [](std::shared_ptr<int> owned) -> task<> {
      co_await rest(0);
      ++*owned;
    };
    auto on_error = [](std::exception_ptr) {};
    weft::detach(there, work, on_error, std::make_shared<int>(1));
    co_await rest(1);
  }
};
TEST(sweep, detach) { sweep_both<starts_detached>("detach"); }

}  // namespace
