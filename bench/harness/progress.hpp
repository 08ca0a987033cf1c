// How far a run is, and how long it still takes: one line that is rewritten on a terminal, else a line now and then.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace bench {

class progress {
 public:
  explicit progress(std::size_t steps);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();

  /// The next step begins.
  void step(const std::string& what);

  /// Something that must not be overlooked.
  void complain(const std::string& sentence);

 private:
  using clock = std::chrono::steady_clock;

  void erase_line() const;

  std::size_t steps_;
  std::size_t begun_ = 0;
  bool terminal_;
  clock::time_point start_ = clock::now();
  clock::time_point printed_{};
};

}  // namespace bench
