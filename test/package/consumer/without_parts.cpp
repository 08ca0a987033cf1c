// Uses a weft that was built without anything that is optional: an echo by TCP, a name, and what the runtime says of itself.
#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/combine.hpp>
#include <weft/net.hpp>
#include <weft/observe.hpp>
#include <weft/resolve.hpp>
#include <weft/runtime.hpp>
#include <weft/task.hpp>

namespace w = weft;

namespace {

int failures = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::printf("not so: %s\n", what);
}

w::task<> echo_once(const w::net::listener& at) {
  const w::net::stream peer = co_await at.accept();
  std::array<std::byte, 64> buffer;
  for (std::size_t got; (got = co_await peer.read(buffer)) != 0;) co_await peer.write(std::span{buffer}.first(got));
}
w::task<std::string> ask(w::net::endpoint where) {
  const w::net::stream there = co_await w::net::connect(where);
  co_await there.write("hello");
  there.shutdown();
  std::string answer;
  std::array<char, 64> buffer;
  for (std::size_t got; (got = co_await there.read(std::as_writable_bytes(std::span{buffer}))) != 0;)
    answer.append(buffer.data(), got);
  co_return answer;
}
w::task<> talk() {
  const w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", 0});
  const auto [none, answer] = co_await w::when_all(echo_once(at), ask(at.local()));
  expect(answer == "hello", "an echo by TCP is what was sent");
}

// getaddrinfo asks /etc/hosts; there may be no name server.
w::task<> look_up() {
  const std::vector<w::net::endpoint> found = co_await w::net::resolve("localhost", "80");
  expect(!found.empty(), "localhost has an address");
  for (const w::net::endpoint& one : found) expect(one.port() == 80, "it has the port that was asked for");
}

w::task<std::size_t> depth() { co_return w::async_stack().size(); }
w::task<std::size_t> depth_below() { co_return co_await depth(); }

}  // namespace

int main() {
  for (const unsigned threads : {1U, 2U}) {
    w::runtime rt{{.threads = threads}};
    rt.run(talk());
    rt.run(look_up());
    expect(rt.backend() == w::io_backend::epoll, "sockets are waited for by epoll");
    const std::string said = rt.explain();
    const auto says = [&](std::string_view what) { return said.find(what) != std::string::npos; };
    expect(says("by epoll, ") && (threads != 1 || says("not by io_uring: this weft was built without liburing")),
           "explain() says why it is not io_uring");
    expect(says("getaddrinfo") && says("built without c-ares"), "explain() says how names are looked up");
    if (failures != 0) std::puts(said.c_str());
    try {
      const w::runtime refused{{.threads = threads, .io = w::io_backend::uring}};
      expect(false, "a runtime that must have rings is refused");
    } catch (const w::error&) {
    }
  }
  w::sync_wait(talk());
  w::sync_wait(look_up());
  expect(w::sync_wait(depth_below()) >= 1, "an async stack has a frame");
  if (failures == 0) std::puts("a weft without its optional parts: ok");
  return failures == 0 ? 0 : 1;
}
