// Runs both halves, each of which awaits the other compiler's task, too, on a thread with little stack.
#include <pthread.h>

#include <weft/task.hpp>

namespace one {
weft::task<bool> runs(long million);
bool unwinds();
}  // namespace one
namespace other {
weft::task<bool> runs(long million);
bool unwinds();
}  // namespace other

namespace {

weft::task<bool> both() { co_return co_await one::runs(1'000'000) && co_await other::runs(1'000'000); }

void* run(void* passed) {
  *static_cast<bool*>(passed) = weft::sync_wait(both()) && one::unwinds() && other::unwinds();
  return nullptr;
}

}  // namespace

int main() {
  bool passed = false;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256u << 10);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, run, &passed) != 0) return 2;
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return passed ? 0 : 1;
}
