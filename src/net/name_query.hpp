// A lookup of a name: its parameters, and what its two implementations, getaddrinfo() and c-ares, share.
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
  // The options of the channel that it needs, for c-ares.
  struct channel_options {
    std::vector<net::endpoint> servers;
    int timeout = 0;  // in milliseconds; here and below 0, or empty, means: as the system is configured
    int tries = 0;
    std::string configuration;
    std::uint16_t port = 0;

    friend bool operator==(const channel_options&, const channel_options&) = default;
  } channel{};
};

/// Looks up by c-ares the addresses of the host, each with this port. Defined only if weft was built with c-ares.
task<std::vector<net::endpoint>> look_up_by_channel(name_query what, std::uint16_t port);

/// The addresses of a list of getaddrinfo's or c-ares', without duplicates, which two lines of a hosts file may make.
template <class Node>
std::vector<net::endpoint> endpoints_of(const Node* first, std::uint16_t port) {
  std::vector<net::endpoint> all;
  for (const Node* one = first; one != nullptr; one = one->ai_next) {
    const auto got = net::system_address::of(one->ai_addr, one->ai_addrlen, port);
    if (got && std::find(all.begin(), all.end(), *got) == all.end()) all.push_back(*got);
  }
  return all;
}

/// The exception that a lookup fails with.
std::exception_ptr lookup_failure(std::error_code code, const name_query& what);

}  // namespace weft::detail
