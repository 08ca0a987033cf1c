// The directory in which the socket and the token lie: this user's, and nobody else may look into it.
//
// It is opened once, without following a link at its end, and looked at through that descriptor; all else goes through the
// descriptor, too. So nobody can put another directory in its place between the look and the use. There is no way out to a shared
// folder such as /tmp: there, anybody could be first to make the socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <weft/unix.hpp>

namespace weft::detail {

/// A file in it that goes with its owner, unless somebody has put another one in its place.
class private_file;

class private_directory {
 public:
  /// Makes or opens `path`; null: `weft` in $XDG_RUNTIME_DIR. Throws error.
  explicit private_directory(const char* path);

  const std::string& path() const noexcept { return path_; }
  int number() const noexcept { return opened_.number(); }

  /// Listens on a socket `<stem>.sock`, with mode 0600. One that a process that is gone has left under that name is replaced; where
  /// one is alive, as in another namespace of processes, the name gets a number. Throws error.
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
  /// Its name without what stands behind the last dot.
  std::string stem() const { return name_.substr(0, name_.rfind('.')); }
  void remove() noexcept;

 private:
  friend private_directory;
  // Of the file of this name in `where`.
  void is(const private_directory& where, const std::string& name);

  const private_directory* in_ = nullptr;  // outlives it; null: there is no file
  std::string name_, path_;
  std::uint64_t device_ = 0, inode_ = 0;
};

/// What is in a file that nobody but this user, or root, can read or write. At most 4 KiB, without white space at its end. Throws
/// error.
std::string read_private_file(const char* path);

}  // namespace weft::detail
