// uv_getaddrinfo: by getaddrinfo, on the loop's pool of four threads.
#include <uv.h>

#include <vector>

#include "lookups.hpp"

namespace {

uv_loop_t loop;
std::uint64_t begun, right, wanted;

void begin_next(uv_getaddrinfo_t* by);

void found(uv_getaddrinfo_t* by, int failed, addrinfo* all) {
  if (failed == 0 && all->ai_next != nullptr && bench::is_right(all->ai_addr)) ++right;
  uv_freeaddrinfo(all);
  if (begun != wanted) begin_next(by);
}

void begin_next(uv_getaddrinfo_t* by) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  uv_getaddrinfo(&loop, by, found, bench::host_name(begun++).c_str(), "80", &hints);
}

}  // namespace

int main(int count, char** words) {
  std::vector<uv_getaddrinfo_t> lookups_at_once(bench::read_server_options(count, words).connections);
  uv_loop_init(&loop);
  bench::serve_lookups([&](std::uint64_t lookups) {
    begun = right = 0;
    wanted = lookups;
    for (uv_getaddrinfo_t& one : lookups_at_once)
      if (begun != wanted) begin_next(&one);
    uv_run(&loop, UV_RUN_DEFAULT);
    return right;
  });
}
