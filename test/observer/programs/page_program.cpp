// What is shown on the observer's page in its test, and in the README: a bank whose transfers wait for each other, beside clients that
// are served, and a fiber. Says where it answers, and goes on until its input ends.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <weft/observer.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

namespace bank {

struct account {
  w::mutex lock;
  long balance = 100;
};

w::task<> transfer(account& from, account& to, w::barrier& both) {
  auto mine = co_await from.lock.lock();
  co_await both.arrive_and_wait();  // each has one lock by now
  auto other = co_await to.lock.lock();
  --from.balance;
  ++to.balance;
}

w::task<> transfer_both_ways(account& a, account& b) {
  w::barrier both{2};
  co_await w::when_all(transfer(a, b, both), transfer(b, a, both));
}

}  // namespace bank

namespace serving {

w::task<> serve_client(w::channel<std::string>& requests) {
  while (auto request = co_await requests.receive()) co_await w::sleep_for(1ms);
}

w::task<> ticker() {
  for (;;) co_await w::sleep_for(5ms);
}

void reporter(w::event& asked) {
  for (;;) {
    w::await(asked.wait());
  }
}

w::task<> compress(unsigned& checksum) {
  for (;;) {
    for (unsigned i = 0; i != 20'000; ++i) checksum = checksum * 31 + i;
    co_await w::sleep_for(2ms);
  }
}

}  // namespace serving

w::task<> program() {
  bank::account alice, bob;
  w::channel<std::string> requests{8};
  w::event asked;
  unsigned checksum = 1;
  auto body = [&](w::scope& all) -> w::task<> {
    all.fork(bank::transfer_both_ways(alice, bob));
    for (int i = 0; i != 24; ++i) all.fork(serving::serve_client(requests));
    all.fork(serving::ticker());
    all.fork(serving::compress(checksum));
    all.go(serving::reporter, std::ref(asked));
    co_return;
  };
  co_await w::with_scope(body);
}

int main(int count, char** arguments) {
  const char* const directory = count > 1 ? arguments[1] : nullptr;
  const w::observer watching{{.http = true, .directory = directory}};
  std::printf("http://127.0.0.1:%d/ %s\n", watching.http_port(), std::string{watching.token()}.c_str());
  std::fflush(stdout);
  const w::pool marked{{.threads = 1, .name = "<b>batch</b>"}};  // a name that is no HTML
  w::pool workers{{.threads = 3, .name = "serve"}};
  std::thread forever{[&] { workers.run(program()); }};
  char none;
  while (::read(STDIN_FILENO, &none, 1) > 0) continue;
  ::_exit(0);  // a deadlock has no end
}
