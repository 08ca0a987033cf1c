// The observer's thread: a loop over its sockets and its clients, and over a tick each second while there is something to do.
//
// It has an epoll set of its own and uses nothing of a runtime, so it goes on where all workers are blocked. It blocks all
// signals that are sent to the process. Only this thread uses the state, except for the descriptors, which a fork() reads.
#pragma once

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <weft/observer.hpp>
#include <weft/unix.hpp>

#include "observer/answers.hpp"
#include "observer/client.hpp"
#include "observer/dump_signal.hpp"
#include "observer/fork_guard.hpp"
#include "observer/private_directory.hpp"
#include "observer/request.hpp"
#include "observer/stalls.hpp"
#include "observer/work_of_others.hpp"

namespace weft::detail {

class observer_helper final : fork_guarded {
 public:
  /// The most clients at a time, of each kind (socket and HTTP).
  static constexpr unsigned most_clients = 16;

  explicit observer_helper(const observer_options& options);
  observer_helper(const observer_helper&) = delete;
  ~observer_helper();

  std::string_view socket_path() const noexcept { return socket_file_.path(); }
  unsigned short http_port() const noexcept { return port_; }
  std::string_view token() const noexcept { return token_; }
  std::string_view token_path() const noexcept { return token_path_; }

  /// Whether this process is a forked child of the one that made it. Then it is never destroyed.
  bool is_forked() const noexcept { return is_forked_; }

 private:
  void hold() noexcept override { table_lock_.lock(); }
  void let_go() noexcept override { table_lock_.unlock(); }
  void close_in_child() noexcept override;

  using clock = std::chrono::steady_clock;
  using time_point = clock::time_point;
  using client_place = std::list<observer_client>::iterator;

  // How often subscribers get the status, and how often it looks for deadlocks; the second value is for a process that does
  // nothing.
  static constexpr std::chrono::seconds look_every{1}, look_at_least_every{10};

  void open_http(unsigned short port);
  void open_token(const char* file, const std::string& stem);
  static void* run_thread(void* self) noexcept;
  void run() noexcept;
  void watch(int number, std::uint32_t events, void* what);
  bool look_once();

  void accept_from(int listens, bool is_http);
  void listen_on(bool on) noexcept;
  bool may_ask(int socket) const noexcept;
  void serve(client_place one);
  void answer_line(observer_client& to, std::string_view line);
  void answer_http(observer_client& to, const http_request& request);
  void refuse_http(observer_client& to, unsigned status, bool is_head = false);
  std::string access_json() const;
  void end(client_place one);
  void drop_late();
  void tick();
  void look_for_deadlocks();
  void tell_stalls();
  void tell(const shared_text& line);
  std::string stalls_json() const { return stalls_ ? stalls_->json() : "[]"; }
  const observer_counts& counts();
  void dump();
  int wait_time() const;
  unsigned count_of(bool is_http) const noexcept;

  const bool finds_deadlocks_;
  const std::chrono::milliseconds patience_;
  const std::string dump_file_;
  std::optional<dump_signal> dump_signal_;
  std::optional<private_directory> directory_;  // declared before its files, which refer to it
  private_file socket_file_, token_file_;
  std::string token_, token_path_;
  unsigned short port_ = 0;

  std::mutex table_lock_;  // held around each opening and closing of a descriptor, and by a fork()
  net::owned_descriptor epoll_, wake_, stalled_, by_socket_, by_http_;
  std::optional<observed_stalls> stalls_;  // declared after stalled_, by which it wakes this thread
  std::list<observer_client> clients_;

  time_point now_ = clock::now();
  std::optional<time_point> next_tick_;
  std::optional<time_point> accepts_again_at_;  // accept() had no descriptor or memory
  bool ends_ = false;
  std::set<std::string> told_;    // keys of the deadlocks that were reported and still exist
  work_of_others work_before_{};  // at the last tick
  unsigned quiet_looks_ = 0;
  observer_counts counts_;

  bool is_forked_ = false;
  pthread_t thread_{};
};

}  // namespace weft::detail
