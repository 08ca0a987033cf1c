// How the observer's thread answers: a line, an HTTP request, and a signal.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/unix.hpp>

#include "base/json.hpp"
#include "observer/answers.hpp"
#include "observer/helper.hpp"
#include "observer/http.hpp"
#include "observer/page.hpp"
#include "observer/random_digits.hpp"
#include "observer/write_all.hpp"

namespace weft::detail {
namespace {

std::string deadlocks_json(const process_view& view) {
  std::string all = "[";
  for (const told_deadlock& one : view.deadlocks()) {
    if (all.size() != 1) all += ',';
    all += one.json;
  }
  return all + ']';
}

}  // namespace

std::string observer_helper::access_json() const {
  std::string all = "{\"http\":";
  if (port_ == 0) return all + "null}";
  append_json(all, "http://127.0.0.1:" + std::to_string(port_) + "/");
  all += ",\"token\":";
  append_json(all, token_);
  return all + '}';
}

void observer_helper::answer_line(observer_client& to, std::string_view line) {
  const observer_request request =
      line.size() > longest_request
          ? observer_request{.kind = request_kind::help, .id = {}, .error = "a line is too long: 1024 bytes at most"}
          : parse_request(line);
  std::string answer = "{";
  if (request.error != nullptr) {
    answer += "\"error\":";
    append_json(answer, request.error);
    answer += "}\n";
    return to.send(as_shared(std::move(answer)));
  }
  ++counts_.answers;
  const std::string_view name = name_of(request.kind);
  answer += "\"answer\":\"" + std::string{name} + '"';
  if (!request.id.empty()) answer += ",\"id\":" + request.id;
  answer += ",\"" + std::string{name} + "\":";
  switch (request.kind) {
    case request_kind::snapshot: answer += process_view{}.json(); break;
    case request_kind::text: append_json(answer, process_view{}.text()); break;
    case request_kind::dot: append_json(answer, process_view{}.dot()); break;
    case request_kind::deadlocks: answer += deadlocks_json(process_view{}); break;
    case request_kind::stalls: answer += stalls_json(); break;
    case request_kind::metrics: append_json(answer, metrics_text(counts())); break;
    case request_kind::status: answer += status_json(counts()); break;
    case request_kind::access: answer += access_json(); break;
    case request_kind::subscribe:
      to.is_subscribed = true;
      next_tick_ = std::min(next_tick_.value_or(time_point::max()), now_ + look_every);
      answer += "true";
      break;
    case request_kind::unsubscribe:
      to.is_subscribed = false;
      answer += "true";
      break;
    case request_kind::help:
      answer += '[';
      for (auto kind = request_kind::snapshot; kind != request_kind::help;
           kind = static_cast<request_kind>(static_cast<unsigned>(kind) + 1)) {
        append_json(answer, name_of(kind));
        answer += ',';
      }
      append_json(answer, "help");
      answer += ']';
      break;
  }
  answer += "}\n";
  to.send(as_shared(std::move(answer)));
}

void observer_helper::refuse_http(observer_client& to, unsigned status, bool is_head) {
  const std::string body = std::string{http_reason(status)} + '\n';
  std::string answer = http_head({.status = status, .page = http_page::none}, body.size(), false, {});
  if (!is_head) answer += body;
  to.send(as_shared(std::move(answer)));
  to.close_after_output();
}

void observer_helper::answer_http(observer_client& to, const http_request& request) {
  const http_verdict verdict = judge(request, {.port = port_, .token = token_});
  if (verdict.page == http_page::none) {
    ++counts_.refused;
    return refuse_http(to, verdict.status, request.is_head);
  }
  ++counts_.answers;
  if (verdict.status == 200) to.has_shown_token = true;
  std::string body, nonce;
  switch (verdict.page) {
    case http_page::none: break;
    case http_page::page:
      nonce = random_digits(16);
      body = page_with(nonce);
      break;
    case http_page::metrics: body = metrics_text(counts()); break;
    case http_page::all: {
      const process_view view;
      body = "{\"status\":" + status_json(counts()) + ",\"stalls\":" + stalls_json() +
             ",\"deadlocks\":" + deadlocks_json(view) + ",\"snapshot\":" + view.json() + "}\n";
      break;
    }
    case http_page::snapshot: body = process_view{}.json() + '\n'; break;
    case http_page::deadlocks: body = deadlocks_json(process_view{}) + '\n'; break;
    case http_page::stalls: body = stalls_json() + '\n'; break;
    case http_page::dot: body = process_view{}.dot(); break;
  }
  std::string answer = http_head(verdict, body.size(), request.keeps_alive, nonce);
  if (!request.is_head) answer += body;
  to.send(as_shared(std::move(answer)));
  if (!request.keeps_alive) to.close_after_output();
}

void observer_helper::dump() {
  const process_view view;
  const std::string text = "weft: dump of process " + std::to_string(::getpid()) + '\n' + view.text();
  if (dump_file_.empty()) {
    write_all(STDERR_FILENO, text);
    return;
  }
  // O_NONBLOCK: a pipe without a reader must not hold up the observer.
  const net::owned_descriptor to{::open(
      dump_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR)};
  if (to.number() >= 0 && write_all(to.number(), text)) return;
  write_all(STDERR_FILENO, "weft: the dump can't be written to " + dump_file_ + ": " +
                               std::error_code{errno, std::generic_category()}.message() + '\n');
}

}  // namespace weft::detail
