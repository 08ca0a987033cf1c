// All of weft.hpp as a module: `import weft;`. Macros are not in it; version.hpp has those of the version. Names of the standard
// library are not in it either: include <coroutine>, and what else you use, or import std.
//
// Everything is declared as if by the headers, in the global module, so that a program may have both.
module;

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <compare>
#include <concepts>
#include <coroutine>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <ranges>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

export module weft;

#if defined(__clang__)
#pragma clang diagnostic ignored "-Winclude-angled-in-module-purview"
#endif
export extern "C++" {
#include "weft/weft.hpp"
}
