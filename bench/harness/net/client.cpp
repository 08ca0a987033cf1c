#include "client.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "server.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr int backlog = 4096;
constexpr std::uint32_t own_addresses = 64;  // 127.0.0.1 and those behind it

[[noreturn]] void fail(const char* what) { throw std::system_error{errno, std::generic_category(), what}; }
int checked(int result, const char* what) {
  if (result < 0) fail(what);
  return result;
}

void set(int socket, int level, int option, int value) {
  checked(::setsockopt(socket, level, option, &value, sizeof value), "setsockopt");
}

int make_socket(int flags) {
  const int made = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "socket");
  set(made, IPPROTO_TCP, TCP_NODELAY, 1);
  checked(::setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, congestion_control, std::strlen(congestion_control)),
          "TCP_CONGESTION");
  return made;
}

sockaddr_in loopback(std::uint16_t port, std::uint32_t behind_first = 0) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK + behind_first);
  return out;
}

const sockaddr* as_system(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

/// In the child: between fork and exec only what is allowed there.
[[noreturn]] void become(const std::vector<char*>& words, int listening) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it never outlives its client
  if (listening == listening_socket) {
    ::fcntl(listening, F_SETFD, 0);
  } else {
    ::dup2(listening, listening_socket);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // stdout is the client's line of JSON
  ::execv(words[0], words.data());
  ::_exit(127);
}

}  // namespace

server_process::server_process(state& round, const std::vector<std::string>& arguments, serves what) {
  if (round.server().empty()) throw std::invalid_argument{"--server PROGRAM says what to measure"};
  const bool listens = what == serves::connections;
  const int listening = listens ? make_socket(SOCK_NONBLOCK)
                                : checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
  if (listens) {
    set(listening, SOL_SOCKET, SO_REUSEADDR, 1);
    set(listening, SOL_SOCKET, SO_REUSEPORT, 1);  // for a server that adds listeners of its own
  }
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  checked(::bind(listening, as_system(address), size), "bind");
  if (listens) checked(::listen(listening, backlog), "listen");
  checked(::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  port_ = ntohs(address.sin_port);

  std::vector<std::string> words{round.server()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  start(words, listening);
  ::close(listening);
  if (const int why = ::clock_getcpuclockid(id_, &clock_); why != 0) {
    errno = why;
    fail("clock_getcpuclockid");
  }
  round.measure_process(clock_);
}

void server_process::start(const std::vector<std::string>& words, int listening) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  id_ = checked(::fork(), "fork");
  if (id_ == 0) become(pointers, listening);
}

void server_process::follow_child() {
  const std::string id = std::to_string(id_);
  std::ifstream children{"/proc/" + id + "/task/" + id + "/children"};
  if (!(children >> child_)) return;
  if (const int why = ::clock_getcpuclockid(child_, &clock_); why != 0) {
    errno = why;
    fail("clock_getcpuclockid");
  }
}

server_process::~server_process() {
  ::kill(id_, SIGKILL);  // first: it may start another child
  if (child_ > 0) ::kill(child_, SIGKILL);
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::chrono::nanoseconds server_process::processor_time() const noexcept {
  timespec now{};
  ::clock_gettime(clock_, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

void server_process::settle() const {
  constexpr auto little = 50us;  // in one look: what a runtime's watcher may take that finds nothing
  for (auto before = processor_time();;) {
    std::this_thread::sleep_for(10ms);
    const auto now = processor_time();
    if (now - before < little) return;
    before = now;
  }
}

std::size_t server_process::own_bytes() const {
  std::ifstream lines{"/proc/" + std::to_string(id_) + "/smaps_rollup"};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("Anonymous:")) return std::stoull(line.substr(std::strlen("Anonymous:"))) * 1024;
  throw wrong_result{"the server's memory can't be seen in /proc"};
}

std::size_t server_process::sockets() const {
  namespace fs = std::filesystem;
  std::error_code gone;  // one that is closed meanwhile
  std::size_t count = 0;
  for (const auto& each : fs::directory_iterator{"/proc/" + std::to_string(id_) + "/fd"})
    count += fs::read_symlink(each.path(), gone).native().starts_with("socket:");
  return count;
}

connection::connection(const server_process& to, std::size_t number) : socket_{make_socket(0)} {
  set(socket_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  const sockaddr_in from = loopback(0, static_cast<std::uint32_t>(number % own_addresses));
  checked(::bind(socket_, as_system(from), sizeof from), "bind");
  const sockaddr_in address = loopback(to.port());
  checked(::connect(socket_, as_system(address), sizeof address), "connect");
}

connection::~connection() {
  if (socket_ >= 0) ::close(socket_);
}

void connection::send(const void* data, std::size_t size) const {
  const ssize_t sent = ::send(socket_, data, size, MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(size)) throw wrong_result{"the server has closed a connection"};
}

void connection::receive(void* into, std::size_t size) const {
  if (::recv(socket_, into, size, MSG_WAITALL) != static_cast<ssize_t>(size))
    throw wrong_result{"the server has closed a connection"};
}

void connection::shut_down() const { checked(::shutdown(socket_, SHUT_WR), "shutdown"); }

bool connection::has_ended() const {
  char more;
  return ::recv(socket_, &more, 1, 0) == 0;
}

void connection::reset_when_closed() const {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  checked(::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), "SO_LINGER");
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  checked(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  checked(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
  return limit.rlim_cur;
}

void need_descriptors(std::size_t connections) {
  constexpr std::size_t others = 64;  // descriptors that are no connections
  if (const std::size_t given = raise_descriptor_limit(); given < connections + others)
    throw not_here{"the system gives a process " + std::to_string(given) + " descriptors (ulimit -Hn), and " +
                   std::to_string(connections) + " connections need more"};
}

}  // namespace bench
