// The list of a stop_source: callbacks come and go while it is stopped, once or twice, and the source goes while it is
// stopped. See weft/stop.hpp.
// Mutates: src/core/stop.cpp include/weft/stop.hpp
#include <optional>
#include "core/stop.cpp"

#include "model.hpp"

namespace {

using weft::stop_callback;
using weft::stop_source;
using weft::detail::plain;

// A callback that writes; it can't be running any more, or later, when its destructor has returned.
struct writes {
  plain<int>* to;
  void operator()() const { *to = *to + 1; }
};

// Registered, and taken out again, while the source is stopped.
struct come_go_and_stop : rl::test_suite<come_go_and_stop, 3> {
  stop_source source;
  plain<int> written[2] = {0, 0};
  plain<int> why = 0;
  int first = 0;

  void thread(unsigned which) {
    if (which < 2) {
      {
        const stop_callback<writes> mine{source.token(), writes{&written[which]}};
        if (source.stop_requested()) RL_ASSERT(why == 1);
      }
      const int times = written[which];  // nobody writes any more
      RL_ASSERT(times <= 1);
      written[which] = 5;
    } else {
      why = 1;
      first += source.request_stop();
    }
  }
  void after() { RL_ASSERT(first == 1); }
};

// Two stop it, and the callback is taken out: it has run by then, or never will.
struct stop_twice : rl::test_suite<stop_twice, 2> {
  stop_source source;
  plain<int> written = 0;
  std::optional<stop_callback<writes>> callback;
  int first = 0;

  void before() { callback.emplace(source.token(), writes{&written}); }
  void thread(unsigned which) {
    if (which == 0) {
      first += source.request_stop();
      callback.reset();
      RL_ASSERT(written <= 1);
      written = 5;
      RL_ASSERT(source.cause() != nullptr);
    } else {
      first += source.request_stop();
    }
  }
  void after() { RL_ASSERT(first == 1); }
};

// A callback that destroys itself, and another one in the list.
struct destroys_itself : rl::test_suite<destroys_itself, 2> {
  struct ends {
    destroys_itself* in;
    void operator()() const { in->callback.reset(); }  // this closure, too
  };
  stop_source source;
  plain<int> written = 0;
  std::optional<stop_callback<ends>> callback;

  void before() { callback.emplace(source.token(), ends{this}); }
  void thread(unsigned which) {
    if (which == 0) {
      source.request_stop();
    } else {
      const stop_callback<writes> other{source.token(), writes{&written}};
    }
  }
};

// Destroyed by who was stopped, while the thread that stops it has not returned from that: with one callback and two.
template <bool two>
struct destroyed_by_who_was_stopped : rl::test_suite<destroyed_by_who_was_stopped<two>, 2> {
  struct tells {
    weft::detail::atomic<int>* told;
    void operator()() const { told->store(1, std::memory_order_release); }
  };
  std::optional<stop_source> source;
  std::optional<stop_callback<tells>> callbacks[two ? 2 : 1];
  weft::detail::atomic<int> told{0};
  stop_source* handle = nullptr;

  void before() {
    handle = &source.emplace();
    for (auto& one : callbacks) one.emplace(source->token(), tells{&told});
  }
  void thread(unsigned which) {
    if (which == 0) {
      handle->request_stop();
    } else {
      while (told.load(std::memory_order_acquire) == 0) rl::yield(1, RL_INFO);
      for (auto& one : callbacks) one.reset();
      source.reset();
    }
  }
};

// A callback destroys itself, and then has another thread destroy the source, or does so itself; it may run on meanwhile.
template <bool elsewhere>
struct destroyed_by_its_callback : rl::test_suite<destroyed_by_its_callback<elsewhere>, 2> {
  struct ends {
    destroyed_by_its_callback* in;
    void operator()() const {
      destroyed_by_its_callback& mine = *in;
      mine.callback.reset();  // this closure, too
      if (!elsewhere) mine.source.reset();
      mine.told.store(1, std::memory_order_release);
    }
  };
  std::optional<stop_source> source;
  std::optional<stop_callback<ends>> callback;
  weft::detail::atomic<int> told{0};
  stop_source* handle = nullptr;

  void before() {
    handle = &source.emplace();
    callback.emplace(source->token(), ends{this});
  }
  void thread(unsigned which) {
    if (which == 0) {
      handle->request_stop();
    } else if (elsewhere) {
      while (told.load(std::memory_order_acquire) == 0) rl::yield(1, RL_INFO);
      source.reset();
    }
  }
};

}  // namespace

int main() {
  model::check<come_go_and_stop>("come, go and stop", 2);
  model::check<stop_twice>("stop twice", 2);
  model::check<destroys_itself>("a callback destroys itself", 2);
  model::check<destroyed_by_who_was_stopped<false>>("destroyed by who was stopped", 2);
  model::check<destroyed_by_who_was_stopped<true>>("the same, of two", 2);
  model::check<destroyed_by_its_callback<true>>("destroyed after its callback", 2);
  model::check<destroyed_by_its_callback<false>>("destroyed in its callback", 2);
}
