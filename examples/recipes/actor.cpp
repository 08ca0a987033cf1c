// An actor: one task owns the state and reads its mailbox, so the state needs no lock, and anybody may write from any thread. A
// question carries the promise of its answer. The mailbox is bounded: whoever sends faster than the actor works waits.
#include <cstdio>
#include <utility>
#include <variant>
#include <weft/weft.hpp>

namespace w = weft;

class account {
 public:
  w::task<> run() {
    long balance = 0;  // no other task ever touches it
    while (auto one = co_await mailbox_.receive()) {
      if (auto* paid = std::get_if<payment>(&*one))
        balance += paid->amount;
      else
        std::get<question>(*one).answer.set_value(balance);
    }
  }

  w::task<> pay(long amount) {
    message one = payment{amount};
    co_await mailbox_.send(std::move(one));
  }
  w::task<long> balance() {
    w::promise<long> answer;
    w::future<long> waiting = answer.get_future();
    message one = question{std::move(answer)};
    co_await mailbox_.send(std::move(one));
    co_return co_await std::move(waiting);
  }
  void close() { mailbox_.close(); }  // what was sent before is still done

 private:
  struct payment {
    long amount;
  };
  struct question {
    w::promise<long> answer;
  };
  using message = std::variant<payment, question>;
  w::channel<message> mailbox_{16};
};

w::task<> pay_often(account& to) {
  for (int i = 0; i != 1000; ++i) co_await to.pay(1);
}

w::task<> use(account& mine) {
  co_await w::when_all(pay_often(mine), pay_often(mine), pay_often(mine));
  std::printf("balance %ld\n", co_await mine.balance());
  mine.close();
}

int main() {
  w::pool threads{{.threads = 2}};
  account mine;
  threads.run(w::when_all(mine.run(), use(mine)));
}
