// Finds a planted bug: a transfer between two accounts that can be stopped half way. A test that only looks at how it ends
// passes; the sweep stops it at each of its awaits, and tells where the money was lost. Then the same, mended.
#include <chrono>
#include <cstdio>
#include <string>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct account {
  int balance = 0;
};

w::task<> write_to_log() { co_await w::sleep_for(10ms); }  // a disk, or another machine

w::task<> transfer(account& from, account& to, int amount) {
  from.balance -= amount;
  co_await write_to_log();  // a stop here, and the money is nowhere
  to.balance += amount;
}

w::task<> transfer_whole(account& from, account& to, int amount) {
  co_await w::shielded(transfer(from, to, amount));  // a stop waits until it is done
}

template <auto how>
struct moves_money {
  account ours{100}, theirs;

  w::task<> run() { co_await how(ours, theirs, 70); }
  void check() const { w::test::require(ours.balance + theirs.balance == 100, "money was lost"); }
};

int main() {
  const auto moved = w::test::run([]() -> w::task<int> {
    account ours{100}, theirs;
    co_await transfer(ours, theirs, 70);
    co_return theirs.balance;
  });
  std::printf("without a stop: %d moved\n", moved);

  try {
    w::test::cancellation_sweep<moves_money<transfer>>("transfer");
  } catch (const w::test::failure& found) {
    const std::string report = found.what();
    std::printf("%s\n",
                report.substr(0, report.find("\nthe task")).c_str());  // the stack of who was stopped is left out
  }
  w::test::cancellation_sweep<moves_money<transfer_whole>>("transfer_whole");
}
