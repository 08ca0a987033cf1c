// Follows a log file, and ships its lines over TLS: `example_log_shipper /var/log/app.log logs.example.com 6514`. A fourth argument
// names a file of certificates that are trusted instead of the system's. The log may come later, be rotated by a rename, and be
// truncated. It ends at Ctrl-C.
//
// Each file that has had the name is read along, also under its new name, until two more have had it: the program that writes the
// log may go on writing to the old one until it opens the new one. A file that was renamed before it could be opened is found by
// its new name, which an event tells. So no line of a rotation is lost, and none comes twice, unless the system tells that
// events were lost (overflow).
//
// Where the connection breaks, what was being sent is sent again on the next one: the receiver may have a part of that twice, since
// nobody confirms a line. What is cut off by a truncation before it was read is lost, as it is for every reader.
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>
#include <weft/tls.hpp>
#include <weft/weft.hpp>

namespace w = weft;
namespace fs = w::fs;
using namespace std::literals;

// Where lines go. One connection at a time, made when there is something to send.
class receiver {
 public:
  receiver(std::string host, std::string port, w::tls::pem trusted)
      : host_{std::move(host)}, port_{std::move(port)}, trusting_{{.trust = trusted}} {}

  w::task<> send(std::string_view lines) {
    const auto once = [&]() -> w::task<> {
      try {
        if (!connection_) connection_.emplace(co_await w::tls::connect(trusting_, host_, port_));
        co_await connection_->write(lines);
      } catch (const w::error& failed) {
        std::fprintf(stderr, "%s\n", failed.what());
        connection_.reset();
        throw;
      }
    };
    co_await w::retry({.attempts = 1000, .delay = 100ms, .max_delay = 5s}, once);
  }

  // Tells the receiver that this is all. A write that was stopped has closed the connection.
  w::task<> end() {
    if (connection_ && connection_->is_open()) co_await connection_->shutdown();
  }

 private:
  std::string host_, port_;
  w::tls::client_context trusting_;
  std::optional<w::tls::stream<>> connection_;
};

// A file that is read on, also when it has another name, or none.
class open_log {
 public:
  // None: it is not there yet.
  static w::task<std::optional<open_log>> open(std::string path) {
    auto opened = co_await w::as_result(w::file::open(path));
    if (!opened && opened.error() == std::errc::no_such_file_or_directory) co_return std::nullopt;
    w::file file = std::move(opened).value();
    const std::uint64_t inode = (co_await file.stat()).inode;
    co_return open_log{std::move(file), inode};
  }

  std::uint64_t inode() const { return inode_; }

  // Ships what has been added since. The rest of a line waits for its end.
  w::task<> ship(receiver& to) {
    std::array<char, 65536> buffer;
    for (;;) {
      if (co_await file_.size() < at_) at_ = 0, rest_.clear();  // truncated
      const std::size_t size = co_await file_.read_at(at_, std::as_writable_bytes(std::span{buffer}));
      if (size == 0) co_return;
      at_ += size;
      rest_.append(buffer.data(), size);
      const std::size_t end = rest_.rfind('\n');
      if (end == std::string::npos) continue;
      co_await to.send(std::string_view{rest_}.substr(0, end + 1));
      rest_.erase(0, end + 1);
    }
  }
  // The last time.
  w::task<> end(receiver& to) {
    co_await ship(to);
    if (!rest_.empty()) co_await to.send(rest_ + "\n");
  }

 private:
  open_log(w::file file, std::uint64_t inode) : file_{std::move(file)}, inode_{inode} {}

  w::file file_;
  std::uint64_t inode_;
  std::uint64_t at_ = 0;
  std::string rest_;
};

class follower {
 public:
  follower(const std::string& path, receiver& to) : to_{to} {
    const std::size_t slash = path.rfind('/');
    in_ = slash == std::string::npos ? "./" : path.substr(0, slash + 1);
    name_ = path.substr(slash + 1);  // npos + 1 is 0
  }

  w::task<> run() {
    fs::file_watch watch;
    co_await watch.add({.only_directory = true}, in_);  // before the first look, so that nothing is missed
    co_await take(name_);
    for (;;) {
      // What was opened by the name may be newer than what the events that are there already tell of: they come first.
      for (auto more = co_await next_of(watch); more; more = co_await next_of(watch)) co_await heed(*more);
      while (logs_.size() > 2) {
        co_await logs_.front().end(to_);
        logs_.erase(logs_.begin());
      }
      for (open_log& one : logs_) co_await one.ship(to_);
      co_await heed(co_await watch.next());
    }
  }

 private:
  static w::task<std::optional<fs::file_event>> next_of(const fs::file_watch& watch) {
    auto got = co_await w::select(w::on(watch.next()), w::otherwise);
    if (got.index != 0) co_return std::nullopt;
    co_return std::get<0>(std::move(got.value));
  }

  w::task<> heed(fs::file_event one) {
    if (one.has(fs::file_change::ended))
      throw w::error{std::make_error_code(std::errc::no_such_file_or_directory), "follow", in_};
    if (one.has(fs::file_change::moved_from) && one.name == name_) rotation_ = one.cookie;
    if (one.has(fs::file_change::moved_to) && one.cookie == rotation_) co_await take(one.name);
    if (one.name == name_ || one.has(fs::file_change::overflow)) co_await take(name_);
  }

  // Opens what has that name now, unless it is open. What has the log's own name is the newest one.
  w::task<> take(std::string name) {
    auto found = co_await open_log::open(in_ + name);
    if (!found) co_return;
    for (const open_log& one : logs_)
      if (one.inode() == found->inode()) co_return;
    const bool is_newest = name == name_ || logs_.empty();
    logs_.insert(is_newest ? logs_.end() : logs_.end() - 1, std::move(*found));
  }

  std::string in_, name_;
  receiver& to_;
  std::vector<open_log> logs_;  // the oldest first
  std::uint32_t rotation_ = 0;  // the cookie of the last one
};

w::task<> follow(std::string path, receiver& to) {
  follower all{path, to};
  co_await all.run();
}

w::task<> ship(std::string path, std::string host, std::string port, w::tls::pem trusted) {
  receiver to{std::move(host), std::move(port), trusted};
  co_await w::when_any(follow(std::move(path), to), w::interrupted());
  co_await to.end();
}

int main(int count, char** arguments) {
  if (count != 4 && count != 5) {
    std::fputs("usage: example_log_shipper FILE HOST PORT [TRUSTED]\n", stderr);
    return 2;
  }
  const auto trusted = count == 5 ? w::tls::pem::file(arguments[4]) : w::tls::pem{};
  try {
    return w::run_main(ship(arguments[1], arguments[2], arguments[3], trusted));
  } catch (const w::error& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    return 2;
  }
}
