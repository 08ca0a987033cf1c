// expect-warning: a task does nothing until it is awaited
#include <weft/task.hpp>

weft::task<int> number() { co_return 1; }

weft::task<> caller() {
  number();
  co_return;
}

int main() {}
