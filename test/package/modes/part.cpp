// What a program uses of weft, in a translation unit that was built in a way of its own: `check` compiles it with macros and
// options that change what the standard library's types look like, or how code is made, and links it with one library.
// Compiled with PART, the namespace that it is in. What two parts instantiate from weft is the same.
#include <array>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <vector>
#include <weft/weft.hpp>

namespace PART {
namespace {

namespace w = weft;
using namespace std::chrono_literals;

int wrong = 0;
void expect(bool holds, int line) {
  if (!holds && wrong == 0) wrong = line;
}
#define EXPECT(condition) expect(condition, __LINE__)

w::task<int> give(int n) { co_return n; }
w::task<int> fails(const char* why) {
  throw w::error{w::errc::closed, why};
  co_return 0;
}
w::async_generator<int> up_to(int n) {
  for (int i = 0; i != n; ++i) {
    co_await w::yield();
    co_yield i;
  }
}
w::generator<int> squares(int n) {
  for (int i = 0; i != n; ++i) co_yield i* i;
}
std::array<w::task<int>, 2> two() { return {give(1), give(2)}; }
int sum_of(const std::vector<int>& values) {
  int sum = 0;
  for (const int value : values) sum += value;
  return sum;
}

w::task<> joins() {
  auto [a, b] = co_await w::when_all(give(1), give(2));
  EXPECT(a + b == 3);
  auto make = [](std::size_t i) { return give(static_cast<int>(i)); };
  const std::vector<int> made = co_await w::when_all(std::size_t{20}, make);
  EXPECT(made.size() == 20 && sum_of(made) == 190);
  std::vector<w::task<int>> many;
  for (int i = 0; i != 20; ++i) many.push_back(give(i));
  const std::vector<int> all = co_await w::when_all(std::move(many));
  EXPECT(all.size() == 20 && sum_of(all) == 190);
  const std::vector<int> both = co_await w::when_all(two());
  EXPECT(both == std::vector<int>({1, 2}));
  auto [index, value] = co_await w::when_any(two());
  EXPECT(index == 0 && value == 1);
  const auto some = co_await w::when_some(2, two());
  EXPECT(some.size() == 2 && some[0].second + some[1].second == 3);
  const std::vector<int> in_turn = co_await w::windowed(1, two());
  EXPECT(in_turn == std::vector<int>({1, 2}));
}

w::task<> streams() {
  const std::vector<int> merged = co_await (w::merge(up_to(3), up_to(4)) | w::collect());
  EXPECT(merged.size() == 7 && sum_of(merged) == 9);
  int sum = 0;
  auto add = [&sum](int value) { sum += value; };
  co_await (w::merge(up_to(3), up_to(4)) | w::for_each(add));
  EXPECT(sum == 9);
  const std::vector<int> collected = co_await w::collect(w::concat(up_to(3), up_to(2)));
  EXPECT(collected == std::vector<int>({0, 1, 2, 0, 1}));
  for (const int square : squares(3)) sum += square;
  EXPECT(sum == 14);
}

w::task<> channels() {
  w::channel<int> numbers{4}, none{1};
  w::mutex m;
  {
    auto mine = co_await m.lock();
    co_await numbers.send(3);
  }
  EXPECT(co_await numbers.receive() == 3);
  EXPECT(!numbers.try_receive());
  co_await numbers.send(4);
  auto got = co_await w::select(w::on_receive(none), w::on_receive(numbers), w::after(1h));
  EXPECT(got.index == 1 && std::get<1>(got.value) == 4);
  co_await numbers.send(5);
  std::vector<w::receive_case<int>> cases;
  cases.push_back(w::on_receive(none));
  cases.push_back(w::on_receive(numbers));
  auto [index, value] = co_await w::select(std::move(cases));
  EXPECT(index == 1 && value == 5);
  int seen = 0;
  auto see = [&seen](std::optional<int> number) { seen = number.value_or(0); };
  co_await numbers.send(6);
  std::vector<w::any_case> any;
  any.emplace_back(w::on_receive(none), see);
  any.emplace_back(w::on_receive(numbers), see);
  co_await w::select(std::move(any));
  EXPECT(seen == 6);
}

w::task<> scopes() {
  w::error_list errors;
  auto failing = [](w::scope& s) -> w::task<> {
    s.fork(fails("one"));
    s.fork(fails("other"));
    co_return;
  };
  const auto failed =
      co_await w::as_result(w::with_scope({.on_error = w::collect_all_errors, .errors = &errors}, failing));
  EXPECT(!failed.has_value() && errors.size() == 2);
  try {
    failed.value();
  } catch (const w::error_list& all) {
    EXPECT(all.size() == 2 && all.end() - all.begin() == 2 && all[1] == errors[1]);
  }

  w::stop_source source;
  source.request_stop({.reason = "as planned"});
  auto asks = [](w::scope&) -> w::task<> {
    const std::vector<w::stop_cause> why = w::why_stopped();
    EXPECT(why.size() == 1 && std::string{why[0].reason} == "as planned");
    co_await w::check_stop();
  };
  const auto stopped = co_await w::as_result(w::with_scope({.stop = source.token()}, asks));
  EXPECT(stopped.is_stopped());

  w::registry jobs;
  auto working = [&jobs](w::scope& s) -> w::task<int> {
    auto [id, work] = jobs.fork({.limit = 1h, .name = "sleeper"}, s, [] { return w::sleep_for(1h); });
    const std::vector<w::work_info> all = jobs.all();
    EXPECT(all.size() == 1 && all[0].id == id && std::string{all[0].name} == "sleeper");
    jobs.request_stop(id);
    const std::optional<w::work_end> how = co_await jobs.wait(id);  // none: it has ended already, on another thread
    EXPECT(!how || *how == w::work_end::stopped);
    auto fiber = s.go([] { return w::await(give(7)); });
    co_return co_await std::move(fiber);
  };
  EXPECT(co_await w::with_scope(working) == 7);
}

// What a scope says of a child that ignores a stop, and of where that waits.
w::task<> reports() {
  std::vector<w::overdue_scope> told;
  w::event reported;
  auto note = [&](const w::overdue_scope& what) {
    told.push_back(what);
    reported.set();
  };
  auto stubborn = [&reported](w::scope& s) -> w::task<> {
    s.request_stop();
    co_await w::shielded(reported.wait());
  };
  const auto ended = co_await w::as_result(w::with_scope({.stop_within = 50ms, .on_overdue = note}, stubborn));
  EXPECT(!ended.exception() && told.size() == 1);
  EXPECT(told[0].ignoring == 1 && told[0].children.size() == 1 && told[0].children[0].is_shielded);
  const std::vector<w::async_frame> waits = told[0].children[0].stack;
  EXPECT(!waits.empty() && told[0].children[0].waits_on.size() == 1);
  const std::vector<w::async_frame> here = w::async_stack();
  EXPECT(here.size() >= 2);
  std::ostringstream out;
  out << waits << here << told[0] << told[0].children[0].stack;
  EXPECT(!out.str().empty() && out.str().find(w::to_string(here)) != std::string::npos);
}

w::task<> all() {
  co_await joins();
  co_await streams();
  co_await channels();
  co_await scopes();
  co_await reports();
}

}  // namespace

// The line of what does not hold; 0: all does.
int use() {
  w::sync_wait(all());
  const w::pool workers{{.threads = 2}};
  w::sync_wait(w::start_on(workers.executor(), all()));
  const std::vector<w::stack_use> stacks = w::stack_pool::process_wide().high_water();
  EXPECT(!stacks.empty() && stacks[0].high_water != 0);
  return wrong;
}

}  // namespace PART
