// Figures of the pools, of the process, and of the observer itself, as JSON and for Prometheus.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/pool.hpp>
#include <weft/snapshot.hpp>
#include <weft/version.hpp>

#include "base/json.hpp"
#include "observer/answers.hpp"
#include "pool/pool_core.hpp"

namespace weft::detail {
namespace {

struct seen_pool {
  std::string name;  // unique: a second pool of the same name gets a number
  std::vector<pool_stats> workers;
  std::size_t waiting_for_any = 0;
};

// A name may be any bytes. Names that become equal as text get numbers, since Prometheus refuses a figure that comes twice.
std::string as_text(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const std::size_t length = length_of_character(name);
    const auto first = static_cast<unsigned char>(name.front());
    if (length == 0)
      text += "\xef\xbf\xbd";  // U+FFFD, the replacement character
    else if (first < 0x20 || first == 0x7f)
      text += '?';
    else
      text += name.substr(0, length);
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::vector<seen_pool> all_pools() {
  std::vector<seen_pool> found;
  visit_pools(
      [](pool_core& one, void* with) {
        seen_pool seen{.name = as_text(one.name()), .workers = {}, .waiting_for_any = one.waiting_for_any()};
        for (unsigned i = 0; i != one.size(); ++i) seen.workers.push_back(one.stats(i));
        static_cast<std::vector<seen_pool>*>(with)->push_back(std::move(seen));
      },
      &found);
  std::set<std::string> names;
  for (auto one = found.rbegin(); one != found.rend(); ++one) {  // the oldest first, so that its name stays
    const std::string name = one->name;
    for (int i = 2; !names.insert(one->name).second; ++i) one->name = name + "#" + std::to_string(i);
  }
  return found;
}

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>{time}.count(); }

// With a decimal point, whatever the program's locale is.
std::string number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 9).ptr;
  return {text, end};
}

