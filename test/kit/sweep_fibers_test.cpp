// Fibers, with a stop at each wait, and without memory at each allocation.
#include <weft/fiber.hpp>

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/registry.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::await;
using weft::scope;
using weft::with_scope;

template <class By>
struct fibers : counts_values {
  int below(int levels) {  // NOLINT(misc-no-recursion)
    const counted held = value();
    return levels == 0 ? await(hold(*this, 3)) : 1 + below(levels - 1);
  }
  part<By> run() {
    auto body = [this](scope& s) -> task<int> {
      weft::fork<int> deep = s.go([this] { return below(3); });
      weft::fork<counted> moves = s.go([this] {
        weft::this_fiber::sleep_for(1ms);
        return await(make(*this, 1));
      });
      s.go([this] {  // awaited by nobody
        const counted held = value();
        await(rest(5));
      });
      weft::fork<int> catches = s.go([] {
        weft::this_fiber::yield();
        try {
          throw 7;
        } catch (int thrown) {
          await(rest(2));
          return thrown;
        }
      });
      const counted moved = co_await std::move(moves);
      co_return co_await std::move(deep) + co_await std::move(catches);
    };
    require(co_await with_scope(body) == 1 + 3 + 7, "a value was lost");
    co_await rest(1);
  }
};
TEST(sweep, fibers) { sweep_both<fibers>("scope::go, await, this_fiber"); }

template <class By>
struct nested_fibers : counts_values {
  part<By> run() {
    auto body = [this](scope& s) -> task<int> {
      weft::fork<int> outer = s.go([this, &s] {
        const counted held = value();
        weft::fork<int> inner = s.go([this] { return await(hold(*this, 2)); });
        auto in = [this](scope& own) -> task<int> {
          weft::fork<int> third = own.go([this] { return await(hold(*this, 4)); });
          co_return co_await std::move(third);
        };
        const auto [a, b] = await(weft::when_all(with_scope(in), nap(1, 5)));
        return a + b + await(std::move(inner));
      });
      co_return co_await std::move(outer);
    };
    require(co_await with_scope(body) == 1 + 5 + 1, "a value was lost");
  }
};
TEST(sweep, fibers_in_fibers) { sweep_both<nested_fibers>("scope::go in a fiber, when_all, with_scope"); }

template <class By>
struct listed_work : counts_values {
  part<By> run() {
    weft::registry jobs;
    auto body = [this, &jobs](scope& s) -> task<int> {
      auto deep = jobs.go({.limit = 1h}, s, [this] { return await(hold(*this, 3)); });
      auto late = jobs.fork({.limit = 2ms}, s, hold(*this, 50));
      auto waits = s.fork(jobs.wait(deep.id));
      auto ended = jobs.fork(s, [](int n) { return n; }, 4);
      jobs.set_limit(deep.id, 2h);
      const auto how = co_await std::move(waits);
      require(how != weft::work_end::timed_out, "its limit was not over");
      const int given = co_await std::move(ended.work);
      co_return given + co_await std::move(deep.work);
    };
    require(co_await with_scope(body) == 4 + 1, "a value was lost");
    require(jobs.size() == 0, "something is listed that has ended");
  }
};
TEST(sweep, listed_work) { sweep_both<listed_work>("registry::fork, registry::go, registry::wait"); }

}  // namespace
