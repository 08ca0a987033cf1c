// unbuffered_channel; on two threads each has its own scheduler, with one fiber.
#include "workload.hpp"

#include <boost/fiber/all.hpp>
#include <thread>

namespace {

using channel = boost::fibers::unbuffered_channel<std::size_t>;

void echo(channel& there, channel& back) {
  for (const std::size_t number : there) back.push(number + 1);
}

std::size_t call(channel& there, channel& back) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    there.push(number);
    number = back.value_pop();
  }
  there.close();
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(pingpong_rounds, pingpong_rounds, [&] {
    channel there, back;
    if (state.size() == 1) {
      boost::fibers::fiber other{echo, std::ref(there), std::ref(back)};
      const std::size_t number = call(there, back);
      other.join();
      return number;
    }
    std::thread other{echo, std::ref(there), std::ref(back)};
    const std::size_t number = call(there, back);
    other.join();
    return number;
  });
}
