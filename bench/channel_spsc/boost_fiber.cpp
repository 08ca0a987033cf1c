// buffered_channel, whose room is a power of two of which it uses all but one.
#include "workload.hpp"

#include <boost/fiber/all.hpp>
#include <thread>

namespace {

using channel = boost::fibers::buffered_channel<std::size_t>;

void send_all(channel& to) {
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) to.push(i);
  to.close();
}

std::size_t receive_all(channel& from) {
  std::size_t sum = 0;
  for (const std::size_t number : from) sum += number;
  return sum;
}

}  // namespace

// On two threads each has its own scheduler, with one fiber.
void bench::run(bench::state& state) {
  state.measure(spsc_numbers, spsc_sum, [&] {
    channel numbers{spsc_room};
    if (state.size() == 1) {
      boost::fibers::fiber sender{send_all, std::ref(numbers)};
      const std::size_t sum = receive_all(numbers);
      sender.join();
      return sum;
    }
    std::thread sender{send_all, std::ref(numbers)};
    const std::size_t sum = receive_all(numbers);
    sender.join();
    return sum;
  });
}
