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
void print_phases(std::ostream& out, const run_record& run, const json& published) {
  std::vector<std::vector<std::string>> lines;
  auto& head = lines.emplace_back();
  head.push_back("Library");
  for (const auto& column : published.at("columns")) head.push_back(column.get<std::string>());
  head.insert(head.end(), {"rounds", "peak memory", "× weft"});
  for (const auto& each : run.rows) {
    if (!is_of(each, published)) continue;
    for (const auto& e : each.entries) {
      if (e.state != entry::status::measured) continue;
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
}

}  // namespace

std::vector<std::string> published_workloads(const std::string& path) {
  std::vector<std::string> out;
  const auto published = read_published(path);
  if (published.contains("phases")) return {published.at("workload").get<std::string>()};
  for (const auto& each : published.at("rows")) {
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
    return print_phases(out, run, published);
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
  out << '\n'
      << published.at("system").get<std::string>() << ", as published: " << published.at("machine").get<std::string>()
      << '\n'
      << published.at("source").get<std::string>() << '\n'
      << "here: " << run.machine.value("cpu", "an unknown machine") << "; "
      << built.build.value("compiler", "an unknown compiler") << "\n\n";
  print_lines(out, lines);
}

}  // namespace bench
