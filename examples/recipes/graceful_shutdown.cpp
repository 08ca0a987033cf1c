// Graceful shutdown: at SIGTERM no more comes in; what is at work may end, for two seconds; who is left then is stopped; and
// what all of them use is closed last. The order is that of the blocks, so there is no list of what to close when.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <utility>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct database {
  std::atomic<int> begun = 0, answered = 0;
  ~database() { std::printf("the database is closed\n"); }
};

w::task<> handle(database& store, std::chrono::milliseconds takes) {
  ++store.begun;
  co_await w::sleep_for(takes);
  ++store.answered;
}

w::task<> take_requests(w::scope& requests, database& store) {
  for (int i = 0;; ++i) {
    co_await w::sleep_for(10ms);  // stands for the next one that comes
    requests.fork(handle(store, i == 17 ? 1h : 95ms));
  }
}

w::task<> serve(database& store, w::task<int> told) {
  w::event draining;
  const auto take = [&](w::scope& requests) -> w::task<> {
    auto until_told = w::when_any(take_requests(requests, store), std::move(told));
    co_await std::move(until_told);
    draining.set();
  };  // the scope waits for those that are at work
  const auto be_patient = [&]() -> w::task<> {
    co_await draining.wait();
    std::printf("at the signal %d of %d are answered\n", store.answered.load(), store.begun.load());
    co_await w::sleep_for(2s);
  };
  co_await w::when_any(w::with_scope(take), be_patient());  // whichever ends first stops the other
  std::printf("at the end %d\n", store.answered.load());
}

w::task<> end_program() {  // stands for who does
  co_await w::sleep_for(212ms);
  std::raise(SIGTERM);
}

w::task<> run() {
  database store;  // outlives all who use it
  co_await w::when_all(serve(store, w::interrupted()), end_program());
}

int main() { w::test::run(run); }  // in a program: return w::run_main(run());
