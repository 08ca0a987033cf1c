// host PLUGIN [stays]: a program that knows nothing of weft. It loads the plugin, uses it from two threads and unloads it,
// twice: then nothing of weft may be left that anybody could still call, nor any thread. `stays`: built by a compiler
// whose libraries the loader keeps.
#include <dlfcn.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <thread>

namespace {

void expect(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

bool is_mapped() {
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);)
    if (line.find("libweft") != std::string::npos) return true;
  return false;
}

bool is_handled(int signal) {
  struct sigaction action{};
  sigaction(signal, nullptr, &action);
  return action.sa_handler != SIG_DFL;
}

long threads() {
  const std::filesystem::directory_iterator tasks{"/proc/self/task"};
  return std::distance(begin(tasks), end(tasks));
}

// Of which one that was joined may still be listed for a while.
bool has_at_most(long count) {
  for (int i = 0; i != 6000 && threads() > count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  return threads() <= count;
}

void use(const char* plugin, bool stays) {
  const auto terminates = std::get_terminate();
  const long before = threads();  // more than one where a plugin that stays still has threads for calls
  void* const loaded = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  expect(loaded != nullptr, "the plugin loads");
  const auto answer = reinterpret_cast<long (*)()>(dlsym(loaded, "answer"));
  expect(answer != nullptr, "it has an answer");

  std::latch used{1}, unloaded{1};
  std::jthread other{[&] {  // outlives what it used
    expect(answer() == 665, "the answer, on another thread");
    used.count_down();
    unloaded.wait();
  }};
  expect(answer() == 665, "the answer");
  used.wait();
  expect(has_at_most(before + 1), "no thread of the plugin is left");
  const auto call = reinterpret_cast<long (*)()>(dlsym(loaded, "answer_of_a_call"));
  const auto begin_a_call = reinterpret_cast<void (*)(std::atomic<int>*)>(dlsym(loaded, "begin_a_call"));
  expect(call != nullptr && begin_a_call != nullptr, "it calls what blocks");
  for (int i = 0; i != 100; ++i) expect(call() == 665, "the answer of a call");
  std::atomic<int> at{0};
  begin_a_call(&at);
  expect(dlclose(loaded) == 0, "the plugin unloads");
  if (!stays) {
    expect(at == 3, "the call that went on was waited for, and what awaited it");
    expect(has_at_most(2), "no thread of a call is left");
    expect(!is_mapped(), "it is gone");
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS}) expect(!is_handled(signal), "no signal comes to it");
    expect(std::get_terminate() == terminates, "std::terminate does not come to it");
  }
  unloaded.count_down();
}

}  // namespace

int main(int count, char** arguments) {
  for (int round = 0; round != 2; ++round) use(arguments[1], count == 3);
  std::puts("unloaded");
}
