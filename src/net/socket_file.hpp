// The file of a Unix socket that is bound to a path.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <weft/net.hpp>

#include "net/system_address.hpp"

namespace weft::detail {

/// The path of the file, and its identity (device and inode): so remove() does not remove a file that another process put there.
class socket_file {
 public:
  explicit socket_file(std::string path) noexcept : path_{std::move(path)} {}
  /// After bind(): notes the file's identity, and this process. In a child of fork() the copy of this object removes nothing.
  void made() noexcept;
  /// Removes the file; a second call does nothing. Any thread.
  void remove() noexcept;

 private:
  std::string path_;
  std::uint64_t device_ = 0, inode_ = 0;
  int maker_ = 0;
  // Whoever exchanges `true` removes the file. No edge: the rest is written before another thread has the object.
  std::atomic<bool> is_there_{false};
};

}  // namespace weft::detail

namespace weft::net {

/// A socket's file that is about to be made. It is removed unless it is given to a socket's object.
class new_socket_file {
 public:
  /// For an endpoint that is no path there is no file. Throws std::bad_alloc.
  explicit new_socket_file(const endpoint& where);
  new_socket_file(const new_socket_file&) = delete;
  ~new_socket_file() {
    if (file_ != nullptr) file_->remove();
  }

  /// Binds the socket, whether the address is a path or not. Returns an error number, or 0.
  int bind(int number, const system_address& address, bool replaces_stale) noexcept;
  /// Null: there is none.
  detail::socket_file* give() noexcept { return file_.release(); }

 private:
  std::unique_ptr<detail::socket_file> file_;
};

}  // namespace weft::net
