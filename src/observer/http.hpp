// What a request by HTTP is, and what it gets. The bytes are taken apart by a library, http-parser; what is judged here is whole.
//
// A browser that shows a stranger's page can send requests to 127.0.0.1, too. Such a page knows no token, and so it gets nothing;
// that a name of its own leads here (DNS rebinding) shows in Host, and that it is not the observer's page in Origin and
// Sec-Fetch-Site. A path is one of a list, compared as a whole: nothing is decoded, and there are no files.
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

/// What there is, by path.
enum class http_page : std::uint8_t { none, page, metrics, all, snapshot, deadlocks, stalls, dot };

struct http_verdict {
  unsigned status = 400;
  http_page page = http_page::none;  ///< what the body is; none: a sentence about the status
};

/// Who may ask: by this port, and with this token.
struct http_rules {
  unsigned short port = 0;
  std::string_view token;
};

/// What a request gets. A request for the page that has no token gets 401 with the page as its body, which holds nothing of the
/// process, and asks for the token.
http_verdict judge(const http_request& request, const http_rules& rules);

/// Whether two texts are equal, in a time that depends on nothing but their lengths.
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

  /// Takes what came, up to the end of a request, and says how much that was. After `complete` comes take(), then the next read().
  state read(std::string_view came, std::size_t& taken);
  /// Gives the request that is complete.
  http_request take();
  /// Whether a request has begun, and not ended.
  bool is_inside() const noexcept;

  /// The largest head of a request that is read, with all of its fields.
  static constexpr std::size_t largest_head = 16 * 1024;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace weft::detail
