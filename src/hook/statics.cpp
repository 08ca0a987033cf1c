// Counts the initializer of a static variable in a function as a lock; see locks.cpp. Compilers call three functions of the C++
// library around it, of whose guard they read only whether its first byte is 0.
//
// A program whose C++ library is linked statically has no other such functions than these, since the linker takes no second
// definition. Then they do the work. They are weak, since clang's thread sanitizer defines them, too: then nothing is counted.
#include <pthread.h>

#include "hook/next.hpp"
#include "hook/waiting.hpp"

// The labels are the functions' names; the names in C++ are others, since headers may declare the former.
extern "C" {
[[gnu::weak]] int begin_static(unsigned char* guard) __asm__("__cxa_guard_acquire");
[[gnu::weak]] void end_static(unsigned char* guard) noexcept __asm__("__cxa_guard_release");
[[gnu::weak]] void give_up_static(unsigned char* guard) noexcept __asm__("__cxa_guard_abort");
}

namespace weft::detail {
namespace {

// Where there are no other ones. The first byte of a guard says that the variable is initialized, the second that it is being.
constinit pthread_mutex_t lock_of_statics = PTHREAD_MUTEX_INITIALIZER;
constinit pthread_cond_t one_has_ended = PTHREAD_COND_INITIALIZER;

int begin_here(unsigned char* guard) noexcept {
  ::pthread_mutex_lock(&lock_of_statics);
  while (guard[0] == 0 && guard[1] != 0) ::pthread_cond_wait(&one_has_ended, &lock_of_statics);
  const bool begins = guard[0] == 0;
  if (begins) guard[1] = 1;
  ::pthread_mutex_unlock(&lock_of_statics);
  return begins ? 1 : 0;
}
void finish(unsigned char* guard, bool is_initialized) noexcept {
  ::pthread_mutex_lock(&lock_of_statics);
  guard[1] = 0;
  if (is_initialized) __atomic_store_n(guard, 1, __ATOMIC_RELEASE);  // -> the compiler's load (no model: one store)
  ::pthread_mutex_unlock(&lock_of_statics);
  ::pthread_cond_broadcast(&one_has_ended);
}
void end_here(unsigned char* guard) noexcept { finish(guard, true); }
void give_up_here(unsigned char* guard) noexcept { finish(guard, false); }

constinit next_function<int(unsigned char*)> next_begin{"__cxa_guard_acquire", nullptr, begin_here};
constinit next_function<void(unsigned char*)> next_end{"__cxa_guard_release", nullptr, end_here};
constinit next_function<void(unsigned char*)> next_give_up{"__cxa_guard_abort", nullptr, give_up_here};
WEFT_HOOK_LOOK_UP(next_begin);
WEFT_HOOK_LOOK_UP(next_end);
WEFT_HOOK_LOOK_UP(next_give_up);

void count_begin() noexcept {
  if (hook_state* const mine = hooks_here(); mine != nullptr) ++mine->locks;
}
void count_end() noexcept {
  if (hook_state* const mine = hooks_here(); mine != nullptr && mine->locks != 0) --mine->locks;
}

}  // namespace

extern const char hooks_statics;
const char hooks_statics = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

int begin_static(unsigned char* guard) {
  const int begins = next_begin(guard);
  if (begins != 0) count_begin();
  return begins;
}
void end_static(unsigned char* guard) noexcept {
  next_end(guard);
  count_end();
}
void give_up_static(unsigned char* guard) noexcept {
  next_give_up(guard);
  count_end();
}

}  // extern "C"
