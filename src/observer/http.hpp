// HTTP requests, and how they are answered. A library, http-parser, parses the bytes; the checks are all in this file's source.
//
// A browser that shows a stranger's page can send requests to 127.0.0.1, too. Such a page knows no token, so its requests are
// refused. A name of the stranger's that resolves to 127.0.0.1 (DNS rebinding) shows in Host, and a page that is not the
// observer's in Origin and Sec-Fetch-Site. A path is compared as a whole with a fixed list: nothing is decoded, and no files
// are served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weft::detail {

struct http_request {
  bool is_get = false, is_head = false;
  std::string target;
  std::string host, origin, authorization, site;  ///< header fields; the last is Sec-Fetch-Site
  unsigned hosts = 0, origins = 0, authorizations = 0;
  bool has_body = false;
  bool keeps_alive = false;
};

/// What can be requested, each by its path.
enum class http_page : std::uint8_t { none, page, metrics, all, snapshot, deadlocks, stalls, dot };

struct http_verdict {
  unsigned status = 400;
  http_page page = http_page::none;  ///< what the body is; none: a sentence about the status
};

/// What a request must match: the port in its Host, and the token.
struct http_rules {
  unsigned short port = 0;
  std::string_view token;
};

/// Decides what a request gets. A request for the page without a token gets 401, with the page as its body: that has no data of
/// the process, and asks for the token.
http_verdict judge(const http_request& request, const http_rules& rules);

/// Whether two texts are equal; takes a time that depends on their lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

/// The head of an answer, up to and with the empty line.
std::string http_head(const http_verdict& verdict, std::size_t body_size, bool keeps_alive, std::string_view nonce);
std::string_view http_reason(unsigned status) noexcept;

/// Reads one request after the other from a stream of bytes.
class http_reader {
 public:
  enum class state : std::uint8_t { goes_on, complete, wrong, too_large };

  /// Whether weft was built with a parser.
  static bool exists() noexcept;

  http_reader();
  http_reader(const http_reader&) = delete;
  ~http_reader();

  /// Parses `came` up to the end of a request, and sets `taken` to how much that was. After `complete`, call take() before the
  /// next read().
  state read(std::string_view came, std::size_t& taken);
  /// Gives the request that is complete.
  http_request take();
  /// Whether a part of a request was parsed, and not its end.
  bool is_inside() const noexcept;

  /// The limit for the head of a request with all of its fields, in bytes.
  static constexpr std::size_t largest_head = 16 * 1024;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace weft::detail
