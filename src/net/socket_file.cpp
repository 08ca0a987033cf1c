#include "net/socket_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "net/sockets.hpp"

namespace weft {
namespace detail {

void socket_file::made() noexcept {
  struct stat its;
  if (::lstat(path_.c_str(), &its) != 0) return;
  device_ = its.st_dev;
  inode_ = its.st_ino;
  maker_ = ::getpid();
  is_there_.store(true, std::memory_order_relaxed);  // as declared
}

void socket_file::remove() noexcept {
  if (!is_there_.exchange(false, std::memory_order_relaxed)) return;  // as declared
  if (maker_ != ::getpid()) return;
  struct stat its;
  if (::lstat(path_.c_str(), &its) == 0 && its.st_dev == device_ && its.st_ino == inode_) ::unlink(path_.c_str());
}

}  // namespace detail

namespace net {
namespace {

// Whether a socket's file is stale, that is nobody is bound to it: then a connect() by a socket of the same type is refused. (A
// listener, if there is one, sees that as a connection.)
bool is_stale(const char* path, const system_address& address, int type) noexcept {
  struct stat its;
  if (::lstat(path, &its) != 0 || !S_ISSOCK(its.st_mode)) return false;
  const new_socket asks{::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  return asks.number() >= 0 && ::connect(asks.number(), &address.any, address.size) != 0 && errno == ECONNREFUSED;
}

}  // namespace

new_socket_file::new_socket_file(const endpoint& where) {
  if (!where.is_unix() || where.address().starts_with('@')) return;
  // Absolute, since the working directory may be another one when the file is removed.
  std::error_code refused;
  std::filesystem::path whole = std::filesystem::absolute(where.address(), refused);
  file_ = std::make_unique<detail::socket_file>(refused ? where.address() : std::move(whole).string());
}

int new_socket_file::bind(int number, const system_address& address, bool replaces_stale) noexcept {
  int refused = ::bind(number, &address.any, address.size) == 0 ? 0 : errno;
  if (refused == EADDRINUSE && replaces_stale && file_ != nullptr &&
      is_stale(address.local.sun_path, address, socket_option(number, SO_TYPE)) &&
      ::unlink(address.local.sun_path) == 0)
    refused = ::bind(number, &address.any, address.size) == 0 ? 0 : errno;
  if (refused == 0 && file_ != nullptr) file_->made();
  return refused;
}

}  // namespace net
}  // namespace weft
