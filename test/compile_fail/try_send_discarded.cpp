// expect-warning: it says whether the value was sent
// expect-warning: what was received is lost
#include <weft/channel.hpp>

void tries(weft::channel<int>& numbers) {
  numbers.try_send(1);
  numbers.try_receive();
}
