// Coflux's fifth example, threads with names and hops between them, in weft. A hop lasts until the task returns, and then
// it is brought home: here to the thread of main().
#include <cstdio>
#include <string>
#include <thread>
#include <weft/weft.hpp>

namespace w = weft;

class threads {
 public:
  w::executor& worker(int index) { return (index == 0 ? first_ : second_).executor(); }

  // What the running thread is called here.
  const char* here() const { return first_.is_inside() ? "worker 0" : second_.is_inside() ? "worker 1" : "main"; }

 private:
  w::pool first_{{.threads = 1}}, second_{{.threads = 1}};
};

w::task<> process(threads& group, int id) {
  std::printf("  item %d on %s\n", id, group.here());
  co_return;
}

w::task<> visit(threads& group) {
  std::printf("begins on %s\n", group.here());
  co_await w::resume_on(group.worker(0));
  std::printf("hopped to %s\n", group.here());
  for (int id = 0; id != 4; ++id) {
    w::executor& there = group.worker(id % 2);
    co_await (process(group, id) | w::start_on(there) | w::continue_on(there));
    std::printf("goes on on %s\n", group.here());
  }
}

int main() {
  threads group;
  auto and_home = [&]() -> w::task<> {
    co_await visit(group);
    std::printf("ends on %s\n", group.here());
  };
  w::sync_wait(and_home());
}