double processor_seconds() noexcept {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

std::uint64_t resident_bytes() noexcept {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> from{std::fopen("/proc/self/statm", "re"), std::fclose};
  unsigned long long size = 0, resident = 0;
  if (!from || std::fscanf(from.get(), "%llu %llu", &size, &resident) != 2) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t open_descriptors() noexcept {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened{::opendir("/proc/self/fd"), ::closedir};
  rlimit most{};
  if (!opened && errno == EMFILE && ::getrlimit(RLIMIT_NOFILE, &most) == 0) return most.rlim_cur;  // all are open
  std::uint64_t count = 0;
  while (opened && ::readdir(opened.get()) != nullptr) ++count;
  return count > 3 ? count - 3 : 0;  // without ".", "..", and that of the directory
}

// A label, as OpenMetrics escapes its value, which is UTF-8 without control characters.
std::string label(std::string_view name, std::string_view value) {
  std::string text{name};
  text += "=\"";
  for (const char one : value) {
    if (one == '\\' || one == '"') text += '\\';
    text += one;
  }
  return text + '"';
}

class open_metrics {
 public:
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
    name_ = name;
    is_counter_ = type == "counter";
    text_ += "# TYPE " + name_ + ' ' + std::string{type} + '\n';
    if (!unit.empty()) text_ += "# UNIT " + name_ + ' ' + std::string{unit} + '\n';
    text_ += "# HELP " + name_ + ' ' + std::string{help} + '\n';
    if (type == "info") name_ += "_info";
  }
  void sample(std::string_view labels, const std::string& value) {
    text_ += name_;
    if (is_counter_) text_ += "_total";
    if (!labels.empty()) text_ += '{' + std::string{labels} + '}';
    text_ += ' ' + value + '\n';
  }
  void one(std::string_view name, std::string_view type, std::string_view unit, std::string_view help,
           const std::string& value) {
    family(name, type, unit, help);
    sample({}, value);
  }
  std::string text() && { return std::move(text_) + "# EOF\n"; }

 private:
  std::string text_, name_;
  bool is_counter_ = false;
};

struct worker_figure {
  const char *name, *type, *unit, *help;
  std::string (*of)(const pool_stats&);
};

constexpr std::array<worker_figure, 9> worker_figures{{
    {"weft_worker_jobs", "counter", "", "Jobs that the worker has run: each is a task's way from one wait to the next.",
     [](const pool_stats& one) { return std::to_string(one.jobs); }},
    {"weft_worker_steals", "counter", "", "Jobs that it has taken from other workers.",
     [](const pool_stats& one) { return std::to_string(one.steals); }},
    {"weft_worker_failed_steals", "counter", "", "Jobs that it tried to take, and another one was faster.",
     [](const pool_stats& one) { return std::to_string(one.failed_steals); }},
    {"weft_worker_sleeps", "counter", "", "How often it has gone to sleep.",
     [](const pool_stats& one) { return std::to_string(one.sleeps); }},
    {"weft_worker_wakes", "counter", "", "Sleeps that somebody has ended; time ended the others.",
     [](const pool_stats& one) { return std::to_string(one.wakes); }},
    {"weft_worker_jobs_from_outside", "counter", "", "Jobs that came from no thread of the pool.",
     [](const pool_stats& one) { return std::to_string(one.from_outside); }},
    {"weft_worker_awake_seconds", "counter", "seconds", "Time in which it ran jobs, or looked for some.",
     [](const pool_stats& one) { return number(seconds(one.awake)); }},
    {"weft_worker_asleep_seconds", "counter", "seconds", "Time in which it slept.",
     [](const pool_stats& one) { return number(seconds(one.asleep)); }},
    {"weft_worker_waiting_jobs", "gauge", "", "Jobs that wait in its own queues.",
     [](const pool_stats& one) { return std::to_string(one.waiting); }},
}};

std::int64_t live_in(const seen_pool& one) noexcept {
  std::int64_t live = 0;
  for (const pool_stats& worker : one.workers) live += static_cast<std::int64_t>(worker.begun - worker.ended);
  return live > 0 ? live : 0;
}

void append_tasks(open_metrics& to) {
  const snapshot all = take_snapshot({.stacks = false, .deadlocks = true});
  constexpr std::size_t kinds = 7, states = 3;
  std::array<std::array<std::uint64_t, states>, kinds> counts{};
  std::uint64_t stopping = 0;
  for (const task_info& one : all.tasks) {
    ++counts[static_cast<std::size_t>(one.kind)][static_cast<std::size_t>(one.state)];
    if (one.stop_requested) ++stopping;
  }
  to.family("weft_tasks", "gauge", "", "Tasks, fibers and forks that live, by what they are and do.");
  for (std::size_t kind = 0; kind != kinds; ++kind)
    for (std::size_t state = 0; state != states; ++state)
      to.sample(label("kind", to_string(static_cast<task_kind>(kind))) + ',' +
                    label("state", to_string(static_cast<task_state>(state))),
                std::to_string(counts[kind][state]));
  to.one("weft_tasks_stopping", "gauge", "", "Of these, those that have been told to stop.", std::to_string(stopping));
  to.one("weft_deadlocks", "gauge", "", "Circles of tasks that wait for each other, now.",
         std::to_string(all.deadlocks().size()));
}

}  // namespace

