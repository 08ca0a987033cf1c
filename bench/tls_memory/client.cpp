// tls_memory: connection_memory by TLS 1.3: bytes of the server's own memory for a connection that is idle, which has had a message of
// 64 bytes and its answer. Each has 16 KiB to read into, of which it has used as many bytes as came. One item is a connection, of
// 2,000. The servers are those of tls_echo.
#include <string>
#include <vector>

#include "../harness/net/tls_client.hpp"
#include "../tls_echo/workload.hpp"

void bench::run(state& state) {
  constexpr std::size_t count = 2000;
  need_descriptors(count);
  const credentials own;
  const server_process server{
      state, {"1", std::to_string(largest_message), std::to_string(count + 1), own.chain(), own.key()}};
  const tls_context context = make_tls_context();
  std::vector<tls_client> all;
  all.reserve(count + 1);
  const auto add = [&] {
    const std::vector<char> question(64, 'q');
    std::vector<char> answer(question.size());
    const tls_client& one = all.emplace_back(server, context.get(), all.size());
    one.send(question);
    one.receive(answer);
    must(answer == question, "an answer is not what was sent");
  };
  add();
  server.settle();
  const std::size_t before = server.own_bytes();
  for (std::size_t i = 0; i != count; ++i) add();
  server.settle();
  state.measured(static_cast<double>(server.own_bytes() - before) / static_cast<double>(count));
  for (const tls_client& each : all) each.at().reset_when_closed();
}
