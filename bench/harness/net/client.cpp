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

int make_tcp_socket(int flags) {
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

clockid_t clock_of(pid_t process) {
  clockid_t clock{};
  if (const int why = ::clock_getcpuclockid(process, &clock); why != 0) {
    errno = why;
    fail("clock_getcpuclockid");
  }
  return clock;
}

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
  const int listening = make_its_socket(what);
  checked(::getsockname(listening, reinterpret_cast<sockaddr*>(&address_), &address_size_), "getsockname");
  std::vector<std::string> words{round.server()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  start(words, listening);
  ::close(listening);
  clocks_.push_back(clock_of(id_));
  round.measure_process(clocks_.front());
}

int server_process::make_its_socket(serves what) {
  if (what == serves::unix_datagrams) {
    int pair[2];
    checked(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), "socketpair");
    checked(::fcntl(pair[0], F_SETFL, O_NONBLOCK), "fcntl");
    peer_ = pair[1];
    return pair[0];
  }
  if (what == serves::unix_connections) {
    const int made = checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
    const sockaddr any_name{.sa_family = AF_UNIX, .sa_data = {}};
    checked(::bind(made, &any_name, sizeof any_name.sa_family), "bind");
    checked(::listen(made, backlog), "listen");
    return made;
  }
  const bool listens = what == serves::connections;
  const int made = listens ? make_tcp_socket(SOCK_NONBLOCK)
                           : checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
  if (listens) {
    set(made, SOL_SOCKET, SO_REUSEADDR, 1);
    set(made, SOL_SOCKET, SO_REUSEPORT, 1);  // for a server that adds listeners of its own
  }
  const sockaddr_in any_port = loopback(0);
  checked(::bind(made, as_system(any_port), sizeof any_port), "bind");
  if (listens) checked(::listen(made, backlog), "listen");
  return made;
}

std::uint16_t server_process::port() const noexcept {
  sockaddr_in of_ip;
  std::memcpy(&of_ip, &address_, sizeof of_ip);
  return ntohs(of_ip.sin_port);
}

void server_process::start(const std::vector<std::string>& words, int listening) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  id_ = checked(::fork(), "fork");
  if (id_ == 0) become(pointers, listening);
}

void server_process::follow_children() {
  const std::string id = std::to_string(id_);
  std::ifstream children{"/proc/" + id + "/task/" + id + "/children"};
  for (pid_t each; children >> each;) children_.push_back(each);
  if (children_.empty()) return;
  clocks_.clear();
  for (const pid_t each : children_) clocks_.push_back(clock_of(each));
}

server_process::~server_process() {
  ::kill(id_, SIGKILL);  // first: it may start another child
  for (const pid_t each : children_) ::kill(each, SIGKILL);
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (peer_ >= 0) ::close(peer_);
}

std::chrono::nanoseconds server_process::processor_time() const noexcept {
  std::chrono::nanoseconds all{};
  for (const clockid_t each : clocks_) {
    timespec now{};
    ::clock_gettime(each, &now);
    all += std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
  }
  return all;
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

connection::connection(const server_process& to, std::size_t number) {
  if (to.address()->sa_family == AF_INET) {
    socket_ = make_tcp_socket(0);
    set(socket_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    const sockaddr_in from = loopback(0, static_cast<std::uint32_t>(number % own_addresses));
    checked(::bind(socket_, as_system(from), sizeof from), "bind");
  } else {
    socket_ = checked(::socket(to.address()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  }
  checked(::connect(socket_, to.address(), to.address_size()), "connect");
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
