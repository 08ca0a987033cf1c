// grows PLUGIN FUNCTION...: loads the plugin, calls each function, and unloads it, again and again. What it took goes with
// it: neither the memory nor the address space of the process grows. Another thread that used it lives on all the time.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

constexpr int rounds_before = 20, rounds = 50;  // of which each half must grow: what comes once is no leak
// In KiB a round, of what stays: a page more and a signal stack more of each are seen, and not a thread's stack more of one,
// or what malloc and the loader have in another place now.
constexpr long most_resident = 2, most_mapped = 32;
constexpr long most_in_use = 100;  // in bytes a round, of what malloc has given

void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

struct memory {
  long resident = 0, mapped = 0;  // in KiB
  long in_use = 0;                // of malloc's, in bytes
};
memory memory_now() {
  memory now;
  std::string word;
  for (std::ifstream file{"/proc/self/smaps_rollup"}; file >> word;)
    if (word == "Rss:") file >> now.resident;
  for (std::ifstream file{"/proc/self/status"}; file >> word;)
    if (word == "VmSize:") file >> now.mapped;
  now.in_use = static_cast<long>(::mallinfo2().uordblks);
  return now;
}

// The same thread in each round.
class other_thread {
 public:
  void call(int (*f)()) {
    work_.store(f);
    work_.notify_one();
    work_.wait(f);
  }
  ~other_thread() {
    work_.store(end);
    work_.notify_one();
  }

 private:
  static int end() { return 0; }

  void run() {
    for (;;) {
      work_.wait(nullptr);
      auto* const f = work_.load();
      if (f == end) return;
      if (f() != 0) fail("it failed on another thread");
      work_.store(nullptr);
      work_.notify_one();
    }
  }

  std::atomic<int (*)()> work_{nullptr};
  std::jthread thread_{[this] { run(); }};  // joined first: it uses the above
};

void round(const char* plugin, char** functions, other_thread& other) {
  void* const loaded = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) fail(dlerror());
  for (char** name = functions; *name != nullptr; ++name) {
    auto* const f = reinterpret_cast<int (*)()>(dlsym(loaded, *name));
    if (f == nullptr) fail(dlerror());
    if (f() != 0) fail(std::string{*name} + " failed");
    other.call(f);
  }
  if (dlclose(loaded) != 0) fail(dlerror());
  if (void* const there = dlopen(plugin, RTLD_NOW | RTLD_NOLOAD); there != nullptr) fail("it was not unloaded");
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGPROF}) {
    struct sigaction now;
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)
      fail("a handler of signal " + std::to_string(number) + " has stayed");
  }
}

}  // namespace

int main(int, char** arguments) {
  mallopt(M_ARENA_MAX, 1);  // else its arenas come and go with threads
  pthread_attr_t small;     // so that a thread's stack more or less in the system's cache is not much
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, std::size_t{256} << 10);
  pthread_setattr_default_np(&small);
  other_thread other;
  memory at[3];
  for (int i = 0; i != rounds_before + rounds; ++i) {
    if (i == rounds_before) at[0] = memory_now();
    if (i == rounds_before + rounds / 2) at[1] = memory_now();
    round(arguments[1], arguments + 2, other);
  }
  at[2] = memory_now();
  const auto grown = [&at](long memory::* of) { return 2 * std::min(at[1].*of - at[0].*of, at[2].*of - at[1].*of); };
  const long resident = grown(&memory::resident), mapped = grown(&memory::mapped), in_use = grown(&memory::in_use);
  std::printf("%s ...: in %d rounds resident %ld KiB more, mapped %ld KiB more, %ld bytes more in use\n", arguments[2],
              rounds, resident, mapped, in_use);
  return resident > most_resident * rounds || mapped > most_mapped * rounds || in_use > most_in_use * rounds ? 1 : 0;
}
