// Whether what is given away keeps what it needs. For work that outlives whoever has started it.
#pragma once

#include <type_traits>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>

namespace weft::detail {

/// Whether a value keeps what it needs: no reference, pointer or view to something of somebody else's.
template <class T>
inline constexpr bool is_owned = !std::is_pointer_v<T> && !std::is_reference_v<T>;
template <class T>
inline constexpr bool is_owned<std::reference_wrapper<T>> = false;
template <class T>
  requires std::ranges::enable_view<T> && std::ranges::enable_borrowed_range<T>  // a span, a string_view
inline constexpr bool is_owned<T> = false;

template <class F>
inline constexpr bool owns_nothing =
    std::is_empty_v<F> || (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>) ||
    std::is_member_pointer_v<F>;

}  // namespace weft::detail
