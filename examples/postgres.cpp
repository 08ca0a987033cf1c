// A client of PostgreSQL, by libpq's non-blocking interface: `example_postgres FOLDER COUNT`, where FOLDER has the Unix socket of a
// server. Shows queries one after the other, COUNT in one pipeline, one that fails among them, one that is given up, which the server
// hears of, and a connection that is lost and made again. All on one thread, so without a lock.
#include <libpq-fe.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;
using rows = std::vector<std::vector<std::string>>;

class postgres {
 public:
  explicit postgres(std::string where) : where_{std::move(where)} {}

  /// Keeps connected, until it is stopped.
  w::task<> run() {
    for (;; co_await w::sleep_for(10ms)) {
      connection_.reset(PQconnectStart(where_.c_str()));
      for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK; next = PQconnectPoll(connection_.get())) {
        if (PQstatus(connection_.get()) == CONNECTION_BAD) break;
        co_await w::net::ready(PQsocket(connection_.get()), next == PGRES_POLLING_READING
                                                                ? w::net::readiness::readable
                                                                : w::net::readiness::writable);
      }
      if (PQstatus(connection_.get()) != CONNECTION_OK || PQenterPipelineMode(connection_.get()) == 0) continue;
      connected_.set();
      while (PQstatus(connection_.get()) == CONNECTION_OK) co_await go_on();
      connected_.reset();
      for (query_state* one : std::exchange(asked_, {}))
        one->done->set_exception(std::make_exception_ptr(w::error{w::errc::closed, "postgres", "the connection"}));
    }
  }

  /// Asks behind what was asked before: those that wait at the same time are a pipeline. Who is stopped has the server cancel the
  /// query, and waits for it to say so. Fails with errc::closed where the connection is lost; nobody knows then what was done.
  w::task<rows> query(std::string sql) {
    co_await connected_.wait();
    query_state mine;
    co_return co_await w::from_callback<rows>(
        [&](w::callback<rows> done) {
          PGconn* const to = connection_.get();
          if (PQsendQueryParams(to, sql.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) == 0 ||
              PQpipelineSync(to) == 0)
            throw std::runtime_error{PQerrorMessage(to)};
          mine.done = done;
          asked_.push_back(&mine);
          changed_.set();
        },
        [&]() noexcept {
          mine.is_given_up = true;
          changed_.set();
        });
  }

 private:
  struct query_state {
    std::optional<w::callback<rows>> done{};
    rows answer{};
    std::string failure{};
    bool is_given_up = false;
    std::chrono::steady_clock::time_point cancelled_at{};
  };
  template <auto frees>
  struct by {
    void operator()(auto* one) const noexcept { frees(one); }
  };

  // Sends what is to be sent, waits for the server or for a query, and takes what has come.
  w::task<> go_on() {
    PGconn* const at = connection_.get();
    changed_.reset();
    const bool gives_up = !asked_.empty() && asked_.front()->is_given_up;
    // Once a second: before the server has begun with the query, it passes over that.
    if (const auto now = std::chrono::steady_clock::now(); gives_up && now - asked_.front()->cancelled_at >= 1s) {
      asked_.front()->cancelled_at = now;
      const std::unique_ptr<PGcancel, by<PQfreeCancel>> how{PQgetCancel(at)};
      co_await w::blocking([&] {  // it connects, asks and waits
        char why[256];
        PQcancel(how.get(), why, sizeof why);
      });
    }
    const auto either = PQflush(at) == 1 ? w::net::readiness::either : w::net::readiness::readable;
    const auto next = co_await w::select(w::on(w::net::ready(PQsocket(at), either)), w::on(changed_.wait()),
                                         w::after(gives_up ? 1s : 24h));
    if (next.index == 0 && PQconsumeInput(at) == 0) co_return;
    // A result is behind its query; then there is none, once; then what ends its part of the pipeline.
    while (!asked_.empty() && PQisBusy(at) == 0) {
      const std::unique_ptr<PGresult, by<PQclear>> result{PQgetResult(at)};
      if (result != nullptr) take(*asked_.front(), result.get());
    }
  }

  void take(query_state& one, const PGresult* from) {
    switch (PQresultStatus(from)) {
      case PGRES_TUPLES_OK:
        for (int y = 0; y != PQntuples(from); ++y)
          for (auto& row = one.answer.emplace_back(); std::ssize(row) != PQnfields(from);)
            row.emplace_back(PQgetvalue(from, y, static_cast<int>(row.size())));
        break;
      case PGRES_COMMAND_OK: break;
      case PGRES_PIPELINE_SYNC:
        asked_.pop_front();
        if (one.failure.empty()) return (*one.done)(std::move(one.answer));
        if (one.is_given_up) return one.done->set_stopped();
        return one.done->set_exception(std::make_exception_ptr(std::runtime_error{one.failure}));
      default: one.failure = PQresultErrorMessage(from);
    }
  }

  std::string where_;
  std::unique_ptr<PGconn, by<PQfinish>> connection_;
  std::deque<query_state*> asked_;  // and not answered; the first is what the server works on
  w::event connected_, changed_;
};

w::task<> session(postgres& db, int count) {
  std::printf("1 + 1 = %s\n", (co_await db.query("SELECT 1 + 1"))[0][0].c_str());
  std::vector<w::task<rows>> pipeline;
  for (int i = 0; i != count; ++i) pipeline.push_back(db.query("SELECT " + std::to_string(i)));
  auto wrong = w::as_result(db.query("SELECT 1 / 0"));
  auto [failed, answers] = co_await w::when_all(std::move(wrong), w::when_all(std::move(pipeline)));
  int in_order = 0;
  for (const rows& one : answers) in_order += one[0][0] == std::to_string(in_order) ? 1 : 0;
  std::printf("%d answers of one pipeline, in order, beside a failure: %s\n", in_order, failed ? "no" : "yes");
  const auto late = co_await w::as_result(w::timeout(50ms, db.query("SELECT pg_sleep(60)")));
  std::printf("a sleep of a minute: %s\n", late.error() == w::errc::timed_out ? "given up" : "slept");
  const rows running =
      co_await db.query("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(60)' AND state = 'active'");
  std::printf("still running there: %s\n", running[0][0].c_str());
  const auto ended = co_await w::as_result(db.query("SELECT pg_terminate_backend(pg_backend_pid())"));
  std::printf("ended by the server: %s\n", ended ? "no" : "the connection is lost");
  std::printf("connected again: %s\n", (co_await db.query("SELECT 'hello'"))[0][0].c_str());
}

int main(int count, char** arguments) {
  if (count != 3) return std::fprintf(stderr, "example_postgres FOLDER COUNT\n"), 2;
  postgres db{"user=postgres dbname=postgres host=" + std::string{arguments[1]}};
  return w::run_main({.threads = 1}, w::when_any(session(db, std::atoi(arguments[2])), db.run()));
}
