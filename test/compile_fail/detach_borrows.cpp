// expect: detach: an argument refers to something of somebody
// An argument of detached work is its own.
#include <string_view>
#include <weft/executor.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

void start(weft::executor& ex, std::string_view text) {
  weft::detach(ex, [](std::string_view) {}, [](std::exception_ptr) {}, text);
}
