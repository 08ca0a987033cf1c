// The same for what tasks do without: <functional> brings hash tables, <memory> and <ranges> streams.
#pragma once

#include <weft/detail/base/forward.hpp>

#if defined(__GLIBCXX__) && __has_include(<bits/refwrap.h>)
#include <bits/refwrap.h>       // std::reference_wrapper
#include <bits/stl_function.h>  // std::plus
#else
#include <functional>
#endif

#if defined(__GLIBCXX__) && __has_include(<bits/unique_lock.h>)
#include <bits/unique_lock.h>
#else
#include <mutex>
#endif

#if defined(__GLIBCXX__) && __has_include(<bits/unique_ptr.h>)
#include <bits/unique_ptr.h>
#else
#include <memory>
#endif

#if defined(__GLIBCXX__) && __has_include(<bits/ranges_base.h>)
#include <bits/ranges_base.h>  // the concepts of <ranges>
#include <bits/ranges_cmp.h>   // std::identity
#else
#include <ranges>
#endif
