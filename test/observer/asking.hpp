// Those who ask an observer, in its tests: on plain sockets, which know nothing of weft.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <weft/observer.hpp>

namespace test {

/// A directory of its own, which goes at the end.
class own_directory {
 public:
  own_directory() {
    char name[] = "/tmp/weft-observer-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  own_directory(const own_directory&) = delete;
  ~own_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string below(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A connection. What does not come within a minute is a failure.
class asking {
 public:
  explicit asking(std::string_view socket_path) : number_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    socket_path.copy(to.sun_path, sizeof to.sun_path - 1);
    connect(reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  explicit asking(unsigned short port) : number_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  asking(asking&& other) noexcept : number_{std::exchange(other.number_, -1)}, is_connected{other.is_connected} {}
  ~asking() {
    if (number_ >= 0) ::close(number_);
  }

  /// False: the other end is gone.
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const auto size = ::send(number_, text.data(), text.size(), MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
  }
  void end_sending() const { ::shutdown(number_, SHUT_WR); }

  /// The next line, without its end; what there is, if the connection ends.
  std::string line() {
    std::size_t end;
    while ((end = came_.find('\n')) == std::string::npos && more()) continue;
    std::string text = came_.substr(0, end);
    came_.erase(0, end == std::string::npos ? end : end + 1);
    return text;
  }
  /// All up to the end of the connection.
  std::string rest() {
    while (more()) continue;
    return std::exchange(came_, {});
  }
  std::string ask(std::string_view request) {
    send(std::string{request} + '\n');
    return line();
  }
  int number() const { return number_; }

 private:
  void connect(const sockaddr* to, socklen_t size) {
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(number_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(number_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    is_connected = ::connect(number_, to, size) == 0;
  }
  bool more() {
    char some[4096];
    ssize_t size;
    do size = ::recv(number_, some, sizeof some, 0);
    while (size < 0 && errno == EINTR);  // by whoever has stopped this process for a while
    if (size < 0 && errno == EAGAIN) ADD_FAILURE() << "nothing has come for a minute, behind: " << came_;
    if (size <= 0) return false;
    came_.append(some, static_cast<std::size_t>(size));
    return true;
  }

  int number_;
  std::string came_;

 public:
  bool is_connected = false;
};

/// What a request by HTTP gets: of one that is sent as it is, and of one with a good head.
inline std::string raw_http(unsigned short port, std::string_view request) {
  asking one{port};
  one.send(request);
  one.end_sending();
  return one.rest();
}
inline std::string get(const weft::observer& from, const std::string& target, const std::string& fields = {},
                       const std::string& method = "GET") {
  return raw_http(from.http_port(), method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" +
                                        std::to_string(from.http_port()) + "\r\nAuthorization: Bearer " +
                                        std::string{from.token()} + "\r\nConnection: close\r\n" + fields + "\r\n");
}
inline std::string status_of(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }
inline std::string body_of(const std::string& answer) {
  const std::size_t at = answer.find("\r\n\r\n");
  return at == std::string::npos ? std::string{} : answer.substr(at + 4);
}

}  // namespace test
