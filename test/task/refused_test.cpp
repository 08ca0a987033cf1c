// What a function does not await. The sentences are in compile_fail/refused_*; here: that a program can ask whether it is
// awaited, and that functions of its own with the same names are called as if weft had no overload for what it refuses.
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

#include "support/weft_test.hpp"

using namespace std::chrono_literals;

namespace {

template <class T>
concept sync_waits = requires(T x) { weft::sync_wait(static_cast<T&&>(x)); };
template <class T>
concept gets_result = requires(T x) { weft::as_result(static_cast<T&&>(x)); };
template <class T>
concept starts = requires(T x) { weft::start(static_cast<T&&>(x), [](auto&&) {}); };
template <class T>
concept joins = requires(T x) { weft::when_all(weft::task<>{}, static_cast<T&&>(x)); };
template <class T>
concept races = requires(T x) { weft::when_any(static_cast<T&&>(x), weft::task<>{}); };
template <class T>
concept limits = requires(T x) { weft::timeout(1s, static_cast<T&&>(x)); };
template <class T>
concept hops = requires(T x, weft::executor& ex) { weft::start_on(ex, static_cast<T&&>(x)); };
template <class T>
concept shields = requires(T x) { weft::shielded(static_cast<T&&>(x)); };
template <class T>
concept runs = requires(T x) { weft::run(static_cast<T&&>(x)); };
template <class T>
concept runs_main = requires(T x) { weft::run_main(static_cast<T&&>(x)); };
template <class T>
concept awaits_in_fiber = requires(T x) { weft::await(static_cast<T&&>(x)); };
template <class T>
concept gives_future = requires(T x) { weft::as_future(static_cast<T&&>(x)); };
template <class T>
concept pipes = requires(T x) { static_cast<T&&>(x) | weft::timeout(1s); };
template <class T>
concept forks = requires(T x, weft::scope& s) { s.fork(static_cast<T&&>(x)); };

template <class T>
constexpr bool by_all =
    sync_waits<T> && gets_result<T> && starts<T> && joins<T> && races<T> && limits<T> && hops<T> && shields<T> &&
    runs<T> && runs_main<T> && awaits_in_fiber<T> && gives_future<T> && pipes<T> && forks<T>;
template <class T>
constexpr bool by_any =
    sync_waits<T> || gets_result<T> || starts<T> || joins<T> || races<T> || limits<T> || hops<T> || shields<T> ||
    runs<T> || runs_main<T> || awaits_in_fiber<T> || gives_future<T> || pipes<T> || forks<T>;

struct sender {
  using sender_concept = void;
};

static_assert(by_all<weft::task<>> && by_all<weft::task<int>&&> && by_all<weft::future<int>>);
static_assert(!by_any<weft::task<>&> && !by_any<const weft::task<>> && !by_any<weft::future<int>&>);
static_assert(!by_any<int> && !by_any<sender> && !by_any<std::string&>);
static_assert(weft::awaitable<weft::task<>&>);  // it is one; that it must be moved is a rule of the call

template <class Range>
concept in_a_window = requires(Range r) { weft::windowed(2, static_cast<Range&&>(r)); };
template <class Range>
concept some_of = requires(Range r) { weft::when_some(2, static_cast<Range&&>(r)); };
template <class Range>
concept all_of = requires(Range r) { weft::when_all(static_cast<Range&&>(r)); };

template <class Range>
constexpr bool as_range = in_a_window<Range> || some_of<Range> || all_of<Range>;
static_assert(in_a_window<std::vector<weft::task<>>> && some_of<std::vector<weft::task<>>> &&
              all_of<std::vector<weft::task<>>>);
static_assert(!as_range<std::vector<weft::task<>>&> && !as_range<std::vector<int>>);

// A call that gives void is taken by an overload of its own, which is no valid expression either.
template <class F>
concept joins_its = requires(F f) { weft::when_all(f(), f()); };
template <class F>
concept races_its = requires(F f) { weft::when_any(f(), f()); };
template <class F>
concept limits_its = requires(F f) { weft::timeout(1s, f()); };
template <class F>
concept shields_its = requires(F f) { weft::shielded(f()); };
template <class F>
concept gets_result_of_its = requires(F f) { weft::as_result(f()); };
using gives_task = weft::task<> (*)();
using gives_void = void (*)();
static_assert(joins_its<gives_task> && races_its<gives_task> && limits_its<gives_task> && shields_its<gives_task> &&
              gets_result_of_its<gives_task>);
static_assert(!joins_its<gives_void> && !races_its<gives_void> && !limits_its<gives_void> && !shields_its<gives_void> &&
              !gets_result_of_its<gives_void>);
template <class F>
concept joins_seven = requires(F f) { weft::when_all(f(), f(), f(), f(), f(), f(), f()); };
static_assert(joins_seven<gives_task> && !joins_seven<int (*)()> && !joins_seven<gives_void>);

template <class F>
concept makes = requires(F f) { weft::when_all(3, f); };
static_assert(makes<weft::task<> (*)(std::size_t)> && !makes<int (*)(std::size_t)>);

template <class T>
concept joins_braces = requires(T x) { weft::when_all(static_cast<T&&>(x), {}); };
template <class T>
concept joins_range_and =
    requires(T x, std::vector<weft::task<>> r) { weft::when_all(std::move(r), static_cast<T&&>(x)); };
static_assert(!joins_braces<weft::task<>> && !joins_range_and<weft::task<>> &&
              joins_range_and<void (*)(std::monostate)>);

// A template is not asked whether it could be called otherwise than it is.
weft::task<int> doubled(std::size_t i) { co_return static_cast<int>(2 * i); }
auto made() {
  return weft::when_all(3, [](auto... i) {
    static_assert(sizeof...(i) == 1);
    return doubled(i...);
  });
}

}  // namespace

