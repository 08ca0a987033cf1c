// Prints the endpoints of hosts, all looked up at once: `lookup example.com www.example.org`, with -4 or -6 those of one
// family, with -p SERVICE of that service, with -s 127.0.0.1:53 as that name server says. Without a host, of some that need no name
// server.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct wishes {
  std::vector<std::string_view> hosts;
  std::string_view service = "80";
  std::vector<w::net::endpoint> servers{};
  w::net::resolve_options how{};
};

w::task<std::string> look_up(const wishes& all, std::string_view host) {
  std::string text{host};
  auto lookup = w::net::resolve(all.how, host, all.service) | w::timeout(1min);
  auto found = co_await w::as_result(std::move(lookup));
  try {
    for (const w::net::endpoint& one : found.value()) text += "\n  " + one.to_string();
  } catch (const w::error& failure) {
    text += std::string{"\n  "} + failure.what();
  }
  co_return text;
}

w::task<> look_all_up(const wishes& all) {
  std::vector<w::task<std::string>> lookups;
  for (const std::string_view host : all.hosts) lookups.push_back(look_up(all, host));
  for (const std::string& text : co_await w::when_all(std::move(lookups))) std::printf("%s\n", text.c_str());
}

int main(int count, char** arguments) {
  wishes all;
  for (int i = 1; i < count; ++i) {
    const std::string_view one = arguments[i];
    if (one == "-4")
      all.how.family = w::net::address_family::v4;
    else if (one == "-6")
      all.how.family = w::net::address_family::v6;
    else if (one == "-p" && i + 1 < count)
      all.service = arguments[++i];
    else if (one == "-s" && i + 1 < count)
      all.servers.push_back(w::net::endpoint::parse(arguments[++i]));
    else
      all.hosts.push_back(one);
  }
  all.how.servers = all.servers;
  if (all.hosts.empty()) {
    all.hosts = {"127.0.0.1", "localhost", "::1", "no..name"};
    all.how.family = w::net::address_family::v4;
  }
  return w::run_main(look_all_up(all));
}
