// A connection pool: at most four connections, made when they are first needed, and lent to who waits longest. The pool is a
// channel with four slots, a slot a connection or none yet. A lease puts its slot back wherever it ends. What a failure or a
// stop has left in the middle of an answer is closed, and not lent again.
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct connection {
  bool is_idle = true;
  w::task<int> query(int n) {
    is_idle = false;
    co_await w::sleep_for(n == 50 ? 1h : 10ms);
    is_idle = true;
    co_return n;
  }
};
using slot = std::unique_ptr<connection>;

struct lease {
  lease(w::channel<slot>& slots, slot mine) : one{std::move(mine)}, slots_{&slots} {}
  lease(lease&& other) noexcept : one{std::move(other.one)}, slots_{std::exchange(other.slots_, nullptr)} {}
  ~lease() {
    if (slots_ == nullptr) return;
    if (one && !one->is_idle) one.reset();
    static_cast<void>(slots_->try_send(std::move(one)));  // there is room: it came from there
  }
  slot one;

 private:
  w::channel<slot>* slots_;
};

class connection_pool {
 public:
  explicit connection_pool(std::size_t most) : slots_{most} {
    for (std::size_t i = 0; i != most; ++i) static_cast<void>(slots_.try_send(nullptr));
  }
  w::task<lease> take() {  // a timeout around it limits how long one waits in line
    std::optional<slot> free = co_await slots_.receive();
    lease mine{slots_, std::move(*free)};
    if (!mine.one) mine.one = co_await connect();  // if that fails, or is stopped, the slot goes back
    co_return mine;
  }
  std::size_t free() const { return slots_.size(); }  // of the slots: now
  std::atomic<int> made = 0;

 private:
  w::task<slot> connect() {
    co_await w::sleep_for(30ms);
    ++made;
    co_return std::make_unique<connection>();
  }
  w::channel<slot> slots_;
};

w::task<w::result<int>> ask(connection_pool& from, int n) {
  const lease mine = co_await from.take();
  co_return co_await w::as_result(w::timeout(100ms, mine.one->query(n)));
}

w::task<> run() {
  connection_pool pool{4};
  std::vector<w::task<w::result<int>>> all;
  for (int n = 0; n != 100; ++n) all.push_back(ask(pool, n));
  int answers = 0;
  for (const auto& answer : co_await w::when_all(std::move(all))) answers += answer ? 1 : 0;
  std::printf("%d answers by %d connections in %d ms\n", answers, pool.made.load(),
              static_cast<int>(w::test::elapsed() / 1ms));
}

int main() { w::test::run(run); }
