// Coflux's third example, a graph of dependencies, in weft: a plain function is forked onto a pool; two others await the one
// result, each through a view of it.
//
//        id
//       /  \.
//    name  permissions
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

int fetch_id(const std::string& user) {  // no coroutine: it blocks its thread
  std::this_thread::sleep_for(1ms);
  return std::stoi(user.substr(user.find('$') + 1));
}

w::task<std::string> fetch_name(w::fork_view<int> id) {
  co_return "user " + std::to_string(co_await id) + " is Daking";
}
w::task<std::string> fetch_permissions(w::fork_view<int> id) {
  co_return "user " + std::to_string(co_await id) + " is an admin";
}

int main() {
  w::pool workers{{.threads = 3}};
  auto graph = [&](w::scope& s) -> w::task<> {
    w::fork_view<int> id = s.fork_on(workers, fetch_id, std::string{"daking$123"}).view();
    w::fork<std::string> name = s.fork(fetch_name, id), permissions = s.fork(fetch_permissions, id);
    const auto [first, second] = co_await w::when_all(std::move(name), std::move(permissions));
    std::printf("%s\n%s\n", first.c_str(), second.c_str());
  };
  w::sync_wait(w::with_scope({.executor = &workers}, graph));
}
