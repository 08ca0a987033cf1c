// The completion token that makes tasks of Asio's operations. Works with <weft/boost_asio.hpp>, which describes it, or
// <weft/standalone_asio.hpp>.
#pragma once

namespace weft {

/// A completion token: `co_await socket.async_read_some(buffer, w::use_task)`.
struct use_task_t {};
inline constexpr use_task_t use_task{};

}  // namespace weft
