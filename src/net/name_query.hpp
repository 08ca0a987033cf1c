// A lookup, as its task keeps it, and the two ways in which it is made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>
#include <weft/resolve.hpp>

#include "net/system_address.hpp"

namespace weft::detail {

struct name_query {
  std::string host, service;
  net::address_family family = net::address_family::any;
  net::resolver by = net::resolver::automatic;
  // Which channel it needs.
  struct channel_options {
    std::vector<net::endpoint> servers;
    int timeout = 0;  // in milliseconds; 0: as configured, as of the others
    int tries = 0;
    std::string configuration;
    std::uint16_t port = 0;

    friend bool operator==(const channel_options&, const channel_options&) = default;
  } channel{};
};

/// By c-ares: the addresses of its host, each with this port. There only where weft was built with it.
task<std::vector<net::endpoint>> look_up_by_channel(name_query what, std::uint16_t port);

/// The addresses of a list of getaddrinfo's or c-ares', each once: a line of a hosts file may say again what another has said.
template <class Node>
std::vector<net::endpoint> endpoints_of(const Node* first, std::uint16_t port) {
  std::vector<net::endpoint> all;
  for (const Node* one = first; one != nullptr; one = one->ai_next) {
    const auto got = net::system_address::of(one->ai_addr, one->ai_addrlen, port);
    if (got && std::find(all.begin(), all.end(), *got) == all.end()) all.push_back(*got);
  }
  return all;
}

/// What it fails with.
std::exception_ptr lookup_failure(std::error_code code, const name_query& what);

}  // namespace weft::detail
