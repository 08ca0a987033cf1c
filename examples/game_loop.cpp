// Runs tasks inside a loop that somebody else owns. The loop pumps a manual_executor once a frame; whatever a task
// waits for, it goes on in that pump, on the loop's thread, and nowhere else.
#include <coroutine>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;

class game {
 public:
  // Awaits the next frame. It knows nothing of weft: an awaitable as any library might have it, which keeps the handle
  // and resumes it. weft hands it a handle that brings the task back to its executor.
  auto next_frame() {
    struct awaiter {
      game& in;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> waiting) { in.waiting_.push_back(waiting); }
      void await_resume() const noexcept {}
    };
    return awaiter{*this};
  }

  int frame() const { return frame_; }
  w::executor& executor() { return pump_; }

  void draw_frame() {
    ++frame_;
    for (std::coroutine_handle<> one : std::exchange(waiting_, {})) one.resume();  // posts to pump_, no more
    pump_.run_all();
  }

 private:
  int frame_ = 0;
  std::vector<std::coroutine_handle<>> waiting_;
  w::manual_executor pump_;
};

w::task<int> walk(game& in, std::string who, int steps) {
  for (int step = 1; step <= steps; ++step) {
    co_await in.next_frame();
    std::printf("frame %d: %s takes step %d\n", in.frame(), who.c_str(), step);
  }
  co_return steps;
}

w::task<> play(game& in) {
  auto [knight, dragon] = co_await w::when_all(walk(in, "the knight", 2), walk(in, "the dragon", 3));
  std::printf("frame %d: they meet after %d steps\n", in.frame(), knight + dragon);
}

int main() {
  game adventure;
  bool over = false;
  w::start(adventure.executor(), play(adventure), [&](w::result<void> how) {
    over = true;
    if (!how) std::printf("the story broke off\n");
  });
  while (!over) adventure.draw_frame();
}
