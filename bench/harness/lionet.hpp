// What adapters of LioNet have in common.
#pragma once

#include "threads_like_sylar.hpp"

#include <LioNet/log.h>
#include <LioNet/scheduler.h>

namespace bench {

using lionet_threads = threads_like_sylar<LioNet::Scheduler, LioNet::Fiber>;

/// Its log would be most of what is measured: only errors, as in LioNet's own programs.
inline const bool lionet_is_quiet = (LIONET_LOG_NAME("system")->setLevel(LioNet::LogLevel::ERROR), true);

}  // namespace bench
