// expect: detach: the function may capture nothing
// Nobody waits until detached work has ended, so it captures nothing.
#include <weft/executor.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

void start(weft::executor& ex, int& count) {
  weft::detach(ex, [&] { ++count; }, [](std::exception_ptr) {});
}
