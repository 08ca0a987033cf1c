// expect-warning: as_result does nothing until it is awaited
#include <weft/task.hpp>

weft::task<int> work();

weft::task<> drops() {
  as_result(work());
  co_return;
}
