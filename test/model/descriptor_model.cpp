// A descriptor: who uses it, who closes it, what is reported and who is stopped. Its number is closed once, when nobody is at
// it; it is given back once, when nobody has it; a change is lost to nobody, whoever was stopped. What operations do with it
// is as operation_tries has it, in weft/detail/net/operation.hpp.
// Mutates: include/weft/detail/io/descriptor.hpp src/io/descriptor.cpp
#include <optional>
#include <weft/sync.hpp>

#include "world.hpp"
//
#include "io/descriptor.cpp"
#include "sync/event.cpp"
#include "sync/gate.cpp"

namespace weft::detail {

// As the service whose name it has: it arms a direction when somebody is about to wait.
class uring final : public io_service {
 public:
  model_file files[2];
  descriptor one;
  int given_back = 0;
  bool is_cancelled = false;
  bool is_used_again = false;  // at once, by who gives it back
  plain<int> done[2]{};        // with the descriptor, by who uses it; read by who gives it back

  void begin(bool is_ready) {
    model_file::all = files;
    one.begin(*this, 0, is_ready);
  }
  void stop_watching(int number) noexcept override { use_file(number); }
  void arm(descriptor& which, direction way) noexcept override {
    which.armed_.fetch_or(descriptor::bit(way) | descriptor::kept, std::memory_order_relaxed);
  }
  // While somebody has it: afterwards it may be another one's, whose polls these are.
  void cancel_polls(descriptor&) noexcept override {
    RL_ASSERT(given_back == 0);
    is_cancelled = true;
  }
  void give_back(descriptor&) noexcept override {
    ++given_back;
    RL_ASSERT(given_back == 1 || is_used_again);
    for (auto& what : done) what = 0;
    if (is_used_again && given_back == 1) one.begin(*this, 1, false);
  }
  // By the ring's owner: reports what it is asked for; or that it watches no more.
  bool has_armed() const noexcept { return one.is_armed(direction::in); }
  void disarm() noexcept { one.disarm(direction::in); }
};

}  // namespace weft::detail

namespace {

using namespace weft::detail;
using weft::stop_source;
using weft::task;

constexpr const char* taken = "two at once";

// An operation of which one try is all, with the number, while it may.
void try_with(descriptor& one, const descriptor_use& use) {
  if (use) use_file(one.number());
}

// A reader, a writer and one more, in any order with close(): nobody meets a number that was closed.
template <unsigned users>
struct use_and_close : rl::test_suite<use_and_close<users>, users + 1> {
  uring service;

  void before() { service.begin(true); }
  void thread(unsigned which) {
    descriptor& one = service.one;
    if (which == 0) return one.close();
    if (which == 1) {
      const descriptor_use use{&one, direction::in, taken};
      try_with(one, use);
    } else {
      const descriptor_use use{&one};
      try_with(one, use);
    }
  }
  void after() {
    RL_ASSERT(!service.files[0].is_open && service.given_back == 0);
    service.one.drop();
    RL_ASSERT(service.given_back == 1);
  }
};

// Its owner drops it while operations are at it: it is given back by the last one, and with `again` is another one's from
// then on, whom nothing that is reported late takes for ended.
template <bool again, bool reported>
struct drop_while_used : rl::test_suite<drop_while_used<again, reported>, 3> {
  uring service;
  std::optional<descriptor_use> uses[2];

  void before() {
    service.begin(true);
    service.is_used_again = again;
    uses[0].emplace(&service.one, direction::in, taken);
    if (!reported) uses[1].emplace(&service.one);
  }
  void thread(unsigned which) {
    descriptor& one = service.one;
    if (which == 2) return one.drop();
    if (reported && which == 1) return one.report(0, {.in = true, .in_ended = true});
    use_file(0);
    service.done[which] = 1;
    uses[which].reset();
  }
  void after() {
    RL_ASSERT(service.given_back == 1 && !service.files[0].is_open && service.files[1].is_open);
    if (!again) return;
    service.one.expect_change(direction::in);
    RL_ASSERT(!service.one.may_try(direction::in) && service.one.number() == 1);
    service.one.drop();
    RL_ASSERT(service.given_back == 2 && !service.files[1].is_open);
  }
};

// ---- operations that wait -----------------------------------------------------------------------------------------------------

enum class gave : unsigned char { nothing, data, closed };

// What has come is data in the kernel.
task<> read(descriptor& one, const atomic<int>& come, gave& what) {
  const descriptor_use use{&one, direction::in, taken};
  what = gave::closed;
  if (!use) co_return;
  what = gave::nothing;
  for (;;) {
    if (one.may_try(direction::in)) {
      one.expect_change(direction::in);
      use_file(one.number());
      if (come.load(std::memory_order_relaxed) != 0) {
        one.has_more(direction::in);
        what = gave::data;
        co_return;
      }
    }
    co_await one.until_ready(direction::in);
    if (one.is_closed()) {
      what = gave::closed;
      co_return;
    }
  }
}

struct reads : model::world {
  uring service;
  atomic<int> come{0};
  stop_source stop;
  gave what = gave::nothing;

