#include "observer/helper.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <system_error>
#include <utility>
#include <weft/error.hpp>
#include <weft/recorder.hpp>

#include "base/helper_signals.hpp"
#include "observer/http.hpp"
#include "observer/random_digits.hpp"
#include "observer/work_of_others.hpp"
#include "observer/write_all.hpp"

namespace weft::detail {
namespace {

[[noreturn]] void refuse_observer(int number, const char* doing, std::string_view what) {
  throw error{std::error_code{number, std::generic_category()}, doing, what};
}

// The epoll data of descriptors that are no clients'. Only the addresses matter.
char woken, dump_asked, stalled, came_by_socket, came_by_http;

}  // namespace

observer_helper::observer_helper(const observer_options& options)
    : finds_deadlocks_{options.deadlocks},
      patience_{options.patience},
      dump_file_{options.dump_file != nullptr ? options.dump_file : ""} {
  if (options.patience <= std::chrono::milliseconds{0})
    throw error{std::make_error_code(std::errc::invalid_argument), "make an observer",
                "its patience has to be above 0"};
  if (options.http && !http_reader::exists())
    throw error{std::make_error_code(std::errc::function_not_supported), "answer by HTTP",
                "weft was built without a parser for it (libhttp-parser-dev)"};
  epoll_ = net::owned_descriptor{::epoll_create1(EPOLL_CLOEXEC)};
  wake_ = net::owned_descriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (epoll_.number() < 0 || wake_.number() < 0) refuse_observer(errno, "make", "an observer");
  watch(wake_.number(), EPOLLIN, &woken);
  if (options.socket || (options.http && options.token_file == nullptr)) directory_.emplace(options.directory);
  std::string stem = std::to_string(::getpid());
  if (options.socket) {
    by_socket_ = directory_->listen(stem, socket_file_);
    stem = socket_file_.stem();
    watch(by_socket_.number(), EPOLLIN, &came_by_socket);
  }
  if (options.http) {
    open_http(options.http_port);
    if (!options.socket) stem += "-" + std::to_string(port_);  // no other process has this port
    open_token(options.token_file, stem);
  }
  if (options.dump_signal != 0) {
    dump_signal_.emplace(options.dump_signal);
    watch(dump_signal_->number(), EPOLLIN | EPOLLET, &dump_asked);
  }
  if (finds_deadlocks_) next_tick_ = now_ + look_every;
  if (options.stall_after > std::chrono::milliseconds{0} || options.samples_a_second != 0) {
    stalled_ = net::owned_descriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (stalled_.number() < 0) refuse_observer(errno, "make", "an observer");
    watch(stalled_.number(), EPOLLIN, &stalled);
    stalls_.emplace(options.stall_after, options.samples_a_second, stalled_.number());
  }
  tell_of_forks(*this);
  const helper_signals blocked;
  const int refused = ::pthread_create(&thread_, nullptr, run_thread, this);
  if (refused != 0) {
    tell_no_more(*this);
    refuse_observer(refused, "start", "the thread of an observer");
  }
  ::pthread_setname_np(thread_, "weft-observer");
}

observer_helper::~observer_helper() {
  const std::uint64_t one = 1;
  write_all(wake_.number(), {reinterpret_cast<const char*>(&one), sizeof one});
  ::pthread_join(thread_, nullptr);
  stalls_.reset();
  tell_no_more(*this);
}

void observer_helper::open_http(unsigned short port) {
  by_http_ = net::owned_descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (by_http_.number() < 0) refuse_observer(errno, "make", "a socket");
  const int on = 1;
  ::setsockopt(by_http_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  constexpr int backlog = 16;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(by_http_.number(), address, size) != 0 || ::listen(by_http_.number(), backlog) != 0 ||
      ::getsockname(by_http_.number(), address, &size) != 0)
    refuse_observer(errno, "listen on", "127.0.0.1:" + std::to_string(port));
  port_ = ntohs(at.sin_port);
  watch(by_http_.number(), EPOLLIN, &came_by_http);
}

void observer_helper::open_token(const char* file, const std::string& stem) {
  if (file == nullptr) {
    token_ = random_digits(32);
    directory_->write(stem, token_ + '\n', token_file_);
    token_path_ = token_file_.path();
    return;
  }
  token_ = read_private_file(file);
  token_path_ = file;
  constexpr std::size_t shortest_token = 16;
  if (token_.size() < shortest_token || token_.find_first_of(" \t\r\n") != std::string::npos)
    refuse_observer(EINVAL, "take a token of 16 characters or more, without blanks, from", file);
}

void observer_helper::watch(int number, std::uint32_t events, void* what) {
  epoll_event asked{};
  asked.events = events;
  asked.data.ptr = what;
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, number, &asked) != 0) refuse_observer(errno, "watch", "a descriptor");
}

// ---- fork(): the child does not have the thread, and closes the descriptors that the parent goes on with ----------------------

