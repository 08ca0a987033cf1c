// getaddrinfo, on up to eight threads.
#include <netdb.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "lookups.hpp"

namespace {

bool look_up(std::uint64_t number) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(bench::host_name(number).c_str(), "80", &hints, &found) != 0) return false;
  const bool right = bench::is_right(found->ai_addr) && found->ai_next != nullptr;
  ::freeaddrinfo(found);
  return right;
}

}  // namespace

int main(int count, char** words) {
  const std::size_t threads = std::min<std::size_t>(bench::read_server_options(count, words).connections, 8);
  bench::serve_lookups([threads](std::uint64_t lookups) {
    std::atomic<std::uint64_t> next{0}, right{0};
    std::vector<std::thread> all;
    for (std::size_t i = 0; i != threads; ++i)
      all.emplace_back([&] {
        for (std::uint64_t one; (one = next++) < lookups;) right += look_up(one) ? 1 : 0;
      });
    for (std::thread& one : all) one.join();
    return right.load();
  });
}
