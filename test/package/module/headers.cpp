#include <weft/channel.hpp>
#include <weft/task.hpp>

weft::task<> produce(weft::channel<int>& numbers) {
  for (int n = 1; n <= 1000; ++n) co_await numbers.send(n);
  numbers.close();
}