  void before() {
    begin();
    service.begin(false);
  }
  bool read_until_stopped() { return model::run(read(service.one, come, what), stop.token()); }
  void data_comes() {
    come.store(1, std::memory_order_relaxed);
    service.one.report(0, {.in = true});
  }
};

// The data comes while the reader is stopped: it has it, or who reads next does without a new change.
struct stop_and_data : rl::test_suite<stop_and_data, 3>, reads {
  bool ended = false;

  void before() { reads::before(); }
  void thread(unsigned which) {
    if (which == 0) ended = read_until_stopped();
    if (which == 1) data_comes();
    if (which == 2) stop.request_stop();
  }
  void after() {
    RL_ASSERT(ended == (what == gave::data));
    RL_ASSERT(service.one.may_try(direction::in));
    RL_ASSERT(model::run(read(service.one, come, what)) && what == gave::data);
    service.one.drop();
    RL_ASSERT(service.given_back == 1 && !service.files[0].is_open);
  }
};

// Its owner closes it, while the reader waits, or data comes for it.
template <bool with_data>
struct close_and_data : rl::test_suite<close_and_data<with_data>, with_data ? 3 : 2>, reads {
  void before() { reads::before(); }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(read_until_stopped());
    if (which == 1) service.one.close();
    if (which == 2) data_comes();
  }
  void after() {
    RL_ASSERT(what == gave::closed || (with_data && what == gave::data));
    RL_ASSERT(!service.files[0].is_open);
    service.one.drop();
    RL_ASSERT(service.given_back == 1);
  }
};

// A reader has waited, and perhaps has left, when the owner closes the socket: the system keeps the file for what is armed. So it
// is shut down, or its polls are cancelled, if there may be a duplicate.
template <bool shared>
struct armed_and_closed : rl::test_suite<armed_and_closed<shared>, 3>, reads {
  atomic<bool> has_read{false};

  void before() {
    reads::before();
    if (!shared) service.one.is_of_ours_alone();
  }
  void thread(unsigned which) {
    if (which == 0) {
      read_until_stopped();
      has_read.store(true, std::memory_order_relaxed);
    } else if (which == 1) {
      while (!service.has_armed()) rl::yield(1, RL_INFO);  // what comes before that needs no wait
      data_comes();
    } else {
      while (!has_read.load(std::memory_order_relaxed)) rl::yield(1, RL_INFO);
      service.one.close();
    }
  }
  void after() {
    RL_ASSERT(what == gave::data && !service.files[0].is_open);
    RL_ASSERT(service.is_cancelled == shared);
    RL_ASSERT(shared || service.files[0].is_shut.load(std::memory_order_relaxed));
    service.one.drop();
  }
};

// Its owner drops it while another thread closes it, as a reader does that a close() has woken.
struct closed_and_dropped : rl::test_suite<closed_and_dropped, 2> {
  uring service;

  void before() {
    service.begin(true);
    service.arm(service.one, direction::in);
  }
  void thread(unsigned which) { which == 0 ? service.one.close() : service.one.drop(); }
  void after() { RL_ASSERT(service.given_back == 1 && !service.files[0].is_open); }
};

// The ring watches no more, and then data comes, which it reports only if somebody has asked for that again. One who waits
// does.
struct disarmed : rl::test_suite<disarmed, 2>, reads {
  void before() {
    reads::before();
    service.arm(service.one, direction::in);
  }
  void thread(unsigned which) {
    if (which == 0) {
      RL_ASSERT(read_until_stopped() && what == gave::data);
      return;
    }
    service.disarm();
    come.store(1, std::memory_order_relaxed);
    while (!service.has_armed() && what != gave::data) rl::yield(1, RL_INFO);
    service.one.report(0, {.in = true});
  }
  void after() { service.one.drop(); }
};

}  // namespace

int main() {
  model::check<use_and_close<1>>("one, and close", 4);
  model::check<use_and_close<2>>("two, and close", 2, 100'000, 3);
  model::check<drop_while_used<false, false>>("dropped while used", 2, 100'000, 3);
  model::check<drop_while_used<true, false>>("used again", 2, 100'000, 3);
  model::check<drop_while_used<true, true>>("reported late", 1, 100'000, 2);
  model::check_some<stop_and_data>("a stop, and data", 300'000);
  model::check<close_and_data<false>>("closed while it waits", 1, 100'000, 2);
  model::check_some<close_and_data<true>>("closed, and data", 300'000);
  model::check_some<armed_and_closed<false>>("armed, left and closed", 300'000);
  model::check_some<armed_and_closed<true>>("the same, shared", 300'000);
  model::check<closed_and_dropped>("closed and dropped", 4);
  model::check<disarmed>("watched no more", 1, 100'000, 2);
}
