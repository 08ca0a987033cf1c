// nginx, which is no library: this writes its configuration, and becomes it. NGINX in the environment is how one nginx gives
// its sockets to the next; the next is then a master that only keeps watch, and workers, so that what counts is the worker's
// processor time (see client.cpp).
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "../harness/net/server.hpp"

namespace {

int port_of(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
  return ntohs(address.sin_port);
}

std::string configuration(const std::string& folder, std::size_t workers) {
  std::string temporary;
  for (const char* each : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
    temporary += std::string{each} + "_temp_path " + folder + "/" + each + ";\n";
  return (::geteuid() == 0 ? "user root;\n" : "") + ("worker_processes " + std::to_string(workers)) +
         ";\n"
         "daemon off;\n"
         "error_log stderr crit;\n"
         "pid " +
         folder +
         "/pid;\n"
         "events { worker_connections 1024; }\n"
         "http {\n" +
         temporary +
         "access_log off;\n"
         "keepalive_requests 1000000000;\n"
         "default_type text/plain;\n"
         "server {\n"
         "listen 127.0.0.1:" +
         std::to_string(port_of(bench::listening_socket)) +
         ";\n"
         "location / { return 200 \"Hello, world\\n\"; }\n"
         "}\n}\n";
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) return 2;
  const std::string folder{words[4]}, file = folder + "/nginx.conf";
  const std::string text = configuration(folder, bench::read_server_options(count, words).threads);
  std::FILE* out = std::fopen(file.c_str(), "w");
  if (out == nullptr || std::fwrite(text.data(), 1, text.size(), out) != text.size() || std::fclose(out) != 0) return 1;
  ::setenv("NGINX", (std::to_string(bench::listening_socket) + ";").c_str(), 1);
  ::execl(BENCH_NGINX, "nginx", "-e", "stderr", "-p", folder.c_str(), "-c", file.c_str(), nullptr);
  std::perror(BENCH_NGINX);
  return 1;
}
