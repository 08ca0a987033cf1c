// Counts the pthread locks that a fiber holds. While it holds one, its calls block the thread instead of suspending the fiber:
// if another fiber ran on the thread and wanted the lock, it would block the thread, and so both fibers, for ever. Waiting for
// a lock or on a condition variable also blocks the thread. What is done once counts as a lock while it is done: the function of
// pthread_once() or call_once(), and the initializer of a static variable in a function (statics.cpp). std::call_once() calls
// pthread_once() in libstdc++; in libc++ it has a mutex of its own, and is not counted.
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <cerrno>

#include "hook/next.hpp"
#include "hook/waiting.hpp"

namespace weft::detail {
namespace {

// Both take the error number of a call and return it. EOWNERDEAD also means locked: a robust mutex whose owner has died.
inline int count_lock(int answer) noexcept {
  if (hook_state* const mine = hooks_here(); mine != nullptr && (answer == 0 || answer == EOWNERDEAD)) [[unlikely]]
    ++mine->locks;
  return answer;
}
inline int count_unlock(int answer) noexcept {
  if (hook_state* const mine = hooks_here(); mine != nullptr && answer == 0 && mine->locks != 0) [[unlikely]]
    --mine->locks;
  return answer;
}

// Counts a lock as long as it lives.
class counted_lock {
 public:
  counted_lock() noexcept { count_lock(0); }
  counted_lock(const counted_lock&) = delete;
  ~counted_lock() { count_unlock(0); }
};

#if !defined(WEFT_WATCH_LOCKS)
WEFT_HOOK_NEXT(pthread_mutex_lock);
WEFT_HOOK_NEXT(pthread_mutex_trylock);
WEFT_HOOK_NEXT(pthread_mutex_timedlock);
WEFT_HOOK_NEXT(pthread_mutex_clocklock);
WEFT_HOOK_NEXT(pthread_mutex_unlock);
#endif
WEFT_HOOK_NEXT(pthread_rwlock_rdlock);
WEFT_HOOK_NEXT(pthread_rwlock_tryrdlock);
WEFT_HOOK_NEXT(pthread_rwlock_timedrdlock);
WEFT_HOOK_NEXT(pthread_rwlock_wrlock);
WEFT_HOOK_NEXT(pthread_rwlock_trywrlock);
WEFT_HOOK_NEXT(pthread_rwlock_timedwrlock);
WEFT_HOOK_NEXT(pthread_rwlock_clockrdlock);
WEFT_HOOK_NEXT(pthread_rwlock_clockwrlock);
WEFT_HOOK_NEXT(pthread_rwlock_unlock);
WEFT_HOOK_NEXT(pthread_spin_lock);
WEFT_HOOK_NEXT(pthread_spin_trylock);
WEFT_HOOK_NEXT(pthread_spin_unlock);
WEFT_HOOK_NEXT(mtx_lock);
WEFT_HOOK_NEXT(mtx_trylock);
WEFT_HOOK_NEXT(mtx_timedlock);
WEFT_HOOK_NEXT(mtx_unlock);
WEFT_HOOK_NEXT(pthread_once);
WEFT_HOOK_NEXT(call_once);

}  // namespace

extern const char hooks_locks;
const char hooks_locks = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

#if !defined(WEFT_WATCH_LOCKS)
int pthread_mutex_lock(pthread_mutex_t* one) noexcept { return count_lock(next_pthread_mutex_lock(one)); }
int pthread_mutex_trylock(pthread_mutex_t* one) noexcept { return count_lock(next_pthread_mutex_trylock(one)); }
int pthread_mutex_timedlock(pthread_mutex_t* one, const timespec* until) noexcept {
  return count_lock(next_pthread_mutex_timedlock(one, until));
}
int pthread_mutex_clocklock(pthread_mutex_t* one, clockid_t by, const timespec* until) noexcept {
  return count_lock(next_pthread_mutex_clocklock(one, by, until));
}
int pthread_mutex_unlock(pthread_mutex_t* one) noexcept { return count_unlock(next_pthread_mutex_unlock(one)); }
#endif

int pthread_rwlock_rdlock(pthread_rwlock_t* one) noexcept { return count_lock(next_pthread_rwlock_rdlock(one)); }
int pthread_rwlock_tryrdlock(pthread_rwlock_t* one) noexcept { return count_lock(next_pthread_rwlock_tryrdlock(one)); }
int pthread_rwlock_timedrdlock(pthread_rwlock_t* one, const timespec* until) noexcept {
  return count_lock(next_pthread_rwlock_timedrdlock(one, until));
}
int pthread_rwlock_wrlock(pthread_rwlock_t* one) noexcept { return count_lock(next_pthread_rwlock_wrlock(one)); }
int pthread_rwlock_trywrlock(pthread_rwlock_t* one) noexcept { return count_lock(next_pthread_rwlock_trywrlock(one)); }
int pthread_rwlock_timedwrlock(pthread_rwlock_t* one, const timespec* until) noexcept {
  return count_lock(next_pthread_rwlock_timedwrlock(one, until));
}
int pthread_rwlock_clockrdlock(pthread_rwlock_t* one, clockid_t by, const timespec* until) noexcept {
  return count_lock(next_pthread_rwlock_clockrdlock(one, by, until));
}
int pthread_rwlock_clockwrlock(pthread_rwlock_t* one, clockid_t by, const timespec* until) noexcept {
  return count_lock(next_pthread_rwlock_clockwrlock(one, by, until));
}
int pthread_rwlock_unlock(pthread_rwlock_t* one) noexcept { return count_unlock(next_pthread_rwlock_unlock(one)); }

int pthread_spin_lock(pthread_spinlock_t* one) noexcept { return count_lock(next_pthread_spin_lock(one)); }
int pthread_spin_trylock(pthread_spinlock_t* one) noexcept { return count_lock(next_pthread_spin_trylock(one)); }
int pthread_spin_unlock(pthread_spinlock_t* one) noexcept { return count_unlock(next_pthread_spin_unlock(one)); }

// glibc's mtx functions lock the mutex without calling the symbols above. thrd_success is 0.
int mtx_lock(mtx_t* one) { return count_lock(next_mtx_lock(one)); }
int mtx_trylock(mtx_t* one) { return count_lock(next_mtx_trylock(one)); }
int mtx_timedlock(mtx_t* one, const timespec* until) { return count_lock(next_mtx_timedlock(one, until)); }
int mtx_unlock(mtx_t* one) { return count_unlock(next_mtx_unlock(one)); }

int pthread_once(pthread_once_t* which, void (*initialize)()) {
  const counted_lock meanwhile;
  return next_pthread_once(which, initialize);
}
// glibc's does not call the symbol above.
void call_once(once_flag* which, void (*initialize)()) {
  const counted_lock meanwhile;
  next_call_once(which, initialize);
}

}  // extern "C"
