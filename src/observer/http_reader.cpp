#include <algorithm>
#include <cstring>
#include <utility>

#include "observer/http.hpp"

#if defined(WEFT_WITH_HTTP_PARSER)
#include <http_parser.h>

namespace weft::detail {
namespace {

bool is_called(std::string_view field, std::string_view name) noexcept {
  return std::ranges::equal(field, name,
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

}  // namespace

struct http_reader::parts {
  http_parser parser{};
  http_request request;
  std::string field, value;
  std::size_t size = 0;  // of the head so far, in bytes
  bool is_in_value = false, is_inside = false, is_complete = false, is_body_refused = false;

  static parts& of(http_parser* parser) noexcept { return *static_cast<parts*>(parser->data); }

  void begin() {
    request = {};
    field.clear();
    value.clear();
    size = 0;
    is_in_value = is_complete = is_body_refused = false;
    is_inside = true;
  }
  void end_field() {
    is_in_value = false;
    const auto keep = [&](std::string_view name, std::string& as, unsigned* count) {
      if (!is_called(field, name)) return;
      as = value;
      if (count != nullptr) ++*count;
    };
    keep("host", request.host, &request.hosts);
    keep("origin", request.origin, &request.origins);
    keep("authorization", request.authorization, &request.authorizations);
    keep("sec-fetch-site", request.site, nullptr);
    field.clear();
    value.clear();
  }
};

namespace {

// The callbacks of http_parser; a result other than 0 ends the connection.
template <class Parts>
http_parser_settings calls() noexcept {
  http_parser_settings all;
  http_parser_settings_init(&all);
  all.on_message_begin = [](http_parser* parser) { return (Parts::of(parser).begin(), 0); };
  all.on_url = [](http_parser* parser, const char* at, std::size_t size) {
    return (Parts::of(parser).request.target.append(at, size), 0);
  };
  all.on_header_field = [](http_parser* parser, const char* at, std::size_t size) {
    Parts& all_parts = Parts::of(parser);
    if (all_parts.is_in_value) all_parts.end_field();
    return (all_parts.field.append(at, size), 0);
  };
  all.on_header_value = [](http_parser* parser, const char* at, std::size_t size) {
    Parts& all_parts = Parts::of(parser);
    all_parts.is_in_value = true;
    return (all_parts.value.append(at, size), 0);
  };
  all.on_headers_complete = [](http_parser* parser) {
    Parts& all_parts = Parts::of(parser);
    if (!all_parts.field.empty()) all_parts.end_field();
    http_request& request = all_parts.request;
    request.is_get = parser->method == HTTP_GET;
    request.is_head = parser->method == HTTP_HEAD;
    // A body is not read: the connection is closed after the answer.
    const bool has_length = (parser->flags & F_CONTENTLENGTH) != 0 && parser->content_length != 0;
    request.has_body = has_length || (parser->flags & F_CHUNKED) != 0 || (parser->flags & F_UPGRADE) != 0 ||
                       parser->method == HTTP_CONNECT;
    request.keeps_alive = http_should_keep_alive(parser) != 0 && !request.has_body;
    if (!request.has_body) return 0;
    all_parts.is_complete = true;
    all_parts.is_inside = false;
    http_parser_pause(parser, 1);
    return 0;
  };
  all.on_message_complete = [](http_parser* parser) {
    Parts& all_parts = Parts::of(parser);
    all_parts.is_complete = true;
    all_parts.is_inside = false;
    http_parser_pause(parser, 1);  // a request behind it waits for the answer
    return 0;
  };
  return all;
}

}  // namespace

bool http_reader::exists() noexcept { return true; }

http_reader::http_reader() : parts_{std::make_unique<parts>()} {
  http_parser_init(&parts_->parser, HTTP_REQUEST);
  parts_->parser.data = parts_.get();
}

http_reader::~http_reader() = default;

http_reader::state http_reader::read(std::string_view came, std::size_t& taken) {
  static const http_parser_settings settings = calls<parts>();
  taken = 0;
  if (parts_->is_complete) return state::complete;
  const std::size_t most = largest_head - std::min(parts_->size, largest_head);
  const std::string_view fits = came.substr(0, most);
  taken = http_parser_execute(&parts_->parser, &settings, fits.data(), fits.size());
  parts_->size += taken;
  if (parts_->is_complete) return state::complete;
  if (HTTP_PARSER_ERRNO(&parts_->parser) == HPE_HEADER_OVERFLOW) return state::too_large;
  if (HTTP_PARSER_ERRNO(&parts_->parser) != HPE_OK) return state::wrong;
  return parts_->size >= largest_head ? state::too_large : state::goes_on;
}

http_request http_reader::take() {
  http_parser_pause(&parts_->parser, 0);
  parts_->is_complete = false;
  parts_->size = 0;
  return std::exchange(parts_->request, {});
}

bool http_reader::is_inside() const noexcept { return parts_->is_inside || parts_->size != 0; }

}  // namespace weft::detail
#else

namespace weft::detail {

struct http_reader::parts {};

bool http_reader::exists() noexcept { return false; }
http_reader::http_reader() = default;
http_reader::~http_reader() = default;
http_reader::state http_reader::read(std::string_view, std::size_t& taken) { return (taken = 0, state::wrong); }
http_request http_reader::take() { return {}; }
bool http_reader::is_inside() const noexcept { return false; }

}  // namespace weft::detail
#endif
