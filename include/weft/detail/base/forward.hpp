// What of the standard library is needed by name, or in a small part, where the whole header would be felt in every
// compilation: <memory_resource> takes a tenth of a second, <chrono> brings streams and strings.
#pragma once

#include <cstddef>

#if defined(__GLIBCXX__) && !_GLIBCXX_INLINE_VERSION
namespace std::pmr { class memory_resource; }  // namespace std::pmr
#else
#include <memory_resource>
#endif

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // the clocks and durations of <chrono>
#else
#include <chrono>
#endif

#if defined(__GLIBCXX__) && __has_include(<bits/std_mutex.h>)
#include <bits/std_mutex.h>  // std::mutex, std::lock_guard
#else
#include <mutex>
#endif
