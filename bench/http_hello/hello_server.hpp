// The client's side of http_hello and http_hello_open: the server, and one request.
#pragma once

#include <stdlib.h>  // mkdtemp

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"

namespace bench {

inline constexpr std::string_view hello_request = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                                  hello_body = "Hello, world\n";

inline bool says_hello(std::string_view answer) {
  return answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(hello_body);
}

/// For a server that needs one: BYTES and CONNECTIONS are followed by its path.
class temporary_folder {
 public:
  temporary_folder() : path_{(std::filesystem::temp_directory_path() / "weft-bench-XXXXXX").native()} {
    if (::mkdtemp(path_.data()) == nullptr) throw wrong_result{"a temporary folder can't be made"};
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// A server that has answered once, and serves.
class hello_server : temporary_folder, public server_process {
 public:
  hello_server(state& round, std::size_t threads, std::size_t connections)
      : server_process{round,
                       {std::to_string(threads), std::to_string(large_buffer), std::to_string(connections), path()}} {
    try_once();
    settle();
    follow_children();
  }

  /// How long its answers are: what some say of the time is always of one length.
  std::size_t answer_bytes() const noexcept { return answer_bytes_; }

 private:
  void try_once() {
    constexpr std::size_t longest = 1000;
    const connection to{*this};
    to.send(hello_request.data(), hello_request.size());
    std::string answer;
    while (!answer.ends_with(hello_body) && answer.size() != longest) {
      char next = 0;
      to.receive(&next, 1);
      answer += next;
    }
    if (!says_hello(answer)) throw wrong_result{"the server does not say hello: " + answer};
    answer_bytes_ = answer.size();
  }

  std::size_t answer_bytes_ = 0;
};

}  // namespace bench
