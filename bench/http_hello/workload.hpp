// http_hello: wrk sends GET requests over HTTP/1.1 on 20 connections, each the next one when it has its answer, and gets
// "Hello, world". One item is a request, and its time the server's processor time for it. --size is the number of the server's
// threads: with one, wrk runs on the same processor, else beside them.
//
// A server reads whole heads by a parser, and keeps the connection. Those of libraries that have HTTP are written as their
// authors write one, and may add heads of their own (Go and hyper say what time it is). The others have http_parser,
// which Node used, and do no more than it takes.
#pragma once

#include <http_parser.h>

#include <cstddef>
#include <string_view>

namespace bench {

inline constexpr std::string_view hello =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n";

/// The requests on one connection.
class requests {
 public:
  requests() noexcept { http_parser_init(&parser_, HTTP_REQUEST); }
  requests(const requests&) = delete;

  /// What has come. How many requests it completes; -1: it is none.
  int feed(std::string_view text) noexcept {
    complete_ = 0;
    parser_.data = this;
    const std::size_t parsed = http_parser_execute(&parser_, &settings(), text.data(), text.size());
    return parsed == text.size() && HTTP_PARSER_ERRNO(&parser_) == HPE_OK && parser_.upgrade == 0 ? complete_ : -1;
  }

 private:
  static const http_parser_settings& settings() noexcept {
    static const http_parser_settings only_ends = [] {
      http_parser_settings out;
      http_parser_settings_init(&out);
      out.on_message_complete = [](http_parser* of) {
        ++static_cast<requests*>(of->data)->complete_;
        return 0;
      };
      return out;
    }();
    return only_ends;
  }

  http_parser parser_;
  int complete_ = 0;
};

}  // namespace bench
