// A planted fault: some requests are slow. Who refreshes the prices keeps their lock while it waits for another server, and all
// requests wait for that lock.
#include <chrono>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct catalogue {
  long price = 7;
  w::mutex lock;
};

w::task<long> ask_supplier() {
  co_await w::sleep_for(10min);  // a server that is slow today
  co_return 8;
}

w::task<> refresh_prices(catalogue& of) {
  for (;;) {
    auto locked = co_await of.lock.lock();
    of.price = co_await ask_supplier();  // with the lock
  }
}

w::task<> answer_request(catalogue& from) {
  auto locked = co_await from.lock.lock();
  co_await w::sleep_for(1ms);
}

w::task<> serve() {
  catalogue all;
  auto body = [&](w::scope& requests) -> w::task<> {
    requests.fork_here(refresh_prices(all));
    for (int i = 0; i != 20; ++i) requests.fork(answer_request(all));
    co_return;
  };
  co_await w::with_scope(body);
}

int main() { return w::run_main(serve()); }