// The thread may have been anywhere except where it opens or closes a descriptor: so nothing else is used, now or later.
void observer_helper::close_in_child() noexcept {
  is_forked_ = true;
  for (const int each : {epoll_.number(), wake_.number(), stalled_.number(), by_socket_.number(), by_http_.number()})
    if (each >= 0) ::close(each);
  if (directory_) ::close(directory_->number());
  for (const observer_client& one : clients_) ::close(one.number());
  table_lock_.unlock();
}

// ---- the loop -------------------------------------------------------------------------------------------------------------------

void* observer_helper::run_thread(void* self) noexcept {
  static_cast<observer_helper*>(self)->run();
  return nullptr;
}

// If there is no memory for an answer, the clients are dropped, and the process goes on.
void observer_helper::run() noexcept {
  while (!ends_) {
    try {
      while (look_once()) continue;
    } catch (const std::bad_alloc&) {
      while (!clients_.empty()) end(clients_.begin());
    } catch (const std::exception& failure) {
      write_all(STDERR_FILENO, std::string{"weft: the observer: "} + failure.what() + '\n');
      while (!clients_.empty()) end(clients_.begin());
    }
  }
}

int observer_helper::wait_time() const {
  time_point until = next_tick_.value_or(time_point::max());
  if (accepts_again_at_) until = std::min(until, *accepts_again_at_);
  for (const observer_client& one : clients_) until = std::min(until, one.gives_up_at());
  if (until == time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

bool observer_helper::look_once() {
  std::array<epoll_event, 16> events{};
  const int count = ::epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()), wait_time());
  if (count < 0 && errno != EINTR) {
    write_all(STDERR_FILENO,
              "weft: the observer ends: it can't wait: " + std::error_code{errno, std::generic_category()}.message() +
                  "; has the program closed descriptors that are not its own?\n");
    return !(ends_ = true);
  }
  now_ = clock::now();
  for (int i = 0; i < count; ++i) {
    void* const what = events[static_cast<std::size_t>(i)].data.ptr;
    if (what == &woken) return !(ends_ = true);
    if (what == &dump_asked) {
      dump();
    } else if (what == &stalled) {
      tell_stalls();
    } else if (what == &came_by_socket) {
      accept_from(by_socket_.number(), false);
    } else if (what == &came_by_http) {
      accept_from(by_http_.number(), true);
    } else {
      const auto one = std::ranges::find_if(clients_, [&](const observer_client& each) { return &each == what; });
      if (one != clients_.end()) serve(one);
    }
  }
  drop_late();
  if (accepts_again_at_ && now_ >= *accepts_again_at_) listen_on(true);
  if (next_tick_ && now_ >= *next_tick_) tick();
  return true;
}

unsigned observer_helper::count_of(bool is_http) const noexcept {
  return static_cast<unsigned>(
      std::ranges::count_if(clients_, [&](const observer_client& one) { return one.is_http() == is_http; }));
}

bool observer_helper::may_ask(int socket) const noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

void observer_helper::accept_from(int listens, bool is_http) {
  constexpr int most_at_once = 16;
  for (int i = 0; i != most_at_once; ++i) {
    const std::lock_guard held{table_lock_};
    net::owned_descriptor came{::accept4(listens, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (came.number() < 0) {
      // No descriptor, or no memory: the connection stays in the backlog, and would wake this thread again and again.
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED) listen_on(false);
      return;
    }
    if (!is_http && !may_ask(came.number())) {
      ++counts_.refused;
      continue;
    }
    // Any local user can connect by HTTP: so the client without a token that was silent for longest gives way.
    if (is_http && count_of(is_http) == most_clients) {
      auto oldest = clients_.end();
      for (auto one = clients_.begin(); one != clients_.end(); ++one)
        if (one->is_http() && !one->has_shown_token &&
            (oldest == clients_.end() || one->moved_at() < oldest->moved_at()))
          oldest = one;
      if (oldest != clients_.end()) {
        ++counts_.dropped;
        clients_.erase(oldest);
      }
    }
    if (count_of(is_http) == most_clients) {
      ++counts_.refused;
      const std::string_view sorry =
          is_http ? "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                  : "{\"error\":\"too many clients\"}\n";
      [[maybe_unused]] const auto sent = ::send(came.number(), sorry.data(), sorry.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      continue;
    }
    observer_client& one = clients_.emplace_back(std::move(came), is_http, now_, patience_);
    one.watched = EPOLLIN;
    epoll_event asked{};
    asked.events = one.watched;
    asked.data.ptr = &one;
    if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, one.number(), &asked) != 0) clients_.pop_back();
  }
}

void observer_helper::listen_on(bool on) noexcept {
  epoll_event asked{};
  asked.events = on ? std::uint32_t{EPOLLIN} : 0U;
  accepts_again_at_ = on ? std::nullopt : std::optional{now_ + look_every};
  for (const auto& [number, what] :
       {std::pair{by_socket_.number(), &came_by_socket}, {by_http_.number(), &came_by_http}}) {
    asked.data.ptr = what;
    if (number >= 0) ::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, number, &asked);
  }
}

