// Another system's own table beside our measurement of the same programs: is its peer here what it claims to be, and
// where does weft stand in its table?
#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <ostream>
#include <stdexcept>

namespace bench {
namespace {

json read_published(const std::string& path) {
  std::ifstream in{path};
  if (!in) throw std::runtime_error{"there is no published table " + path};
  return json::parse(in);
}

std::string nanoseconds(double value) { return std::to_string(std::lround(value)) + " ns"; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Whether a row of ours is of the published row's program: the workload, and its size where that is given.
bool is_of(const row& ours, const json& published) {
  return ours.work->name == published.at("workload").get<std::string>() &&
         published.value("size", ours.form.size) == ours.form.size;
}

/// Our figure for a published row, in the published unit (nanoseconds for the whole program).
std::string measured_text(const run_record& run, const json& published, std::string_view library) {
  for (const auto& each : run.rows) {
    if (!is_of(each, published)) continue;
    const auto* e = each.find(library);
    if (e == nullptr || e->state != entry::status::measured) break;
    return nanoseconds(e->figure.value * published.at("ns_per_unit").get<double>());
  }
  return "–";
}

/// What a system reports beside its times, for the published row's library or for ours: processor time, items a second,
/// nanoseconds an item, bytes an item.
void add_details(std::vector<std::string>& line, const run_record& run, const json& published,
                 std::string_view library) {
  const double per_program = published.at("ns_per_unit").get<double>();
  for (const auto& each : run.rows) {
    if (!is_of(each, published)) continue;
    const auto* e = each.find(library);
    if (e == nullptr || e->state != entry::status::measured) break;
    line.push_back(e->cpu_rounds.empty() ? "–" : nanoseconds(median(e->cpu_rounds) * per_program));
    line.push_back(significant(1e3 / e->figure.value) + " M/s");
    line.push_back(significant(e->figure.value) + " ns");
    const auto bytes = e->extra.find("bytes a fork");
    line.push_back(bytes == e->extra.end() ? "–" : significant(bytes->second));
    return;
  }
  line.insert(line.end(), {"–", "–", "–", "–"});
}

std::string ratio_to_baseline(const run_record& run, const json& published) {
  for (const auto& each : run.rows) {
    if (!is_of(each, published)) continue;
    const auto* e = each.find(published.at("library").get<std::string>());
    if (e == nullptr || !e->ratio) break;
    return ratio_text(*e->ratio) + (e->state == entry::status::recorded ? " (recorded)" : "");
  }
  return "–";
}

void print_lines(std::ostream& out, const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i != line.size(); ++i) widths[i] = std::max(widths[i], columns(line[i]));
  for (const auto& line : lines) {
    out << pad_right(line[0], widths[0]);
    for (std::size_t i = 1; i != line.size(); ++i) out << "  " << pad_left(line[i], widths[i]);
    out << '\n';
  }
}

/// A program whose phases are each of interest: a line for each library. A phase without a name is what the row measures.
/// `program` has its size, and may have what was published of it.
void print_phases(std::ostream& out, const run_record& run, const json& published, const json& program) {
  std::vector<std::vector<std::string>> lines;
  auto& head = lines.emplace_back();
  head.push_back(program.value("name", "Library"));
  for (const auto& column : published.at("columns")) head.push_back(column.get<std::string>());
  head.insert(head.end(), {"rounds", "peak memory", "× weft"});
  if (program.contains("values")) {
    auto& line = lines.emplace_back();
    line.push_back(published.at("system").get<std::string>() + ", as published");
    for (const auto& value : program.at("values")) line.push_back(value);
    line.insert(line.end(), {"1", "–", "–"});
  }
  std::string length;
  for (const auto& each : run.rows) {
    if (each.work->name != published.at("workload").get<std::string>() || each.form.size != program.at("size"))
      continue;
    for (const auto& e : each.entries) {
      if (e.state != entry::status::measured) continue;
      if (const auto found = e.extra.find("switches of each"); found != e.extra.end())
        length = "here each was switched to " + std::to_string(std::lround(found->second)) + " times";
      auto& line = lines.emplace_back();
      line.push_back(e.key());
      for (const auto& phase : published.at("phases")) {
        const auto found = e.extra_rounds.find(phase.get<std::string>());
        line.push_back(phase == ""                     ? nanoseconds(e.figure.value)
                       : found == e.extra_rounds.end() ? "–"
                                                       : nanoseconds(median(found->second)));
      }
      line.push_back(std::to_string(e.rounds.size()));
      line.push_back(significant(static_cast<double>(e.peak_rss_kib) / 1024) + " MiB");
      line.push_back(e.ratio ? ratio_text(*e.ratio) : "–");
    }
  }
  print_lines(out, lines);
  if (!length.empty()) out << length << '\n';
}

/// Where the published table is from, and where ours.
void print_heading(std::ostream& out, const run_record& run, const json& published, const manifest& built) {
  out << '\n'
      << published.at("system").get<std::string>() << ", as published: " << published.at("machine").get<std::string>()
      << '\n'
      << published.at("source").get<std::string>() << '\n'
      << "here: " << run.machine.value("cpu", "an unknown machine") << "; "
      << built.build.value("compiler", "an unknown compiler") << "\n\n";
}

const row* find_row(const run_record& run, const json& table, std::size_t size) {
  const auto found = std::ranges::find_if(run.rows, [&](const row& each) {
    return each.form.size == size && each.work->name == table.at("workload").get<std::string>();
  });
  return found == run.rows.end() ? nullptr : &*found;
}

/// How a program scales: for each number of threads the mean of all rounds, their standard deviation, and how many times as
/// fast that is as one thread; first as published, then each library as it was measured.
void print_scaling(std::ostream& out, const run_record& run, const json& published, const json& table,
                   const manifest& built) {
  std::vector<std::vector<std::string>> lines{{table.at("workload").get<std::string>(), "coroutines", "threads", "mean",
                                               "standard deviation", "speed-up", "rounds"}};
  const auto add = [&](const std::string& who, const json& each, double ns, double deviation, double one,
                       std::size_t rounds) {
    lines.push_back({who, std::to_string(each.at("coroutines").get<int>()),
                     std::to_string(each.at("threads").get<int>()), significant(ns) + " ns",
                     significant(deviation) + " ns", times(one / ns), std::to_string(rounds)});
  };
  const auto& all = table.at("rows");
  for (const auto& each : all) {
    const auto one = std::ranges::find(all, each.at("one"), [](const json& other) { return other.at("size"); });
    add(published.at("system").get<std::string>() + ", as published", each, each.at("ns").get<double>(),
        each.at("deviation").get<double>(), one->at("ns").get<double>(), published.at("rounds").get<std::size_t>());
  }
  const auto* first = find_row(run, table, all.at(0).at("size").get<std::size_t>());
  if (first == nullptr) return print_lines(out, lines);
  for (const auto& library : first->entries) {
    const auto rounds_at = [&](const json& size) {
      const auto* at = find_row(run, table, size.get<std::size_t>());
      const auto* e = at == nullptr ? nullptr : at->find(library.key());
      return e == nullptr || e->state != entry::status::measured ? std::vector<double>{} : e->rounds;
    };
    for (const auto& each : all) {
      const auto rounds = rounds_at(each.at("size")), one = rounds_at(each.at("one"));
      if (rounds.empty() || one.empty()) continue;
      const auto& name = built.find(library.library).name;
      add(library.variant.empty() ? name : name + " " + library.variant, each, mean(rounds), standard_deviation(rounds),
          mean(one), rounds.size());
    }
  }
  print_lines(out, lines);
}

}  // namespace

std::optional<std::size_t> published_rounds(const std::string& path) {
  const auto published = read_published(path);
  if (!published.contains("rounds")) return std::nullopt;
  return published.at("rounds").get<std::size_t>();
}

std::vector<std::string> published_workloads(const std::string& path) {
  std::vector<std::string> out;
  const auto published = read_published(path);
  if (published.contains("workload")) return {published.at("workload").get<std::string>()};
  for (const auto& each : published.at(published.contains("scaling") ? "scaling" : "rows")) {
    const auto workload = each.at("workload").get<std::string>();
    if (std::ranges::find(out, workload) == out.end()) out.push_back(workload);
  }
  return out;
}

void print_published(std::ostream& out, const run_record& run, const manifest& built, const std::string& path) {
  const auto published = read_published(path);
  if (published.contains("phases")) {
    out << '\n'
        << published.at("system").get<std::string>() << ": " << published.at("source").get<std::string>() << '\n'
        << "here: " << run.machine.value("cpu", "an unknown machine") << "; "
        << built.build.value("compiler", "an unknown compiler") << "\n\n";
    if (!published.contains("programs")) return print_phases(out, run, published, published);
    for (const char* gap = ""; const auto& program : published.at("programs")) {
      out << gap;
      print_phases(out, run, published, program);
      gap = "\n";
    }
    return;
  }
  if (published.contains("scaling")) {
    print_heading(out, run, published, built);
    for (const char* gap = ""; const auto& table : published.at("scaling")) {
      out << gap;
      print_scaling(out, run, published, table, built);
      if (table.contains("note")) out << table.at("note").get<std::string>() << '\n';
      gap = "\n";
    }
    return;
  }
  std::vector<std::vector<std::string>> lines;
  auto& head = lines.emplace_back();
  head.push_back("Benchmark");
  for (const auto& column : published.at("columns")) head.push_back(column.get<std::string>());
  const bool details = published.value("details", false);
  for (const std::string& who : {published.at("system").get<std::string>(), std::string{"weft"}}) {
    head.push_back(who + " here");
    if (details) head.insert(head.end(), {"CPU", "items", "an item", "bytes an item"});
  }
  head.push_back("× weft");
  for (const auto& each : published.at("rows")) {
    auto& line = lines.emplace_back();
    line.push_back(each.at("name"));
    for (const auto& value : each.at("values")) line.push_back(value);
    for (const auto& library : {each.at("library").get<std::string>(), std::string{baseline}}) {
      line.push_back(measured_text(run, each, library));
      if (details) add_details(line, run, each, library);
    }
    line.push_back(ratio_to_baseline(run, each));
  }
  print_heading(out, run, published, built);
  print_lines(out, lines);
}

}  // namespace bench
