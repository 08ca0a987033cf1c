// at-most: 10 lines
// expect: a task is awaited once, as an rvalue: pass std::move\(t\)
#include <weft/task.hpp>

weft::task<int> number() { co_return 1; }

int main() {
  auto t = number();
  return weft::sync_wait(t);
}
