// expect-warning: a task ends here when it awaits this
#include <weft/scope.hpp>
#include <weft/with.hpp>

weft::task<> computes() {
  weft::check_stop();
  co_return;
}
