// SPDX-License-Identifier: BSL-1.0
// What a primitive, a channel and a select cost: where nobody waits, and where one task waits for another. On one thread, so
// that the count is always the same. None allocates; a wait on a condition_variable, and a call of once, are tasks.
#include <cstdio>
#include <utility>
#include <weft/channel.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>

#include "base/fence.hpp"
#include "measure.hpp"

namespace {

using weft::channel;
using weft::on_receive;
using weft::scope;
using weft::select;
using weft::sync_wait;
using weft::task;
using weft::with_scope;

constexpr int rounds = 1000;

// The first time is not counted, and so not what is paid once: the scope's memory, and what a lock learns.
template <class Body>
void alone(const char* name, Body body) {
  cost::instructions(name, rounds, [&] { sync_wait(body()); });
}
// Two tasks that take turns. The two frames of the forks are in the figures, a thousandth of each for each round.
template <class One, class Other>
void together(const char* name, One one, Other other) {
  auto both = [&](scope& s) -> task<> {
    s.fork(one);
    s.fork(other);
    co_return;
  };
  cost::instructions(name, rounds, [&] { sync_wait(with_scope(both)); });
}

void locks() {
  weft::mutex m;
  alone("mutex", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) const auto held = co_await m.lock();
  });
  auto holds = [&]() -> task<> {  // while the other one comes
    for (int i = 0; i != rounds / 2; ++i) {
      const auto held = co_await m.lock();
      co_await weft::yield();
    }
  };
  together("mutex that another one waits for, and a yield", holds, holds);

  weft::shared_mutex shared;
  alone("shared_mutex, shared", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) const auto held = co_await shared.lock_shared();
  });
  alone("shared_mutex, alone", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) const auto held = co_await shared.lock();
  });
  alone("shared_mutex, upgraded", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) {
      auto held = co_await shared.lock_upgradable();
      const auto written = co_await std::move(held).upgrade();
    }
  });
}

void permits() {
  weft::semaphore free{1};
  alone("semaphore", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) const auto one = co_await free.acquire();
  });
  weft::semaphore there{0}, back{0};
  together(
      "semaphore, there and back",
      [&]() -> task<> {
        for (int i = 0; i != rounds; ++i) {
          there.release();
          (co_await back.acquire()).keep();
        }
      },
      [&]() -> task<> {
        for (int i = 0; i != rounds; ++i) {
          (co_await there.acquire()).keep();
          back.release();
        }
      });
}

void events() {
  weft::event open{true};
  alone("event that is set", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) co_await open.wait();
  });
  weft::event there, back;
  together(
      "event, there and back",
      [&]() -> task<> {
        for (int i = 0; i != rounds; ++i) {
          there.set();
          co_await back.wait();
          back.reset();
        }
      },
      [&]() -> task<> {
        for (int i = 0; i != rounds; ++i) {
          co_await there.wait();
          there.reset();
          back.set();
        }
      });

  weft::mutex m;
  weft::condition_variable changed;
  int turn = 0;
  auto takes_turns = [&](int mine) {
    return [&, mine]() -> task<> {
      auto held = co_await m.lock();
      for (int i = 0; i != rounds; ++i) {
        while (turn != mine) co_await changed.wait(held);
        turn = 1 - mine;
        changed.notify_one();
      }
    };
  };
  together("condition_variable, there and back", takes_turns(0), takes_turns(1));

  weft::once done;
  alone("once that is done", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) co_await done.call([] {});
  });
}

// `c`, where one sends and another receives.
void handed_over(const char* name, channel<int>& c) {
  together(
      name,
      [&]() -> task<> {
        for (int i = 0; i != rounds; ++i) co_await c.send(i);
      },
      [&]() -> task<> {
        for (int i = 0; i != rounds; ++i) static_cast<void>(co_await c.receive());
      });
}

void channels() {
  channel<int> one{1}, other{1};
  alone("channel, a send and a receive", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) {
      co_await one.send(i);
      static_cast<void>(co_await one.receive());
    }
  });
  handed_over("channel with room for one, from task to task", one);
  channel<int> rendezvous{0};
  handed_over("rendezvous, from task to task", rendezvous);
  alone("select of two, one ready", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) {
      co_await one.send(i);
      static_cast<void>(co_await select(on_receive(one), on_receive(other)));
    }
  });
  alone("select of two, none ready, otherwise", [&]() -> task<> {
    for (int i = 0; i != rounds; ++i)
      static_cast<void>(co_await select(on_receive(one), on_receive(other), weft::otherwise));
  });
  together(
      "select of two that waits, and the send",
      [&]() -> task<> {
        for (int i = 0; i != rounds; ++i) static_cast<void>(co_await select(on_receive(one), on_receive(other)));
      },
      [&]() -> task<> {
        for (int i = 0; i != rounds; ++i) {
          co_await one.send(i);
          co_await weft::yield();
        }
      });
}

}  // namespace

int main() {
  weft::detail::prepare_fences();
  if (!weft::detail::light_fences_are_free()) {
    std::puts("SKIPPED: the kernel, or this valgrind, has no membarrier");
    return 77;
  }
  locks();
  permits();
  events();
  channels();
}
