// Watches the locks of a debug build: a task or fiber must not wait while it holds a std::mutex. Other code that runs on this
// thread meanwhile and locks the mutex blocks the thread on which the holder would resume. And the holder may resume on
// another thread, which must not unlock the mutex.
//
// Debug builds are those that the build says are (WEFT_WATCH_LOCKS; by CMake the configuration Debug without a
// sanitizer). There the library defines the functions of pthread_mutex_t in front of the C library's: each thread notes
// what was locked inside a root, and which function of it was innermost. The run loop looks at the notes where nothing is
// left to resume, so that what runs has suspended; a fiber where it is about to switch away. By then a primitive has
// given back the lock that it parked under.
//
// It does not see: locks that are no pthread_mutex_t (std::shared_mutex, spin locks, those of other libraries); what code
// locks that binds to the C library before this (-Bsymbolic, static executables); more than 64 at once on a thread; a
// task that holds one while it awaits another, until one of them waits. It blames a task for a mutex that it hands to
// another root, as the value of a fork: that root may be on another thread.
//
// Rejected: (a) asking each pthread_mutex_t for its owner: nothing lists those that a thread holds. (b) A mutex of weft's
// for debugging: a program that takes care to use it also takes care to unlock it. (c) Looking where a sleeper parks:
// primitives park under their own lock, which may be a std::mutex.
#pragma once

namespace weft::detail {

#if defined(WEFT_WATCH_LOCKS)
/// How many the calling thread has locked inside roots.
unsigned locks_held() noexcept;

/// Ends the program if the calling thread holds more than `before`: the task that has just suspended, or ended, did not
/// unlock them.
void expect_no_more_locks(unsigned before) noexcept;

/// By a fiber that is about to wait: ends the program if its root holds one.
void expect_no_locks() noexcept;

/// Whether the running root holds one.
bool holds_locks() noexcept;
#else
inline unsigned locks_held() noexcept { return 0; }
inline void expect_no_more_locks(unsigned) noexcept {}
inline void expect_no_locks() noexcept {}
inline bool holds_locks() noexcept { return false; }
#endif

}  // namespace weft::detail
