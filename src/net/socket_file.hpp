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

/// Which file it is, so that nothing is removed that another one has put there.
class socket_file {
 public:
  explicit socket_file(std::string path) noexcept : path_{std::move(path)} {}
  /// Notes which one was made, and by which process: copies that a fork() makes remove nothing.
  void made() noexcept;
  /// Once. Any thread.
  void remove() noexcept;

 private:
  std::string path_;
  std::uint64_t device_ = 0, inode_ = 0;
  int maker_ = 0;
  std::atomic<bool> is_there_{false};  // who finds it true removes. No edge: the rest is written before others have it
};

}  // namespace weft::detail

namespace weft::net {

/// One that is about to be made, and is removed unless it is given to a socket.
class new_socket_file {
 public:
  /// Of no path: there is none. Throws std::bad_alloc.
  explicit new_socket_file(const endpoint& where);
  new_socket_file(const new_socket_file&) = delete;
  ~new_socket_file() {
    if (file_ != nullptr) file_->remove();
  }

  /// Binds the socket, to a path or whatever else. An error number.
  int bind(int number, const system_address& address, bool replaces_stale) noexcept;
  /// Null: there is none.
  detail::socket_file* give() noexcept { return file_.release(); }

 private:
  std::unique_ptr<detail::socket_file> file_;
};

}  // namespace weft::net
