// Answers of a name server, right ones and such as have been changed in places, cut or extended: of whatever comes, a lookup
// gives addresses that are in the answer, or an error. By two lookups at once, since they share all that c-ares has.
#include <weft/resolve.hpp>

#include <arpa/inet.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/race.hpp>
#include <weft/task.hpp>

#include "net/name_server.hpp"
#include "support/fuzz.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task;
using weft::net::endpoint;

// A right answer, up to six times changed.
std::string changed(const test::question& asked, test::choices& chosen) {
  static constexpr std::string_view aliases[] = {"", "other.test", "db.test",
                                                 "a-label-that-is-somewhat-longer.of.some.test"};
  std::vector<std::string> addresses{"10.0.0.7", "2001:db8::7"};
  for (std::size_t i = 0, count = chosen.up_to(3); i != count; ++i) addresses.push_back("10.0.1." + std::to_string(i));
  constexpr unsigned most_in_four_bits = 15;
  std::string packet =
      test::answer(asked, addresses,
                   {.code = chosen.one_in(4) ? static_cast<unsigned>(chosen.up_to(most_in_four_bits)) : 0U,
                    .is_truncated = chosen.one_in(16),
                    .canonical = aliases[chosen.up_to(3)]});
  constexpr std::size_t id = 2, header = 12;
  for (std::size_t i = 0, count = chosen.up_to(6); i != count && packet.size() > id; ++i) {
    const auto byte = static_cast<char>(chosen.up_to(255));
    const std::size_t at = id + chosen.up_to(std::min<std::size_t>(packet.size() - id - 1, 255));
    switch (chosen.up_to(5)) {
      case 0: packet[at] = byte; break;
      case 1: packet[at] = static_cast<char>(packet[at] ^ 1 << (byte & 7)); break;
      case 2: packet.resize(at); break;
      case 3: packet.insert(at, 1, byte); break;
      case 4: packet += packet.substr(std::min(header, packet.size())); break;
      default: packet.replace(at, 2, std::string{"\xc0"} + byte); break;  // the rest of a name, elsewhere in the packet
    }
  }
  return packet;
}

// Whether that address stands in one of the packets.
bool is_in(const std::vector<std::string>& packets, const endpoint& one) {
  char bytes[16];
  const std::string address = one.address();
  test::must(::inet_pton(one.is_v6() ? AF_INET6 : AF_INET, address.c_str(), bytes) == 1,
             "gives no address: " + address);
  const std::string_view wanted{bytes, one.is_v6() ? 16U : 4U};
  for (const std::string& packet : packets)
    if (packet.find(wanted) != packet.npos) return true;
  return false;
}

WEFT_FUZZ(answers_to_lookups, 600, 60) {
  std::vector<std::string> packets;
  test::name_server server{[&](const test::question& asked) -> std::optional<std::string> {
                             return packets.emplace_back(changed(asked, chosen));
                           },
                           false};
  const auto ask = [](endpoint at, std::string_view name) -> task<weft::result<std::vector<endpoint>>> {
    const endpoint those[] = {at};
    auto lookup = as_result(weft::net::resolve({.servers = those, .timeout = 2ms, .tries = 2}, name, "80"));
    co_return co_await std::move(lookup);
  };
  auto lookups = weft::when_all(ask(server.at(), "db.test."), ask(server.at(), "other.test."));
  auto first = weft::sync_wait(weft::when_any(std::move(lookups), server.serve_in_task()));
  auto& [one, other] = std::get<0>(first.value);
  for (const auto* how : {&one, &other}) {
    if (how->has_value()) {
      test::must(!(*how)->empty(), "gives no address, and no error");
      for (const endpoint& each : how->value()) {
        test::must(is_in(packets, each), "gives an address that is in no answer: " + each.to_string());
        test::must(each.port() == 80, "gives another port");
      }
    } else {
      test::must(how->error().category() == weft::net::resolve_category(), "fails by " + how->error().message());
    }
  }
}

}  // namespace
