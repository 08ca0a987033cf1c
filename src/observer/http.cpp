#include "observer/http.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace weft::detail {
namespace {

constexpr std::array<std::pair<std::string_view, http_page>, 7> pages{{{"/", http_page::page},
                                                                       {"/metrics", http_page::metrics},
                                                                       {"/all.json", http_page::all},
                                                                       {"/snapshot.json", http_page::snapshot},
                                                                       {"/deadlocks.json", http_page::deadlocks},
                                                                       {"/stalls.json", http_page::stalls},
                                                                       {"/snapshot.dot", http_page::dot}}};

constexpr std::string_view type_of(http_page page) noexcept {
  switch (page) {
    case http_page::page: return "text/html; charset=utf-8";
    case http_page::metrics: return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    case http_page::none:
    case http_page::dot: return "text/plain; charset=utf-8";
    default: return "application/json";
  }
}

// In lower case, since names of hosts and of schemes do not depend on case.
std::string lowered(std::string_view text) {
  std::string all{text};
  for (char& one : all)
    if (one >= 'A' && one <= 'Z') one = static_cast<char>(one - 'A' + 'a');
  return all;
}

bool is_here(std::string_view host, unsigned short port) {
  const std::string given = lowered(host);
  for (const std::string_view name : {"127.0.0.1", "localhost"})
    if (given == std::string{name} + ":" + std::to_string(port) || (port == 80 && given == name)) return true;
  return false;
}

bool is_from_here(const http_request& request, unsigned short port) {
  constexpr std::string_view scheme = "http://";
  if (request.origins == 0) return true;
  return request.origins == 1 && lowered(request.origin).substr(0, scheme.size()) == scheme &&
         is_here(request.origin.substr(scheme.size()), port);
}

// Whether, as the browser says, the request is of the observer's own page, or of a typed address; or it is of no browser.
bool is_own_page(const http_request& request) {
  return request.site.empty() || request.site == "same-origin" || request.site == "none";
}

bool has_token(const http_request& request, std::string_view token) {
  constexpr std::string_view scheme = "bearer ";
  if (request.authorizations != 1 || lowered(request.authorization).substr(0, scheme.size()) != scheme) return false;
  std::string_view given = request.authorization;
  given.remove_prefix(scheme.size());
  while (!given.empty() && given.front() == ' ') given.remove_prefix(1);
  return !token.empty() && equal_in_constant_time(given, token);
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i != a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return different == 0;
}

http_verdict judge(const http_request& request, const http_rules& rules) {
  if (request.hosts != 1) return {.status = 400};
  if (!is_here(request.host, rules.port)) return {.status = 421};
  if (!is_from_here(request, rules.port)) return {.status = 403};
  http_page asked = http_page::none;
  for (const auto& [path, page] : pages)
    if (request.target == path) asked = page;
  if (asked != http_page::page && !is_own_page(request)) return {.status = 403};  // a link to the page may be anywhere
  if (!has_token(request, rules.token))
    return {.status = 401, .page = asked == http_page::page ? asked : http_page::none};
  if (!request.is_get && !request.is_head) return {.status = 405};
  if (request.has_body) return {.status = 413};
  if (asked == http_page::none) return {.status = 404};
  return {.status = 200, .page = asked};
}

std::string_view http_reason(unsigned status) noexcept {
  switch (status) {
    case 200: return "OK";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 421: return "Misdirected Request";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Bad Request";
  }
}

std::string http_head(const http_verdict& verdict, std::size_t body_size, bool keeps_alive, std::string_view nonce) {
  std::string head = "HTTP/1.1 " + std::to_string(verdict.status) + ' ';
  head += http_reason(verdict.status);
  head += "\r\nContent-Type: ";
  head += type_of(verdict.page);
  head += "\r\nContent-Length: " + std::to_string(body_size) + "\r\nConnection: ";
  head += keeps_alive ? "keep-alive" : "close";
  if (verdict.status == 401) head += "\r\nWWW-Authenticate: Bearer realm=\"weft\"";
  if (verdict.status == 405) head += "\r\nAllow: GET, HEAD";
  head +=
      "\r\nCache-Control: no-store"
      "\r\nX-Content-Type-Options: nosniff"
      "\r\nX-Frame-Options: DENY"
      "\r\nReferrer-Policy: no-referrer"
      "\r\nCross-Origin-Resource-Policy: same-origin"
      "\r\nCross-Origin-Opener-Policy: same-origin"
      "\r\nContent-Security-Policy: default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  if (!nonce.empty()) {
    head += "; connect-src 'self'; img-src data:; script-src 'nonce-";
    head += nonce;
    head += "'; style-src 'nonce-";
    head += nonce;
    head += '\'';
  }
  head += "\r\n\r\n";
  return head;
}

}  // namespace weft::detail
