// tls_echo: 20 clients send a message by TLS 1.3 with AES-128-GCM, get it back, and send the next. One item is a message and its
// answer, and its time the server's processor time for it. --size is the message's bytes.
//
// A server is told by its fourth and fifth words which files have its certificate and its key (P-256), which the client has made. It
// reads what has come into 16 KiB that each connection has, and writes it. Handshakes are not in the clock.
#pragma once

#include <cstddef>

namespace bench { inline constexpr std::size_t clients = 20, largest_message = 16 * 1024; }  // namespace bench
