// The observer: what a program does, for people and programs beside it. A library of its own, weft::observe.
//
//     w::observer watching{{.http = true}};  // as long as it lives
//
// Or without a line of code, in a program that is linked with it:
//
//     WEFT_OBSERVE=socket,http=9900,dump=SIGUSR2 ./server
//
// It answers on a Unix socket, in lines of JSON, and where it is asked to on loopback, by HTTP: a page for a browser, and
// metrics for Prometheus. docs/book/what-now.md shows what to do with it, docs/book/observer.md has the protocol.
//
// A thread of its own does all of that, so it answers where all workers are blocked; and nobody who reads slowly, or not at
// all, holds up a worker. It looks for deadlocks each second, and writes each to stderr, once.
//
// Who may ask: by the socket this user and root, of whom the kernel tells; by HTTP whoever has the token, which is in a file
// that only this user can read. See docs/design/0028-observer.md.
#pragma once

#include <chrono>
#include <string_view>

namespace weft {

namespace detail {
class observer_helper;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
}

/// What an observer is to do: `observer o{{.http = true}};`.
struct observer_options {
  /// Answers on a Unix socket, `<process id>.sock` in `directory`.
  bool socket = true;
  /// Answers by HTTP on 127.0.0.1, too. Where weft was built without an HTTP parser, making the observer fails.
  bool http = false;
  unsigned short http_port = 0;  ///< 0: one that is free
  /// Where the socket and the token's file are. It is made if it is not there, and has to be this user's and of mode 0700. Null:
  /// `$XDG_RUNTIME_DIR/weft`; where that variable is not set, making the observer fails.
  const char* directory = nullptr;
  /// A file with the token that HTTP requests have to carry, for a scraper that is configured once; nobody but this user may
  /// be able to read it. Null: a random token, in a file of that name with `.token` beside the socket.
  const char* token_file = nullptr;
  /// How long a request may take to come, and an answer to be read, as long as nothing moves; then the connection is ended. Above 0.
  std::chrono::milliseconds patience{10'000};
  /// Looks for deadlocks each second, while there is work, and writes each one to stderr, once.
  bool deadlocks = true;
  /// Has a watchdog look for workers that are at one job for so long, which it writes to stderr. 0: none, as where the program has a
  /// watchdog of its own.
  std::chrono::milliseconds stall_after{0};
  /// How often a second the flight recorder gets where each worker is that computes: for the profile in a recording. 0: never;
  /// 1000 at most. By a watchdog, too.
  unsigned samples_a_second = 0;
  /// A signal that has a dump written, in text: of all that lives, and of the deadlocks. 0: none. Its action is changed, and set
  /// back at the end.
  int dump_signal = 0;
  /// Where dumps are appended to. Null: stderr.
  const char* dump_file = nullptr;
};

/// Answers those who ask what the process does, until it is destroyed.
///
/// Fails     the constructor throws a weft::error: the directory is somebody else's, or open to others; the port is taken.
/// Threads   is made and destroyed by one at a time. There may be several, with different ports.
/// Lifetime  may outlive pools and runtimes, and be older. A process that is forked is not observed: it has none of the thread,
///           and closes what it inherited.
/// Cost      a thread, which looks at all tasks once a second for deadlocks; without those, nothing until somebody asks.
class observer {
 public:
  explicit observer(const observer_options& options = {});  ///< starts its thread
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;
  ~observer();

  /// The path of the socket; empty: it has none.
  std::string_view socket_path() const noexcept;
  /// The port on 127.0.0.1; 0: none.
  unsigned short http_port() const noexcept;
  /// What a request by HTTP carries: `Authorization: Bearer <token>`.
  std::string_view token() const noexcept;
  /// The file that it is in.
  std::string_view token_path() const noexcept;

 private:
  detail::observer_helper* helper_;
};

}  // namespace weft
