// An echo server for datagrams: `example_udp_echo 7777`, then `nc -u 127.0.0.1 7777`. It ends at Ctrl-C. What has come meanwhile
// is received by one system call, and answered by one.
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;

// Answers all of them; one that can't be answered is passed over.
w::task<> send_all(const w::net::datagram& by, std::span<const w::net::outgoing> answers) {
  while (!answers.empty()) {
    const auto sent = co_await w::as_result(by.send_batch(answers));
    if (sent.is_stopped()) co_await w::check_stop();
    answers = answers.subspan(sent.has_value() ? *sent : 1);
  }
}

w::task<> echo(std::uint16_t port) {
  const w::net::datagram socket = co_await w::net::bind(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", socket.local().to_string().c_str());
  std::fflush(stdout);
  const w::net::incoming_buffers buffers{16, 2048};
  std::vector<w::net::outgoing> answers;
  for (;;) {
    const std::size_t count = co_await socket.receive_batch(buffers);
    answers.clear();
    for (const w::net::incoming& one : std::span{buffers.begin(), count})
      answers.push_back({.data = one.bytes(), .to = one.from});
    co_await send_all(socket, answers);
  }
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  return w::run_main(w::when_any(echo(port), w::interrupted()));
}
