#include "core/lock_watch.hpp"

#if defined(WEFT_WATCH_LOCKS)

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <coroutine>
#include <string>
#include <weft/async_frame.hpp>
#include <weft/detail/core/root.hpp>

#include "core/worker.hpp"

namespace weft::detail {
namespace {

struct note {
  const pthread_mutex_t* lock;
  const root* by;        // its address only
  const void* function;  // innermost in it, or null
};
struct notes {
  static constexpr unsigned most = 64;
  note of[most];
  unsigned count;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local notes held{};

const void* innermost_function(const root& of) noexcept {
  const auto* const one = static_cast<const frame*>(std::coroutine_handle<>{of.top}.address());
  if (one == nullptr) return nullptr;
  return reinterpret_cast<const void*>(one->resume != nullptr ? one->resume : one->destroy);
}

void locked(const pthread_mutex_t* lock) noexcept {
  const worker* here = worker_of_thread;
  if (here == nullptr || here->current == nullptr || held.count == notes::most) return;
  held.of[held.count++] = {lock, here->current, innermost_function(*here->current)};
}

void unlocked(const pthread_mutex_t* lock) noexcept {
  for (unsigned i = held.count; i != 0; --i)
    if (held.of[i - 1].lock == lock) {
      held.of[i - 1] = held.of[--held.count];
      return;
    }
}

// The function of the C library, which is looked up once. Not in a local static, since its guard may take a lock.
template <class Function>
Function* next(std::atomic<Function*>& cache, const char* name) noexcept {
  Function* found = cache.load(std::memory_order_relaxed);  // it points to code, which has always been there
  if (found == nullptr) {
    found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
    cache.store(found, std::memory_order_relaxed);  // every thread finds the same function
  }
  return found;
}

// Of a robust mutex whose owner has ended it says so, and is locked.
int lock(pthread_mutex_t* one, int answer) noexcept {
  if (answer == 0 || answer == EOWNERDEAD) locked(one);
  return answer;
}

}  // namespace

unsigned locks_held() noexcept { return held.count; }

void expect_no_more_locks(unsigned before) noexcept {
  if (held.count <= before) [[likely]]
    return;
  worker_of_thread->current = nullptr;  // the root may run elsewhere, or be gone, so fail() must not look at it
  const std::string function = async_frame{held.of[held.count - 1].function}.function();
  fail(("a task waits while it holds a std::mutex, which " + (function.empty() ? "it" : function) +
        " has locked: whoever wants that on this thread blocks it for ever, and the task may go on on another one. "
        "Unlock it before, or take a weft::mutex")
           .c_str());
}

bool holds_locks() noexcept {
  for (unsigned i = 0; i != held.count; ++i)
    if (held.of[i].by == worker_of_thread->current) return true;
  return false;
}

void expect_no_locks() noexcept {
  for (unsigned i = 0; i != held.count; ++i)
    WEFT_EXPECTS(held.of[i].by != worker_of_thread->current,
                 "a fiber waits while it holds a std::mutex: whoever wants that on this thread blocks it for ever, and "
                 "the fiber may go on on another one. Unlock it before, or take a weft::mutex");
}

}  // namespace weft::detail

// These take the place of the C library's functions, and call them.
extern "C" {

int pthread_mutex_lock(pthread_mutex_t* one) noexcept {
  static constinit std::atomic<int (*)(pthread_mutex_t*)> real{nullptr};
  return weft::detail::lock(one, weft::detail::next(real, "pthread_mutex_lock")(one));
}

int pthread_mutex_trylock(pthread_mutex_t* one) noexcept {
  static constinit std::atomic<int (*)(pthread_mutex_t*)> real{nullptr};
  return weft::detail::lock(one, weft::detail::next(real, "pthread_mutex_trylock")(one));
}

int pthread_mutex_timedlock(pthread_mutex_t* one, const timespec* until) noexcept {
  static constinit std::atomic<int (*)(pthread_mutex_t*, const timespec*)> real{nullptr};
  return weft::detail::lock(one, weft::detail::next(real, "pthread_mutex_timedlock")(one, until));
}

int pthread_mutex_clocklock(pthread_mutex_t* one, clockid_t by, const timespec* until) noexcept {
  static constinit std::atomic<int (*)(pthread_mutex_t*, clockid_t, const timespec*)> real{nullptr};
  return weft::detail::lock(one, weft::detail::next(real, "pthread_mutex_clocklock")(one, by, until));
}

int pthread_mutex_unlock(pthread_mutex_t* one) noexcept {
  static constinit std::atomic<int (*)(pthread_mutex_t*)> real{nullptr};
  const auto unlock = weft::detail::next(real, "pthread_mutex_unlock");
  weft::detail::unlocked(one);
  return unlock(one);
}

}  // extern "C"

#endif
