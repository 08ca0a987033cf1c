#define ASIO_HAS_CO_AWAIT  // which version 1.22 does not see of clang
#define ASIO_HAS_STD_COROUTINE
#include <asio.hpp>
#include <weft/standalone_asio.hpp>

namespace asio_adapter = weft::standalone_asio;

#include "interop/asio_cases.hpp"
