// The directory of the socket and the token: it belongs to this user, and nobody else may look into it.
//
// It is opened once, without following a symbolic link at its end, and checked through that descriptor; all later uses go
// through the descriptor, too. So nobody can replace the directory between the check and the use. There is no fallback to a
// shared directory such as /tmp, where anybody could make the socket first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <weft/unix.hpp>

namespace weft::detail {

/// A file in that directory. Its destructor removes the file, unless somebody has replaced it.
class private_file;

class private_directory {
 public:
  /// Makes or opens `path`; null: `weft` in $XDG_RUNTIME_DIR. Throws error.
  explicit private_directory(const char* path);

  const std::string& path() const noexcept { return path_; }
  int number() const noexcept { return opened_.number(); }

  /// Listens on a socket `<stem>.sock` with mode 0600. Replaces a socket of that name that a dead process has left. If somebody
  /// still listens on that, such as a process in another PID namespace, a number is appended to the name. Throws error.
  net::owned_descriptor listen(const std::string& stem, private_file& as) const;
  /// Writes a file `<stem>.token` with mode 0600. Throws error.
  void write(const std::string& stem, std::string_view text, private_file& as) const;

 private:
  void open_below(int parent, const char* name);
  void expect_private(int number, const std::string& of, unsigned others) const;

  std::string path_;
  net::owned_descriptor opened_;
};

class private_file {
 public:
  private_file() = default;
  private_file(const private_file&) = delete;
  ~private_file() { remove(); }

  const std::string& path() const noexcept { return path_; }
  /// The name without its extension.
  std::string stem() const { return name_.substr(0, name_.rfind('.')); }
  void remove() noexcept;

 private:
  friend private_directory;
  // Makes it stand for the file of this name in `where`.
  void is(const private_directory& where, const std::string& name);

  const private_directory* in_ = nullptr;  // outlives it; null: there is no file
  std::string name_, path_;
  std::uint64_t device_ = 0, inode_ = 0;
};

/// The contents of a file that only this user, or root, can read or write: at most 4 KiB, without white space at the end.
/// Throws error.
std::string read_private_file(const char* path);

}  // namespace weft::detail
