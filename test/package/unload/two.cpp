// two PLUGIN OTHER FUNCTION...: two plugins with weft inside are loaded where each sees the other's names, both are used, and
// they are unloaded in either order. What each made goes with it: the one that is left works, and at last nothing is left.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

void expect(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  std::exit(1);
}

long threads() {
  const std::filesystem::directory_iterator tasks{"/proc/self/task"};
  return std::distance(begin(tasks), end(tasks));
}

// Of which one that was joined may still be listed for a while.
bool has_one_thread() {
  for (int i = 0; i != 6000 && threads() != 1; ++i) ::usleep(10'000);
  return threads() == 1;
}

void* load(const char* plugin) {
  void* const loaded = dlopen(plugin, RTLD_NOW | RTLD_GLOBAL);
  expect(loaded != nullptr, std::string{plugin} + " loads");
  return loaded;
}

bool is_loaded(const char* plugin) { return dlopen(plugin, RTLD_NOW | RTLD_NOLOAD) != nullptr; }

void use(void* plugin, char** functions) {
  for (char** name = functions; *name != nullptr; ++name) {
    auto* const f = reinterpret_cast<int (*)()>(dlsym(plugin, *name));
    expect(f != nullptr && f() == 0, *name);
  }
}

void round(const char* first, const char* last, bool first_goes_first, char** functions) {
  void* const one = load(first);
  void* const other = load(last);
  use(one, functions);
  use(other, functions);
  void* const gone = first_goes_first ? one : other;
  void* const left = first_goes_first ? other : one;
  expect(dlclose(gone) == 0, "one is let go");
  use(left, functions);
  expect(dlclose(left) == 0, "the other is let go");
  expect(!is_loaded(first) && !is_loaded(last), "both are unloaded");
  expect(has_one_thread(), "no thread of theirs is left");
}

}  // namespace

int main(int, char** arguments) {
  for (int i = 0; i != 6; ++i) round(arguments[1], arguments[2], i % 2 == 0, arguments + 3);
  std::puts("unloaded");
}
