// A planted fault: it hangs. Two transfers lock the same two accounts, each in its own order. The observer names the circle, without
// a line of code here: servers/fault_deadlock shows it.
#include <cstdio>
#include <weft/weft.hpp>

namespace w = weft;

struct account {
  long balance = 100;
  w::mutex lock;
};

w::task<> transfer(account& from, account& to, long amount, w::latch& one_each) {
  auto locked_from = co_await from.lock.lock();
  co_await one_each.arrive_and_wait();  // so that it hangs each time, not once a week
  auto locked_to = co_await to.lock.lock();
  from.balance -= amount;
  to.balance += amount;
}

w::task<> close_of_business() {
  account alice, bob;
  w::latch one_each{2};
  co_await w::when_all(transfer(alice, bob, 10, one_each), transfer(bob, alice, 20, one_each));
  std::printf("alice has %ld, bob has %ld\n", alice.balance, bob.balance);
}

int main() { return w::run_main(close_of_business()); }
