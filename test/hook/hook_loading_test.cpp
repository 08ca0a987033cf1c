// Hooks while the program and its libraries are loaded.
#include "support/weft_test.hpp"

#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <weft/error.hpp>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/runtime.hpp>

#include "hook/places.hpp"

namespace {

// On both back ends, before main() begins. If a call blocked the thread, the program would hang.
bool waits_by(weft::io_backend back_end) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return false;
  std::optional<weft::runtime> rt;
  try {
    rt.emplace(weft::runtime_options{.threads = 1, .io = back_end});
  } catch (const weft::error&) {  // the system has no rings
    return true;
  }
  char byte = 0;
  ssize_t sent = 0;
  rt->run(
      weft::start_on(rt->workers().worker(0), test::at_once({[&] { static_cast<void>(::recv(ends[0], &byte, 1, 0)); },
                                                             [&] { sent = ::write(ends[1], "x", 1); }})));
  for (const int one : ends) ::close(one);
  return sent == 1 && byte == 'x';
}
const bool waited_before_main[] = {waits_by(weft::io_backend::epoll), waits_by(weft::io_backend::uring)};

TEST(hook_loading, fibers_wait_before_main) {
  for (const bool each : waited_before_main) EXPECT_TRUE(each);
}

// By a thread for which a library's constructor waits: a call must not need the loader's lock. If one did, the test would hang.
TEST(hook_loading, a_library_loads_whose_constructor_waits_for_calls) {
  void* const library = ::dlopen(WEFT_LOADED, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto* const calls = static_cast<const int*>(::dlsym(library, "calls_as_loaded"));
  ASSERT_NE(calls, nullptr);
  EXPECT_EQ(*calls, 5);
  test::run_hooked([] {});  // so that there are hooks
}

}  // namespace