void observer_helper::end(client_place one) {
  const std::lock_guard held{table_lock_};
  clients_.erase(one);
}

void observer_helper::serve(client_place one) {
  observer_client& client = *one;
  if (client.takes_more() && !client.receive(now_)) return end(one);
  for (;;) {
    if (!client.flush(now_ = clock::now())) return end(one);  // to make an answer may have taken longer than `patience`
    if (!client.takes_more()) break;
    if (!client.is_http()) {
      std::string_view line;
      if (!client.next_line(line)) break;
      answer_line(client, line);
      continue;
    }
    http_request request;
    const http_reader::state found = client.next_request(request);
    if (found == http_reader::state::goes_on) break;
    if (found == http_reader::state::complete)
      answer_http(client, request);
    else
      refuse_http(client, found == http_reader::state::too_large ? 431 : 400);
  }
  if (client.is_over()) return end(one);
  const std::uint32_t wanted = client.has_output() ? EPOLLOUT : EPOLLIN;
  if (wanted == client.watched) return;
  client.watched = wanted;
  epoll_event asked{};
  asked.events = wanted;
  asked.data.ptr = &client;
  ::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, client.number(), &asked);
}

void observer_helper::drop_late() {
  for (auto one = clients_.begin(); one != clients_.end();) {
    const auto next = std::next(one);
    if (now_ >= one->gives_up_at()) {
      ++counts_.dropped;
      end(one);
    }
    one = next;
  }
}

// ---- each second ----------------------------------------------------------------------------------------------------------------

void observer_helper::tick() {
  next_tick_ = now_ + look_every;  // first, since what follows may throw
  const bool is_asked = std::ranges::any_of(clients_, [](const observer_client& one) { return one.is_subscribed; });
  if (is_asked) {
    const shared_text line = as_shared("{\"event\":\"second\",\"status\":" + status_json(counts()) + "}\n");
    for (auto one = clients_.begin(); one != clients_.end();) {
      const auto next = std::next(one);
      // A client that has not read the last line is skipped: the next line that it reads has the newest state.
      if (one->is_subscribed && !one->has_output()) {
        one->send(line);
        serve(one);
      }
      one = next;
    }
  }
  // No deadlock can arise while nothing runs. So an idle process is looked at twice, and then only every 10 s.
  constexpr unsigned enough_looks = 2;
  const work_of_others work = work_of_others::so_far();
  quiet_looks_ = work.is_none_since(work_before_) ? quiet_looks_ + 1 : 0;
  work_before_ = work;
  if (finds_deadlocks_ && (quiet_looks_ < enough_looks || is_asked)) look_for_deadlocks();
  if (is_asked || (finds_deadlocks_ && quiet_looks_ < enough_looks)) return;
  next_tick_ = finds_deadlocks_ ? std::optional{now_ + look_at_least_every} : std::nullopt;
}

void observer_helper::look_for_deadlocks() {
  if (!are_deadlocks()) return told_.clear();
  const process_view view;
  std::set<std::string> found;
  constexpr std::uint64_t most_at_once = 20;  // of thousands with the same cause, these few suffice
  std::uint64_t new_ones = 0;
  for (const told_deadlock& one : view.deadlocks()) {
    found.insert(one.key);
    if (told_.contains(one.key)) continue;
    ++counts_.deadlocks;
    if (++new_ones > most_at_once) continue;
    write_all(STDERR_FILENO, "weft: " + one.text);
    save_recording_of_deadlock();
    tell(as_shared("{\"event\":\"deadlock\",\"deadlock\":" + one.json + "}\n"));
  }
  if (new_ones > most_at_once)
    write_all(STDERR_FILENO, "weft: and " + std::to_string(new_ones - most_at_once) + " deadlocks more\n");
  told_ = std::move(found);
}

// Sends a line to all subscribers, also to those that have unread lines, up to a bound.
void observer_helper::tell(const shared_text& line) {
  for (auto each = clients_.begin(); each != clients_.end();) {
    const auto next = std::next(each);
    constexpr std::size_t most_unread = 64;
    if (each->is_subscribed && each->unread() < most_unread) {
      each->send(line);
      serve(each);
    }
    each = next;
  }
}

void observer_helper::tell_stalls() {
  std::uint64_t since = 0;
  [[maybe_unused]] const auto size = ::read(stalled_.number(), &since, sizeof since);
  for (const std::string& one : stalls_->take_new()) tell(as_shared("{\"event\":\"stall\",\"stall\":" + one + "}\n"));
}

const observer_counts& observer_helper::counts() {
  counts_.clients = static_cast<unsigned>(clients_.size());
  counts_.stalls = stalls_ ? stalls_->count() : 0;
  return counts_;
}

}  // namespace weft::detail
