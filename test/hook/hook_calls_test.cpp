// Hooked calls while the C library's function below the hook runs, which the test watches or holds up; and tables of calls that
// are hooked alike. With WEFT_TEST_IN_RUNTIME as in hook_test.cpp.
#include "support/weft_test.hpp"

#include <netdb.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/clock.hpp>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "hook/hook_calls.hpp"
#include "hook/places.hpp"

namespace {

using namespace std::chrono_literals;
using test::below;
using test::on_a_worker;
using weft::scope;
using weft::task;

constexpr auto pool = [] { return weft::process_blocking_stats(); };

// ---- lookups ----------------------------------------------------------------------------------------------------------------

// While it lives, lookups wait until let_go(), as they do when no name server answers.
class held_lookups {
 public:
  void let_go() noexcept {
    may_end_ = true;
    may_end_.notify_all();
  }
  unsigned begun() const noexcept { return begun_; }
  ~held_lookups() {
    let_go();
    while (pool().busy != 0) std::this_thread::sleep_for(1ms);
  }

 private:
  std::atomic<unsigned> begun_{0};
  std::atomic<bool> may_end_{false};
  test::watch_below held_{below::getaddrinfo, [this] {
                            ++begun_;
                            may_end_.wait(false);
                          }};
};

struct looked_up {
  int result = 0, error = 0;
  friend bool operator==(const looked_up&, const looked_up&) = default;
};
looked_up look_up() {
  addrinfo* found = nullptr;
  errno = 0;
  const int result = ::getaddrinfo("localhost", nullptr, nullptr, &found);
  const looked_up all{result, errno};
  if (result == 0) ::freeaddrinfo(found);
  return all;
}

// `count` lookups at once, stopped when all have begun; as_stopped(ended) is then called until it gives true.
void stop_lookups(
    unsigned count, held_lookups& held, std::vector<looked_up>& ended,
    std::function<bool()> as_stopped = [] { return true; }) {
  const auto body = [&](scope& inside) -> task<> {
    for (unsigned i = 0; i != count; ++i) inside.fork(weft::hooked([&ended] { ended.push_back(look_up()); }));
    while (held.begun() != count) co_await weft::sleep_for(1ms);
    inside.request_stop();
    const auto until_it_is_so = [&]() -> task<> {
      while (!as_stopped()) co_await weft::sleep_for(1ms);
    };
    co_await weft::shielded(until_it_is_so());
  };
  const auto all = [&]() -> task<> { co_await weft::with_scope(body); };
  on_a_worker(all());
}

// It posts nothing to the executor that is gone by then.
TEST(hook_calls, a_stopped_lookup_may_outlive_its_runtime) {
  held_lookups held;
  std::vector<looked_up> ended;
  stop_lookups(3, held, ended);
  EXPECT_EQ(ended, (std::vector<looked_up>(3, {EAI_SYSTEM, ECANCELED})));
  EXPECT_EQ(pool().abandoned, 3U);
  held.let_go();
  while (pool().busy != 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(pool().abandoned, 0U);
}

TEST(hook_calls, no_more_lookups_are_abandoned_than_the_pool_allows) {
  constexpr unsigned most = weft::blocking_options{}.max_abandoned;
  held_lookups held;
  std::vector<looked_up> ended;
  stop_lookups(most + 1, held, ended, [&] {
    if (ended.size() < most) return false;
    EXPECT_EQ(ended.size(), most);
    EXPECT_EQ(pool().abandoned, most);
    held.let_go();
    return true;
  });
  ASSERT_EQ(ended.size(), most + 1);
  EXPECT_EQ(ended.back(), (looked_up{0, 0})) << "it was waited for, and gives what it has found";
  ended.pop_back();
  EXPECT_EQ(ended, (std::vector<looked_up>(most, {EAI_SYSTEM, ECANCELED})));
}

}  // namespace
