// 10,000 entities of a game, each a coroutine: what one does is a plain loop that waits for frames, instead of a state machine.
// All of them run in the thread that draws, between two frames, so what they share needs no lock.
#include <cstdio>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;

class world {
 public:
  int frame = 0, alive = 0;

  // Begins, and runs each entity up to where it waits for the first frame.
  explicit world(int entities) {
    auto all = w::with_scope(&world::populate, this, entities);
    w::start(pump_, std::move(all), [this](const w::result<void>&) { is_over_ = true; }, ending_.token());
    pump_.run_all();
  }
  ~world() {
    ending_.request_stop();  // ends those that are left, in whatever they do
    while (!is_over_) pump_.run_all();
  }

  void next_frame() {
    ++frame;
    tick_.set();  // wakes all that wait for this frame
    tick_.reset();
    pump_.run_all();  // each up to where it waits for the next one
  }

 private:
  w::task<> populate(w::scope& all, int entities) {
    for (int i = 0; i != entities; ++i) all.fork(patrol(i % 100, 1 + i % 5));
    co_return;
  }

  w::task<> patrol(int place, int rounds) {  // an entity
    ++alive;
    for (; rounds != 0; --rounds) {
      co_await walk(place, +3);
      for (int rest = 0; rest != 2; ++rest) co_await tick_.wait();
      co_await walk(place, -3);
    }
    --alive;
  }
  w::task<> walk(int& place, int by) {
    for (const int to = place + by; place != to; place += by > 0 ? 1 : -1) co_await tick_.wait();
  }

  w::manual_executor pump_;
  w::event tick_;
  w::stop_source ending_;
  bool is_over_ = false;
};

int main() {
  world all{10'000};
  while (all.frame != 32) {
    all.next_frame();  // and draw it
    if (all.frame % 8 == 0) std::printf("frame %d: %d are alive\n", all.frame, all.alive);
  }
}
