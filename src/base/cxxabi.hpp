// <cxxabi.h>, and of the C++ ABI's exception handling the function that libc++abi exports without declaring it.
#pragma once

#include <cxxabi.h>

#include <version>

#if defined(_LIBCPP_VERSION)
namespace __cxxabiv1 {  // NOLINT(bugprone-reserved-identifier): the ABI's names
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept;
}  // namespace __cxxabiv1
#endif
