// What it is like where the system gives no thread.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace test {

/// As long as this lives, the system gives no thread: each would have a stack that there is no room for.
class no_threads {
 public:
  no_threads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    pthread_attr_setstacksize(&huge, std::size_t{1} << 46);
    pthread_setattr_default_np(&huge);
  }
  no_threads(const no_threads&) = delete;
  ~no_threads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_{};
};

}  // namespace test
