// The observer: answers questions of people and other programs about what this program does. A library of its own,
// weft::observe.
//
//     w::observer watching{{.http = true}};  // as long as it lives
//
// Or without a line of code, in a program that is linked with it:
//
//     WEFT_OBSERVE=socket,http=9900,dump=SIGUSR2 ./server
//
// It answers on a Unix socket, in lines of JSON, and, if asked for, by HTTP on the loopback interface: with a page for a
// browser, and with metrics for Prometheus. docs/book/what-now.md shows how to use it, docs/book/observer.md describes the
// protocol.
//
// All this runs on a thread of its own, so it answers where all workers are blocked; and a client that reads slowly, or not at
// all, holds up no worker. The observer looks for deadlocks each second, and writes each to stderr, once.
//
// Who may ask: on the socket, this user and root, as the kernel identifies them; by HTTP, whoever has the token, which is in a
// file that only this user can read. See docs/design/0028-observer.md.
#pragma once

#include <chrono>
#include <string_view>

namespace weft {

namespace detail {
class observer_helper;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
}

/// Options of an observer: `observer o{{.http = true}};`.
struct observer_options {
  /// Answers on a Unix socket, `<process id>.sock` in `directory`.
  bool socket = true;
  /// Also answers by HTTP on 127.0.0.1. If weft was built without an HTTP parser, the constructor fails.
  bool http = false;
  unsigned short http_port = 0;  ///< 0: any free port
  /// The directory of the socket and of the token's file. It is made if it does not exist, and must be this user's, with mode
  /// 0700. Null: `$XDG_RUNTIME_DIR/weft`; if that variable is not set, the constructor fails.
  const char* directory = nullptr;
  /// A file with the token that HTTP requests must carry, for a scraper that is configured once; nobody but this user may be
  /// able to read it. Null: a random token, which is written to a file named as the socket, with `.token` at the end.
  const char* token_file = nullptr;
  /// How long a request may take from its first byte to its last, and how long a client may read nothing of an answer; then the
  /// connection is closed. Above 0.
  std::chrono::milliseconds patience{10'000};
  /// Looks for deadlocks each second, while the program does something, and writes each one to stderr, once.
  bool deadlocks = true;
  /// Makes a watchdog, which writes to stderr which workers are at one job for longer than this. 0: none, as for a program that
  /// has a watchdog of its own.
  std::chrono::milliseconds stall_after{0};
  /// How often a second the flight recorder records where each computing worker is, for the profile in a recording. 0: never;
  /// 1000 at most. This takes a watchdog, too.
  unsigned samples_a_second = 0;
  /// A signal on which a dump is written, as text: all tasks, and the deadlocks. 0: none. The observer sets the signal's
  /// action, and restores the old one at the end.
  int dump_signal = 0;
  /// The file to which dumps are appended. Null: stderr.
  const char* dump_file = nullptr;
};

/// Answers questions about the process until it is destroyed.
///
/// Fails     the constructor throws a weft::error: the directory is another user's, or open to others; the port is taken.
/// Threads   may be made and destroyed on any, one at a time. There may be several observers, with different ports.
/// Lifetime  may be made before pools and runtimes, and outlive them. A child of fork() is not observed: it does not have the
///           thread, and closes the descriptors that it inherited.
/// Cost      a thread, which looks at all tasks once a second for deadlocks; if that is off, it sleeps until somebody asks.
class observer {
 public:
  explicit observer(const observer_options& options = {});  ///< starts the thread
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;
  ~observer();

  /// The path of the socket; empty: there is none.
  std::string_view socket_path() const noexcept;
  /// The port on 127.0.0.1; 0: HTTP is off.
  unsigned short http_port() const noexcept;
  /// The token that an HTTP request carries: `Authorization: Bearer <token>`.
  std::string_view token() const noexcept;
  /// The path of the file with the token.
  std::string_view token_path() const noexcept;

 private:
  detail::observer_helper* helper_;
};

}  // namespace weft
