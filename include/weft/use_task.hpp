// The word by which operations of Asio become tasks. With <weft/boost_asio.hpp> or <weft/standalone_asio.hpp>, which say what
// it does.
#pragma once

namespace weft {

/// A completion token: `co_await socket.async_read_some(buffer, w::use_task)`.
struct use_task_t {};
inline constexpr use_task_t use_task{};

}  // namespace weft
