// What adapters of sylar have in common.
#pragma once

#include "threads_like_sylar.hpp"

#include <sylar/log.h>
#include <sylar/scheduler.h>

namespace bench {

using sylar_threads = threads_like_sylar<sylar::Scheduler, sylar::Fiber>;

/// Its log would be most of what is measured: only errors, as in LioNet's own programs.
inline const bool sylar_is_quiet = (SYLAR_LOG_NAME("system")->setLevel(sylar::LogLevel::ERROR), true);

}  // namespace bench
