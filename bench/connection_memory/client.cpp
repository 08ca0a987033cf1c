// connection_memory: bytes of the server's own memory (heap and stacks, what is in use of them) for a connection that is
// idle: it has had one request of 64 bytes and its answer, and the server waits for the next one. One item is a connection, of
// 10,000; where the system gives a process fewer descriptors, of as many as there can be. Pages, not what was asked of an
// allocator: what it keeps for itself counts. What the system has for a connection, some KiB, does not. Nor does what a server
// keeps of a fixed size, as weft its last events: that is full when the first connection has had some requests more.
//
// --size is the number of bytes that each connection has to read into. The servers are those of tcp_pingpong.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "../harness/net/client.hpp"
#include "../tcp_pingpong/workload.hpp"

namespace {

constexpr std::size_t wanted = 10'000, others = 64;  // descriptors that are no connections
constexpr std::size_t first_requests = 60'000;       // on the first connection

void say(const bench::connection& to) {
  const std::array<char, bench::message_bytes> question{'i', 'd', 'l', 'e'};
  std::array<char, bench::message_bytes> answer{};
  to.send(question.data(), question.size());
  to.receive(answer.data(), answer.size());
  if (answer != question) throw bench::wrong_result{"an answer is not what was sent"};
}

}  // namespace

void bench::run(state& state) {
  const std::size_t count = std::min(wanted, raise_descriptor_limit() - others);
  const server_process server{state, {"1", std::to_string(state.size())}};
  std::vector<connection> all;
  all.reserve(count + 1);
  all.emplace_back(server);
  for (std::size_t i = 0; i != first_requests; ++i) say(all.front());
  server.settle();
  const std::size_t before = server.own_bytes();
  for (std::size_t i = 0; i != count; ++i) say(all.emplace_back(server, i));
  server.settle();
  state.measured(static_cast<double>(server.own_bytes() - before) / static_cast<double>(count));
  state.report("connections", static_cast<double>(count));
  for (const connection& each : all) each.reset_when_closed();
}
