// A planted fault: it hangs. Two transfers lock the same two accounts, each in its own order. The observer names the circle, without
// a line of code here: servers/fault_deadlock shows it.
#include <chrono>
#include <cstdio>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct account {
  long balance = 100;
  w::mutex lock;
};

w::task<> write_audit_log() { co_await w::sleep_for(1ms); }

w::task<> transfer(account& from, account& to, long amount) {
  auto locked_from = co_await from.lock.lock();
  co_await write_audit_log();
  auto locked_to = co_await to.lock.lock();
  from.balance -= amount;
  to.balance += amount;
}

w::task<> close_of_business() {
  account alice, bob;
  co_await w::when_all(transfer(alice, bob, 10), transfer(bob, alice, 20));
  std::printf("alice has %ld, bob has %ld\n", alice.balance, bob.balance);
}

int main() { return w::run_main(close_of_business()); }
