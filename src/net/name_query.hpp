// A lookup, as its task keeps it, and the two ways in which it is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <weft/resolve.hpp>

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

/// What it fails with.
std::exception_ptr lookup_failure(std::error_code code, const name_query& what);

}  // namespace weft::detail