// Functions of a program, which argument-dependent lookup puts beside weft's.
namespace own {

struct thing {};

int await(weft::channel<int>&) { return 1; }
template <class T>
int await(weft::result<T>) {
  return 2;
}
int start_on(weft::executor&, const std::function<int()>& f) { return f(); }
template <class F>
int start_on(const weft::manual_executor&, F) {
  return 4;
}
int start(weft::executor&, thing, const std::function<int()>& f) { return f(); }
int start(thing, weft::stop_token) { return 6; }
int when_all(weft::stop_token, int) { return 7; }
template <class... Ts>
int when_all(const weft::error&, Ts&&...) {
  return 8;
}
int when_any(const weft::manual_executor&, thing) { return 9; }
int timeout(weft::stop_token, std::chrono::seconds) { return 10; }
int run(const weft::runtime_options&) { return 11; }
int run(thing, const weft::runtime_options&) { return 12; }
int run(const weft::runtime_options&, thing) { return 0; }
int shielded(weft::stop_source&) { return 13; }
int as_future(weft::executor&, const char*) { return 14; }
int operator|(thing, const weft::stop_token&) { return 15; }
struct any_executor {
  any_executor(weft::executor&) {}  // NOLINT(google-explicit-constructor)
};
int start_on(any_executor, thing) { return 17; }
struct any_stage {
  template <class T>
  any_stage(T&&) {}  // NOLINT(google-explicit-constructor)
};
int operator|(thing, const any_stage&) { return 18; }

TEST(refused, leaves_calls_to_the_program) {
  weft::channel<int> c{1};
  weft::manual_executor ex;
  weft::stop_source source;
  EXPECT_EQ(await(c), 1);
  EXPECT_EQ(await(weft::result<int>{}), 2);
  EXPECT_EQ(start_on(static_cast<weft::executor&>(ex), [] { return 3; }), 3);
  EXPECT_EQ(start_on(std::as_const(ex), 0), 4);
  EXPECT_EQ(start(static_cast<weft::executor&>(ex), thing{}, [] { return 5; }), 5);
  EXPECT_EQ(start(thing{}, weft::stop_token{}), 6);
  EXPECT_EQ(when_all(weft::stop_token{}, 0), 7);
  EXPECT_EQ(when_all(weft::error{weft::errc::timed_out, "wait"}, thing{}, 0), 8);
  EXPECT_EQ(when_any(ex, thing{}), 9);
  EXPECT_EQ(timeout(weft::stop_token{}, 1s), 10);
  EXPECT_EQ(run(weft::runtime_options{}), 11);
  EXPECT_EQ(run(thing{}, weft::runtime_options{}), 12);
  EXPECT_EQ(run(weft::runtime_options{}, thing{}), 0);
  EXPECT_EQ(shielded(source), 13);
  EXPECT_EQ(as_future(static_cast<weft::executor&>(ex), ""), 14);
  EXPECT_EQ(thing{} | weft::stop_token{}, 15);
  EXPECT_EQ(start_on(static_cast<weft::executor&>(ex), thing{}), 17);
  EXPECT_EQ(thing{} | weft::then([] {}), 18);
}

}  // namespace own

namespace own_with_settings {

struct settings {
  int is = 19;
};
template <class T = settings>
int start_on(weft::executor&, T what) {
  return what.is;
}

TEST(refused, leaves_braces_to_the_program) {
  weft::manual_executor ex;
  EXPECT_EQ(start_on(static_cast<weft::executor&>(ex), {}), 19);
}

}  // namespace own_with_settings

TEST(refused, asks_no_template_what_it_gives) { EXPECT_EQ(weft::sync_wait(made()), (std::vector<int>{0, 2, 4})); }

TEST(refused, has_no_part_in_an_address) {
  int (*waits)(weft::task<int>&&, weft::stop_token) = &weft::sync_wait<weft::task<int>>;
  EXPECT_EQ(waits([]() -> weft::task<int> { co_return 16; }(), {}), 16);
}
