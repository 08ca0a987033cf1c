// The limit: one thread, whatever --size says; no lock, no stop, one in line at most. Who is woken runs when the one that woke it waits.
#include "workload.hpp"

#include "../harness/handwritten_turns.hpp"

namespace {

using handwritten::coroutine;

// A rendezvous.
class channel {
 public:
  explicit channel(handwritten::turns& in) noexcept : in_{in} {}

  auto send(std::size_t value) noexcept {
    struct awaiter {
      channel& to;
      std::size_t value;
      bool await_ready() const noexcept {
        if (!to.receiver_) return false;
        *to.slot_ = value;
        to.in_.next = std::exchange(to.receiver_, {});
        return true;
      }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> self) noexcept {
        to.sender_ = self;
        to.slot_ = &value;
        return to.in_.go_on();
      }
      void await_resume() const noexcept {}
    };
    return awaiter{*this, value};
  }
  auto receive() noexcept {
    struct awaiter {
      channel& from;
      std::size_t value = 0;
      bool await_ready() noexcept {
        if (!from.sender_) return false;
        value = *from.slot_;
        from.in_.next = std::exchange(from.sender_, {});
        return true;
      }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> self) noexcept {
        from.receiver_ = self;
        from.slot_ = &value;
        return from.in_.go_on();
      }
      std::size_t await_resume() const noexcept { return value; }
    };
    return awaiter{*this};
  }

 private:
  handwritten::turns& in_;
  std::coroutine_handle<> sender_, receiver_;
  std::size_t* slot_ = nullptr;  // of who waits
};

coroutine echo(channel& there, channel& back) {
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) co_await back.send(co_await there.receive() + 1);
}

coroutine call(channel& there, channel& back, std::size_t& number) {
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    co_await there.send(number);
    number = co_await back.receive();
  }
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(pingpong_rounds, pingpong_rounds, [&] {
    handwritten::turns in;
    channel there{in}, back{in};
    std::size_t number = 0;
    const coroutine one = echo(there, back), other = call(there, back, number);
    one.self.resume();
    in.next = other.self;
    while (in.next) in.go_on().resume();
    return number;
  });
}
