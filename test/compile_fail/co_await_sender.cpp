// expect: a sender is no awaitable: co_await weft::from_sender\(s\)
// at-most: 10 lines
#include <weft/weft.hpp>

struct sender {
  using sender_concept = void;
};

weft::task<int> number() {
  int got = co_await sender{};
  co_return got;
}
