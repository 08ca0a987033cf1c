// The limit: a channel is one slot, whoever finds it empty waits in it, and who is woken runs when the one that woke it
// waits. Nobody looks whether there is room.
#include "workload.hpp"

#include "../harness/handwritten_turns.hpp"

#include <deque>
#include <vector>

namespace {

using handwritten::coroutine;
using handwritten::turns;

class slot {
 public:
  void put(turns& in, std::size_t value) noexcept {
    value_ = value;
    full_ = true;
    in.next = receiver_;
  }

  auto take(turns& in) noexcept {
    struct awaiter {
      slot& from;
      turns& in;
      bool await_ready() const noexcept { return from.full_; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> self) const noexcept {
        from.receiver_ = self;
        return in.go_on();
      }
      std::size_t await_resume() const noexcept {
        from.full_ = false;
        return from.value_;
      }
    };
    return awaiter{*this, in};
  }

 private:
  std::size_t value_ = 0;
  std::coroutine_handle<> receiver_;
  bool full_ = false;
};

struct channels {
  slot in, out;
};

constexpr auto closed = static_cast<std::size_t>(-1);

coroutine echo(turns& all, channels& mine) {
  for (std::size_t number; (number = co_await mine.in.take(all)) != closed;) mine.out.put(all, number);
}

class echoes {
 public:
  explicit echoes(std::size_t count) : all_(count) { echoes_.reserve(count); }

  void start() {
    for (auto& one : all_) echoes_.push_back(echo(turns_, one)), echoes_.back().self.resume();
  }

  std::size_t sweep() {
    std::size_t sum = 0;
    const coroutine one = serve(sum);
    one.self.resume();
    return sum;
  }

  void close() {
    for (auto& one : all_) {
      one.in.put(turns_, closed);
      turns_.go_on().resume();
    }
    for (const auto& one : echoes_)
      if (!one.self.done()) throw bench::wrong_result{"an echo has not ended"};
  }

 private:
  coroutine serve(std::size_t& sum) {
    std::size_t number = 0;
    for (auto& one : all_) {
      one.in.put(turns_, number++);
      sum += co_await one.out.take(turns_);
    }
  }

  turns turns_;
  std::deque<channels> all_;
  std::vector<coroutine> echoes_;
};

}  // namespace

void bench::run(bench::state& state) { measure_goroutines<echoes>(state); }
