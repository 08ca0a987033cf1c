// expect: start
// expect: is_invocable
#include <weft/task.hpp>

weft::task<int> number() { co_return 1; }

int main() {
  weft::start(number(), [](int) {});
}