std::string metrics_text(const observer_counts& counts) {
  open_metrics to;
  to.family("weft_build", "info", "", "The library.");
  to.sample(label("version", std::to_string(WEFT_VERSION_MAJOR) + '.' + std::to_string(WEFT_VERSION_MINOR) + '.' +
                                 std::to_string(WEFT_VERSION_PATCH)),
            "1");
  const std::vector<seen_pool> pools = all_pools();
  for (const worker_figure& figure : worker_figures) {
    to.family(figure.name, figure.type, figure.unit, figure.help);
    for (const seen_pool& pool : pools)
      for (std::size_t i = 0; i != pool.workers.size(); ++i)
        to.sample(label("pool", pool.name) + ',' + label("worker", std::to_string(i)), figure.of(pool.workers[i]));
  }
  to.family("weft_pool_workers", "gauge", "", "Threads of a pool.");
  for (const seen_pool& pool : pools) to.sample(label("pool", pool.name), std::to_string(pool.workers.size()));
  to.family("weft_pool_waiting_jobs", "gauge", "", "Jobs that no worker has taken yet.");
  for (const seen_pool& pool : pools) to.sample(label("pool", pool.name), std::to_string(pool.waiting_for_any));
  to.family("weft_pool_live_tasks", "gauge", "", "Tasks that have begun on a pool, and have not ended.");
  for (const seen_pool& pool : pools) to.sample(label("pool", pool.name), std::to_string(live_in(pool)));
  append_tasks(to);
  to.one("weft_observer_clients", "gauge", "", "Connections to the observer.", std::to_string(counts.clients));
  to.one("weft_observer_answers", "counter", "", "Requests that it has answered.", std::to_string(counts.answers));
  to.one("weft_observer_refused", "counter", "", "Requests and connections that it has refused.",
         std::to_string(counts.refused));
  to.one("weft_observer_dropped", "counter", "", "Connections that it has ended, since nothing moved.",
         std::to_string(counts.dropped));
  to.one("weft_observer_deadlocks", "counter", "", "Deadlocks that it has told of.", std::to_string(counts.deadlocks));
  to.one("weft_stalls", "counter", "", "Workers that were at one job for too long.", std::to_string(counts.stalls));
  to.one("process_cpu_seconds", "counter", "seconds", "Processor time of the process.", number(processor_seconds()));
  to.one("process_resident_memory_bytes", "gauge", "bytes", "Memory of the process that is in RAM.",
         std::to_string(resident_bytes()));
  to.one("process_open_fds", "gauge", "", "Descriptors that are open.", std::to_string(open_descriptors()));
  return std::move(to).text();
}

std::string status_json(const observer_counts& counts) {
  std::string all = "{\"process\":" + std::to_string(::getpid());
  char program[256];
  const auto length = ::readlink("/proc/self/exe", program, sizeof program);
  all += ",\"program\":";
  append_json(all, {program, length > 0 ? static_cast<std::size_t>(length) : 0});
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  all += ",\"time_ms\":" + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  all += ",\"processor_seconds\":" + number(processor_seconds());
  all += ",\"resident_bytes\":" + std::to_string(resident_bytes());
  all += ",\"open_descriptors\":" + std::to_string(open_descriptors());
  all += ",\"observer\":{\"clients\":" + std::to_string(counts.clients) +
         ",\"answers\":" + std::to_string(counts.answers) + ",\"refused\":" + std::to_string(counts.refused) +
         ",\"dropped\":" + std::to_string(counts.dropped) + ",\"deadlocks\":" + std::to_string(counts.deadlocks) + '}';
  all += ",\"pools\":[";
  for (const seen_pool& pool : all_pools()) {
    if (all.back() != '[') all += ',';
    all += "{\"name\":";
    append_json(all, pool.name);
    all += ",\"live\":" + std::to_string(live_in(pool)) + ",\"waiting\":" + std::to_string(pool.waiting_for_any) +
           ",\"workers\":[";
    for (const pool_stats& one : pool.workers) {
      if (all.back() != '[') all += ',';
      all += "{\"jobs\":" + std::to_string(one.jobs) + ",\"steals\":" + std::to_string(one.steals) +
             ",\"sleeps\":" + std::to_string(one.sleeps) + ",\"wakes\":" + std::to_string(one.wakes) +
             ",\"waiting\":" + std::to_string(one.waiting) + ",\"awake\":" + number(seconds(one.awake)) +
             ",\"asleep\":" + number(seconds(one.asleep)) + '}';
    }
    all += "]}";
  }
  return all + "]}";
}

}  // namespace weft::detail
