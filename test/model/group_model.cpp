// The children of a when_any that wait on several threads: who ends first decides and tells the others to stop, while the
// parent is about to wait for all, or does it for him; and the end, which whoever comes last brings about. See
// join/group.hpp.
// Mutates: src/join/group.cpp
#include <optional>
#include <utility>
#include <variant>
#include <weft/combine.hpp>
#include <weft/future.hpp>

#include "join/group.cpp"
#include "world.hpp"
//
#include <weft/detail/core/walk.hpp>

// No model walks.
const weft::detail::wait_children weft::detail::group::walk{};

namespace {

using model::watched;
using weft::future;
using weft::promise;
using weft::stop_source;
using weft::task;
using weft::when_any;

// The first thread begins to wait for what the others give. Each child goes on where that is given, and the parent where the
// last child ends.
template <class Scenario, unsigned threads>
struct races : rl::test_suite<Scenario, threads>, model::world {
  std::optional<promise<int>> given[2];
  std::optional<future<int>> waited_for[2];
  std::optional<stop_source> source;
  weft::inline_executor here;
  model::plain<bool> over;
  model::plain<int> begun[2], ended[2];

  void before() {
    begin();
    for (int i = 0; i != 2; ++i) {
      given[i].emplace();
      waited_for[i].emplace(given[i]->get_future());
      begun[i] = 0;
      ended[i] = 0;
    }
    source.emplace();
    over = false;
  }
  void after() {
    RL_ASSERT(over);
    for (int i = 0; i != 2; ++i) {
      waited_for[i].reset();
      given[i].reset();
    }
    source.reset();
  }

  // That it ended is written by whoever ends it, and read by the parent. One may not begin, as the other one came before.
  task<watched> wait(int which) {
    struct at_end {
      model::plain<int>& of;
      ~at_end() { of = of + 1; }
    } const marks{ended[which]};
    begun[which] = 1;
    co_return watched{co_await std::move(*waited_for[which]) + which};
  }
  void begin_to(task<> wait) {
    weft::start(here, std::move(wait), [this](const weft::result<void>&) { over = true; }, source->token());
  }
  task<> first_of_two() {
    const auto [index, value] = co_await when_any(wait(0), wait(1));
    const watched& won = index == 0 ? std::get<0>(value) : std::get<1>(value);
    RL_ASSERT(won.get() == 7 + static_cast<int>(index));
    for (int i = 0; i != 2; ++i) RL_ASSERT(ended[i] == begun[i]);
  }
  task<> only_one() {
    const auto [index, value] = co_await when_any(wait(0));
    RL_ASSERT(index == 0 && std::get<0>(value).get() == 7);
    RL_ASSERT(ended[0] == 1);
  }
};

// One is given, and the other one is stopped: by the last child, which knows all others, or by the first one, which learns of
// the last one only from the parent.
template <unsigned which_one>
struct one_comes : races<one_comes<which_one>, 2> {
  void thread(unsigned which) {
    if (which == 1) return this->given[which_one]->set_value(7);
    this->begin_to(this->first_of_two());
  }
};

// Both are given, by two threads: one decides, the other one comes too late, or is stopped.
struct both_come : races<both_come, 3> {
  void thread(unsigned which) {
    if (which != 0) return given[which - 1]->set_value(7);
    begin_to(first_of_two());
  }
};

// One is given while all is told to stop.
struct one_and_a_stop : races<one_and_a_stop, 3> {
  void thread(unsigned which) {
    if (which == 1) return given[0]->set_value(7);
    if (which == 2) return static_cast<void>(source->request_stop());
    begin_to(first_of_two());
  }
};

// There is only one, and it comes.
struct alone : races<alone, 2> {
  void thread(unsigned which) {
    if (which == 1) return given[0]->set_value(7);
    begin_to(only_one());
  }
};

}  // namespace

int main() {
  model::check<alone>("one alone", 2);
  model::check<one_comes<1>>("the last of two comes", 1, 100'000, 2);
  model::check<one_comes<0>>("the first of two comes", 1, 100'000, 2);
  model::check_some<both_come>("both come", 300'000);
  model::check_some<one_and_a_stop>("one comes, and a stop", 300'000);
}
