// The client's side of a workload over a network. bench/<workload>/client.cpp defines bench::run(state&), as an adapter does,
// but the library that is measured is in another process, the server: it is started anew for each round, on the same
// processors, and what counts is its processor time, read from outside. So every server has the same client and the same
// clock, and none has anything in it but the work.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "../harness.hpp"

namespace bench {

/// Of all sockets, so that what the system's default is does not count: the oldest, which every Linux has.
inline constexpr const char* congestion_control = "reno";

/// What a server's socket is for. A Unix one for connections has a name that the system chooses; one for datagrams is the one
/// end of a pair.
enum class serves : std::uint8_t { connections, datagrams, unix_connections, unix_datagrams };

/// The server, from its start to its end.
class server_process {
 public:
  /// Starts `state.server()` with these arguments, and has `state` measure its processor time.
  /// Fails  with std::system_error.
  server_process(state& round, const std::vector<std::string>& arguments, serves what = serves::connections);
  server_process(const server_process&) = delete;
  ~server_process();

  std::uint16_t port() const noexcept;
  const sockaddr* address() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t address_size() const noexcept { return address_size_; }
  /// The client's end of a pair, which is the caller's then.
  int take_peer() noexcept { return std::exchange(peer_, -1); }
  /// What is said of its processor time is from now on that of its children, where it has any: of a server whose first process
  /// only keeps watch over those that serve.
  void follow_children();
  /// What it has used so far.
  std::chrono::nanoseconds processor_time() const noexcept;
  /// Waits until it has had nothing to do for a while.
  void settle() const;
  /// What it has of memory that is its own: heap and stacks, not its code.
  std::size_t own_bytes() const;
  /// Descriptors of sockets that it has.
  std::size_t sockets() const;

 private:
  /// What the server gets.
  int make_its_socket(serves what);
  void start(const std::vector<std::string>& words, int listening);

  pid_t id_ = -1;
  std::vector<pid_t> children_;
  std::vector<clockid_t> clocks_;
  sockaddr_storage address_{};  // of the server's socket
  socklen_t address_size_ = sizeof(sockaddr_storage);
  int peer_ = -1;
};

/// A connection to it, whose calls block.
class connection {
 public:
  /// Its own address is one of many, by `number`: so that there are ports enough while the system remembers those of old
  /// connections.
  explicit connection(const server_process& to, std::size_t number = 0);
  connection(connection&& other) noexcept : socket_{std::exchange(other.socket_, -1)} {}
  connection& operator=(connection&&) = delete;
  ~connection();

  int socket() const noexcept { return socket_; }
  void send(const void* data, std::size_t size) const;
  /// So many bytes. Fails  with wrong_result where the server closes the connection.
  void receive(void* into, std::size_t size) const;
  void shut_down() const;
  /// Whether the server has closed it, once it has done something.
  bool has_ended() const;
  /// When it is destroyed, the server gets an error, and not an end.
  void reset_when_closed() const;

 private:
  int socket_ = -1;
};

/// As many descriptors as the system gives a process, for this one and the server that it starts.
std::size_t raise_descriptor_limit();
/// Fails  with not_here where the system does not give so many connections to a process.
void need_descriptors(std::size_t connections);

}  // namespace bench
