// For tests whose bodies run in runtimes, too. WEFT_TEST_IN_RUNTIME in the environment names a back end: all bodies run in a
// runtime on that.
#pragma once

#include <stdlib.h>

#include <utility>
#include <weft/runtime.hpp>

#include "support/weft_test.hpp"

namespace test {

[[maybe_unused]] inline const bool bodies_run_in_a_runtime = [] {
  const char* const by = ::getenv("WEFT_TEST_IN_RUNTIME");
  if (by == nullptr) return false;
  const bool has_rings = weft::runtime{{.threads = 1}}.backend() == weft::io_backend::uring;
  ::setenv("WEFT_IO", has_rings ? by : "epoll", 1);
  run_body = [](weft::task<> body) { weft::runtime{{.threads = 2}}.run(std::move(body)); };
  return true;
}();

}  // namespace test
