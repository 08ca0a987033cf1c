// A job around a function.
#pragma once

#include <functional>
#include <utility>
#include <weft/executor.hpp>

namespace test {

struct work : weft::job {
  explicit work(std::function<void()> body) : body{std::move(body)} {
    run = [](weft::job& self) noexcept { static_cast<work&>(self).body(); };
  }
  std::function<void()> body;
};

}  // namespace test
