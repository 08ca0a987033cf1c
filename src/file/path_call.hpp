// A system call with a path, on the blocking pool.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/error.hpp>
#include <weft/nothrow.hpp>
#include <weft/task.hpp>

namespace weft::fs {

inline std::error_code system_error(int number) noexcept { return {number, std::generic_category()}; }
/// The system would cut such a path off at the NUL.
inline bool has_nul(std::string_view path) noexcept { return path.find('\0') != std::string_view::npos; }

/// The result of a call: an error number, or a value.
template <class T>
struct answer {
  int refused = 0;
  T value{};
};

/// Makes `call(path)` on the blocking pool. It returns an answer<T>, or, if T is void, an error number. A stop waits for the end of
/// a call that has begun: what it changes, it must not change when its caller has gone on.
template <class T, class Call>
task<T> call_with_path(const char* operation, std::string path, Call call) {
  constexpr bool gives_nothing = std::is_void_v<T>;
  if (has_nul(path)) co_await fail_with(error{system_error(EINVAL), operation, path});
  const auto made = [&] { return call(path.c_str()); };
  auto got = co_await blocking(made);
  int refused;
  if constexpr (gives_nothing)
    refused = got;
  else
    refused = got.refused;
  if (refused != 0) co_await fail_with(error{system_error(refused), operation, path});
  if constexpr (!gives_nothing) co_return std::move(got.value);
}

/// The same for a call that changes nothing, and captures nothing: a stop abandons it.
template <class T, class Call>
task<T> ask_about_path(const char* operation, std::string path, Call call) {
  if (has_nul(path)) co_await fail_with(error{system_error(EINVAL), operation, path});
  constexpr auto asks = [](Call by, const std::string& of) { return by(of.c_str()); };
  auto asking = blocking(abandon_on_stop, asks, call, path);
  answer<T> got = co_await std::move(asking);
  if (got.refused != 0) co_await fail_with(error{system_error(got.refused), operation, path});
  co_return std::move(got.value);
}

inline int error_of(int result) noexcept { return result == 0 ? 0 : errno; }

}  // namespace weft::fs
