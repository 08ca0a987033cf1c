// A library whose constructor starts a thread and waits for its end, as some do that look at the machine. The loader holds its lock
// meanwhile. The thread's calls are those of a program with hooks, each the first one of its kind.
#include <pthread.h>
#include <sys/select.h>
#include <threads.h>
#include <unistd.h>

#include <thread>

extern "C" {
int calls_as_loaded = 0;
}

namespace {

void make_calls() {
  char byte = 0;
  calls_as_loaded += ::pread(-1, &byte, 1, 0) == -1 ? 1 : 0;
  timeval none{0, 0};
  calls_as_loaded += ::select(0, nullptr, nullptr, nullptr, &none) == 0 ? 1 : 0;
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  calls_as_loaded += ::pthread_rwlock_tryrdlock(&lock) == 0 ? 1 : 0;
  calls_as_loaded += ::pthread_rwlock_unlock(&lock) == 0 ? 1 : 0;
  calls_as_loaded += ::usleep(0) == 0 ? 1 : 0;
}

[[gnu::constructor]] void begin() { std::thread{make_calls}.join(); }

}  // namespace
