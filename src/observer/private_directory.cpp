#include "observer/private_directory.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <weft/error.hpp>

namespace weft::detail {
namespace {

constexpr unsigned any_of_others = S_IRWXG | S_IRWXO;
constexpr unsigned writes_of_others = S_IWGRP | S_IWOTH;

[[noreturn]] void refuse_file(int number, const char* doing, const std::string& what) {
  throw error{std::error_code{number, std::generic_category()}, doing, what};
}

std::string own_runtime_directory() {
  const char* const runtime = ::secure_getenv("XDG_RUNTIME_DIR");
  if (runtime == nullptr || *runtime == '\0')
    throw error{std::make_error_code(std::errc::no_such_file_or_directory), "look for a private directory",
                "whose name is not given (dir=PATH, observer_options::directory): XDG_RUNTIME_DIR is not set, and no "
                "other place is safe"};
  if (*runtime != '/')
    throw error{std::make_error_code(std::errc::invalid_argument), "look for a private directory",
                "XDG_RUNTIME_DIR is no absolute path"};
  return runtime;
}

// Names the open directory by /proc: so no path is too long for an address, and the directory can't be replaced.
sockaddr_un address_in(int directory, const std::string& name) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const int length = std::snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s", directory, name.c_str());
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof to.sun_path)
    refuse_file(ENAMETOOLONG, "listen on", name);
  return to;
}

const sockaddr* as_address(const sockaddr_un& one) noexcept { return reinterpret_cast<const sockaddr*>(&one); }

// Whether nobody listens on this socket any more.
bool is_left_over(const sockaddr_un& at) noexcept {
  const net::owned_descriptor tries{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  return tries.number() >= 0 && ::connect(tries.number(), as_address(at), sizeof at) != 0 && errno == ECONNREFUSED;
}

}  // namespace

private_directory::private_directory(const char* path) {
  if (path != nullptr) {
    path_ = path;
    open_below(AT_FDCWD, path);
    return;
  }
  const std::string runtime = own_runtime_directory();
  const net::owned_descriptor parent{::open(runtime.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (parent.number() < 0) refuse_file(errno, "open", runtime);
  expect_private(parent.number(), runtime, writes_of_others);  // whoever may write there could replace `weft`
  path_ = runtime + "/weft";
  open_below(parent.number(), "weft");
}

void private_directory::open_below(int parent, const char* name) {
  if (::mkdirat(parent, name, S_IRWXU) != 0 && errno != EEXIST) refuse_file(errno, "make the directory", path_);
  opened_ = net::owned_descriptor{::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (opened_.number() < 0) refuse_file(errno, "open the directory", path_);
  expect_private(opened_.number(), path_, any_of_others);
}

void private_directory::expect_private(int number, const std::string& of, unsigned others) const {
  struct stat found{};
  if (::fstat(number, &found) != 0) refuse_file(errno, "look at", of);
  const auto forbidden = std::make_error_code(std::errc::operation_not_permitted);
  if (found.st_uid != ::geteuid()) throw error{forbidden, "use", of + ": it belongs to another user"};
  if ((found.st_mode & others) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", found.st_mode & 07777U);
    throw error{forbidden, "use", of + ": its mode is " + mode + ", which lets others in"};
  }
}

net::owned_descriptor private_directory::listen(const std::string& stem, private_file& as) const {
  net::owned_descriptor listens{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (listens.number() < 0) refuse_file(errno, "make", "a socket");
  // The file that bind() makes has the mode of the socket, so it is never open to others, whatever the umask is.
  if (::fchmod(listens.number(), S_IRUSR | S_IWUSR) != 0) refuse_file(errno, "set the mode of", "a socket");
  constexpr int most_names = 100;
  for (int i = 1; i <= most_names; ++i) {
    const std::string name = i == 1 ? stem + ".sock" : stem + "-" + std::to_string(i) + ".sock";
    const sockaddr_un at = address_in(number(), name);
    bool is_bound = ::bind(listens.number(), as_address(at), sizeof at) == 0;
    if (!is_bound && errno != EADDRINUSE) refuse_file(errno, "listen on", path_ + "/" + name);
    if (!is_bound && is_left_over(at)) {
      ::unlinkat(number(), name.c_str(), 0);
      is_bound = ::bind(listens.number(), as_address(at), sizeof at) == 0;
    }
    if (!is_bound) continue;
    as.is(*this, name);
    constexpr int backlog = 16;
    if (::listen(listens.number(), backlog) != 0) refuse_file(errno, "listen on", as.path());
    return listens;
  }
  refuse_file(EADDRINUSE, "listen on", path_ + "/" + stem + ".sock");
}

void private_directory::write(const std::string& stem, std::string_view text, private_file& as) const {
  const std::string name = stem + ".token";
  ::unlinkat(number(), name.c_str(), 0);  // left by a process that had the same id
  const net::owned_descriptor to{
      ::openat(number(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR)};
  if (to.number() < 0) refuse_file(errno, "write", path_ + "/" + name);
  as.is(*this, name);
  const auto written = ::write(to.number(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) refuse_file(written < 0 ? errno : EIO, "write", as.path());
}

void private_file::is(const private_directory& where, const std::string& name) {
  struct stat found{};
  if (::fstatat(where.number(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    refuse_file(errno, "look at", where.path() + "/" + name);
  in_ = &where;
  name_ = name;
  path_ = where.path() + "/" + name;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

void private_file::remove() noexcept {
  struct stat found{};
  if (in_ == nullptr) return;
  if (::fstatat(in_->number(), name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && found.st_dev == device_ &&
      found.st_ino == inode_)
    ::unlinkat(in_->number(), name_.c_str(), 0);
  in_ = nullptr;
}

std::string read_private_file(const char* path) {
  const net::owned_descriptor from{::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (from.number() < 0) refuse_file(errno, "open", path);
  struct stat found{};
  if (::fstat(from.number(), &found) != 0) refuse_file(errno, "look at", path);
  const auto forbidden = std::make_error_code(std::errc::operation_not_permitted);
  if (!S_ISREG(found.st_mode)) throw error{forbidden, "use", std::string{path} + ": it is no file"};
  if (found.st_uid != ::geteuid() && found.st_uid != 0)
    throw error{forbidden, "use", std::string{path} + ": it belongs to another user"};
  if ((found.st_mode & any_of_others) != 0)
    throw error{forbidden, "use", std::string{path} + ": others may read or write it"};
  char text[4096];
  const auto size = ::read(from.number(), text, sizeof text);
  if (size < 0) refuse_file(errno, "read", path);
  std::string read{text, static_cast<std::size_t>(size)};
  while (!read.empty() && std::strchr(" \t\r\n", read.back()) != nullptr) read.pop_back();
  return read;
}

}  // namespace weft::detail
