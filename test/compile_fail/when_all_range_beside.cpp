// expect: a range of awaitables stands alone, or before where its values go
// at-most: 10 lines
#include <weft/weft.hpp>

weft::task<> all(std::vector<weft::task<>> tasks, weft::task<> one) {
  co_await weft::when_all(std::move(tasks), std::move(one));
  co_return;
}
