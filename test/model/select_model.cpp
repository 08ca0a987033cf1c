// A select that never waits looks without any lock, and must have looked at one moment. The words that it reads are the
// model's here (weft/detail/base/peeked.hpp), as the locks of the channels are.
// Mutates: include/weft/detail/base/peeked.hpp
#define MODEL_PEEKS
#include <optional>
#include <weft/channel.hpp>
#include <weft/select.hpp>

#include "world.hpp"
//
#include "channel/channel.cpp"
#include "sync/gate.cpp"
#include "sync/once.cpp"
//
#include "channel/select.cpp"
#include "sync/learning_lock.cpp"

weft::clock& weft::real_clock() noexcept { std::abort(); }  // no case here waits for a time

namespace {

using model::run;
using model::watched;
using weft::task;
using values = weft::channel<watched>;

task<> look(values& first, values& then, std::size_t& chosen) {
  auto choice = select(on_receive(first), on_receive(then), weft::otherwise);
  chosen = (co_await std::move(choice)).index;
}

// A value comes to one channel before the other one gives its own away: at each moment one of them has one.
struct look_and_move : rl::test_suite<look_and_move, 2>, model::world {
  std::optional<values> from, to;
  std::size_t chosen = 0;

  void before() {
    begin();
    from.emplace(1);
    to.emplace(1);
    RL_ASSERT(from->try_send(watched{1}));
  }
  void thread(unsigned which) {
    if (which == 0) {
      RL_ASSERT(to->try_send(watched{2}));
      static_cast<void>(from->try_receive());
    } else {
      RL_ASSERT(run(look(*to, *from, chosen)));
    }
  }
  void after() {
    RL_ASSERT(chosen != 2);
    from.reset();
    to.reset();
  }
};

// The same where the one channel is closed before the other one gives its value away.
struct look_and_close : rl::test_suite<look_and_close, 2>, model::world {
  std::optional<values> from, to;
  std::size_t chosen = 0;

  void before() {
    begin();
    from.emplace(1);
    to.emplace(0);
    RL_ASSERT(from->try_send(watched{1}));
  }
  void thread(unsigned which) {
    if (which == 0) {
      to->close();
      static_cast<void>(from->try_receive());
    } else {
      RL_ASSERT(run(look(*to, *from, chosen)));
    }
  }
  void after() {
    RL_ASSERT(chosen != 2);
    from.reset();
    to.reset();
  }
};

}  // namespace

int main() {
  model::check<look_and_move>("look and move", 2);
  model::check<look_and_close>("look and close", 2);
}
