// expect: this awaitable demands a promise of its own library, so a weft task cannot await it
#include <weft/task.hpp>

struct their_promise {
  int context;
};
struct theirs {
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<their_promise>) const {}
  void await_resume() const {}
};

weft::task<> caller() { co_await theirs{}; }

int main() {}
