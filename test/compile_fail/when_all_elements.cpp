// expect: the elements of this range can't be awaited
// at-most: 10 lines
#include <weft/weft.hpp>

weft::task<> all(std::vector<int> numbers) {
  co_await weft::when_all(std::move(numbers));
  co_return;
}
