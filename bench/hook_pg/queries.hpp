// hook_pg: short queries to a PostgreSQL server on this machine, one after the other on each of many connections. One item is a
// query, and its time the processor time of the process that asks. --size is how many connections there are.
//
// The programs are given as servers are, see harness/net/server.hpp: THREADS BYTES CONNECTIONS DIRECTORY, which has the server's
// socket. Each connects, and is then told over one connection how many queries to make on each, as eight bytes, and says how many
// answers were right. By the simple protocol, as PQexec() does: each is parsed anew.
#pragma once

#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../harness/net/server.hpp"

namespace bench {

inline PGconn* connect_to_server(const char* directory) {
  PGconn* const to = PQconnectdb((std::string{"dbname=postgres user=postgres host="} + directory).c_str());
  if (PQstatus(to) != CONNECTION_OK) {
    std::fputs(PQerrorMessage(to), stderr);
    std::exit(1);
  }
  return to;
}

/// How many were right.
inline std::uint64_t ask(PGconn* to, std::uint64_t queries) {
  std::uint64_t right = 0;
  for (std::uint64_t i = 0; i != queries; ++i) {
    PGresult* const got = PQexec(to, "select 42");
    right += PQresultStatus(got) == PGRES_TUPLES_OK && PQgetvalue(got, 0, 0) == std::string_view{"42"} ? 1 : 0;
    PQclear(got);
  }
  return right;
}

/// Has `ask_all(queries)` do what the client says, again and again, once it is said that all are connected.
template <class AskAll>
void serve_queries(AskAll ask_all) {
  pollfd one{.fd = listening_socket, .events = POLLIN, .revents = 0};
  ::poll(&one, 1, -1);
  const int client = ::accept(listening_socket, nullptr, nullptr);
  for (std::uint64_t count = 0; ::recv(client, &count, sizeof count, MSG_WAITALL) == sizeof count;) {
    const std::uint64_t right = ask_all(count);
    if (::send(client, &right, sizeof right, MSG_NOSIGNAL) != sizeof right) break;
  }
  std::exit(1);
}

}  // namespace bench
