// expect: tasks are awaited once, as rvalues: pass std::move\(tasks\)
// at-most: 10 lines
#include <weft/weft.hpp>

weft::task<> all(std::vector<weft::task<>>& tasks) {
  co_await weft::when_all(tasks);
  co_return;
}
