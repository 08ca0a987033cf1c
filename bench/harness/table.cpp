#include "table.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <set>
#include <sstream>
#include <tuple>

namespace bench {
namespace {

constexpr std::size_t name_width = 26;
constexpr std::size_t figure_width = 9;
constexpr std::size_t ratio_width = 24;
constexpr std::size_t cpu_width = 9;  // a row that has this has so much less for the bar
constexpr std::size_t memory_width = 9;
constexpr std::size_t bar_width = 28;
constexpr std::size_t line_width = name_width + figure_width + 2 + ratio_width + memory_width + 2 + bar_width;

/// Escape codes, on a terminal only.
struct style {
  const char *bold, *faint, *red, *plain;
};

style style_for_stdout() {
  if (::isatty(STDOUT_FILENO) == 1) return {"\033[1m", "\033[2m", "\033[31m", "\033[0m"};
  return {"", "", "", ""};
}

std::string shown_name(const entry& e, const manifest& built) {
  const auto& name = built.find(e.library).name;
  return e.variant.empty() ? name : name + " " + e.variant;
}

std::string memory_text(long kib) {
  return kib < 10'240 ? std::to_string(kib) + " KiB" : std::to_string(kib / 1024) + " MiB";
}

std::string bar(double value, double largest, std::size_t width) {
  static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double share = largest > 0 ? value / largest : 0;
  const auto parts = static_cast<std::size_t>(std::lround(8 * static_cast<double>(width) * share));
  std::string out;
  for (std::size_t i = 0; i != parts / 8; ++i) out += "█";
  return out + eighths[parts % 8];
}

/// Measured first, by their figure; then what is only recorded, by its ratio; then the rest.
std::vector<const entry*> in_order(const row& each) {
  std::vector<const entry*> out;
  for (const auto& e : each.entries) out.push_back(&e);
  std::ranges::sort(out, {}, [](const entry* e) {
    const double value = e->state == entry::status::measured ? e->figure.value : e->ratio.value_or(estimate{}).value;
    return std::tuple{e->state, value, e};  // the address: among equals, in the order of the row
  });
  return out;
}

/// What a program reported besides, below its own line: "p50 us 1.20, p99 us 6.30".
void print_extra(std::ostream& out, const entry& e, const style& look) {
  const std::string indent(4, ' ');
  std::string line = indent;
  for (const auto& [what, value] : e.extra) {
    const std::string next = what + ' ' + significant(value);
    if (line != indent && columns(line) + 2 + columns(next) > line_width) {
      out << look.faint << line << look.plain << '\n';
      line = indent;
    }
    line += (line == indent ? "" : ", ") + next;
  }
  if (line != indent) out << look.faint << line << look.plain << '\n';
}

void print_entry(std::ostream& out, const row& in, const entry& e, const manifest& built, double largest,
                 const style& look) {
  const bool own = e.library == baseline;
  const auto name = pad_right("  " + shown_name(e, built), name_width);
  switch (e.state) {
    case entry::status::measured: {
      out << (own ? look.bold : "") << name << pad_left(significant(e.figure.value), figure_width) << "  ";
      if (in.work->kind == metric::allocations) {
        out << significant(e.allocations.value_or(0)) << " allocations";
        for (const auto& [what, value] : e.extra) out << ", " << significant(value) << ' ' << what;
      } else {
        out << pad_right(!e.ratio ? "" : &e == in.base() ? "1" : ratio_text(*e.ratio), ratio_width);
        const bool has_cpu = in.shows_cpu();
        if (has_cpu) out << pad_left(e.cpu ? significant(e.cpu->value) : "", cpu_width);
        out << pad_left(memory_text(e.peak_rss_kib), memory_width) << "  "
            << bar(e.figure.value, largest, bar_width - (has_cpu ? cpu_width : 0));
      }
      out << (own ? look.plain : "") << '\n';
      if (in.work->kind != metric::allocations) print_extra(out, e, look);
      break;
    }
    case entry::status::failed: out << look.red << name << "  FAILED: " << e.note << look.plain << '\n'; break;
    case entry::status::recorded:
      out << look.faint << name << pad_left("–", figure_width) << "  " << pad_right(ratio_text(*e.ratio), ratio_width)
          << "  not measured in this run; recorded " << e.note << look.plain << '\n';
      break;
    case entry::status::not_here: out << look.faint << name << "  left out: " << e.note << look.plain << '\n'; break;
    case entry::status::absent: break;
  }
}

}  // namespace

std::string significant(double value) {
  if (value == 0) return "0";
  const int before = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  std::ostringstream out;
  out << std::fixed << std::setprecision(std::clamp(3 - before, 0, 4)) << value;
  return out.str();
}

std::string times(double ratio) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(ratio >= 99.5 ? 0 : ratio >= 9.995 ? 1 : 2) << ratio;
  return out.str();
}

std::string ratio_text(const estimate& ratio) {
  return times(ratio.value) + " × [" + times(ratio.low) + " … " + times(ratio.high) + "]";
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string pad_right(std::string text, std::size_t width) {
  text.append(width - std::min(width, columns(text)), ' ');
  return text;
}

std::string pad_left(std::string text, std::size_t width) {
  text.insert(0, width - std::min(width, columns(text)), ' ');
  return text;
}

void print_table(std::ostream& out, const run_record& run, const manifest& built) {
  const auto look = style_for_stdout();
  for (const auto& each : run.rows) {
    double largest = 0;
    for (const auto& e : each.entries)
      if (e.state == entry::status::measured) largest = std::max(largest, e.figure.value);
    out << '\n'
        << look.bold << row_title(*each.work, each.form) << look.plain << "  " << each.work->about << '\n'
        << look.faint << pad_right("", name_width) << pad_left(std::string{each.work->unit}, figure_width);
    if (each.work->kind != metric::allocations) {
      out << "  " << pad_right("× weft", ratio_width);
      if (each.shows_cpu()) out << pad_left("CPU", cpu_width);
      out << pad_left("memory", memory_width);
    }
    out << look.plain << '\n';
    for (const auto* e : in_order(each)) print_entry(out, each, *e, built, largest, look);
  }
}

void print_remarks(std::ostream& out, const run_record& run, const manifest& built) {
  std::set<std::string> absent;
  double coverage = 1;
  for (const auto& each : run.rows)
    for (const auto& e : each.entries) {
      if (e.state == entry::status::absent || e.state == entry::status::recorded) absent.insert(e.library);
      if (e.ratio && e.state == entry::status::measured && each.work->kind == metric::time)
        coverage = std::min(coverage, e.ratio->coverage);
    }
  out << "\nMedians of " << run.rounds << " interleaved rounds";
  if (coverage > 0 && coverage < 1)
    out << "; an interval covers the true ratio with " << significant(100 * coverage) << " %";
  out << ".\n";
  if (run.stolen > 0.01)
    out << "The hypervisor gave " << significant(100 * run.stolen) << " % of the CPU time to others meanwhile.\n";
  for (const char* lead = "Left out: "; const auto& title : run.left_out) {
    out << lead << title;
    lead = "; ";
  }
  if (!run.left_out.empty()) out << ". (--full measures all, a workload's name on the command line just that one.)\n";
  for (const auto& id : absent) {
    const auto& missing = built.find(id);
    out << missing.name << " is not here: install it, or configure with " << missing.option << "/its/prefix\n";
  }
  const auto failures = run.failures();
  if (failures.empty()) return;
  const auto look = style_for_stdout();
  out << '\n' << look.red << look.bold << failures.size() << " FAILED" << look.plain << '\n';
  for (const auto& failure : failures) out << "  " << failure << '\n';
}

void print_comparison(std::ostream& out, const run_record& run, const earlier_run& earlier) {
  const auto look = style_for_stdout();
  out << '\n' << look.bold << "now ÷ then" << look.plain << "  (the limits show what the machine itself did)\n";
  for (const auto& each : run.rows) {
    const auto title = row_title(*each.work, each.form);
    const auto then = earlier.find(title);
    if (then == earlier.end()) continue;
    for (const auto* e : in_order(each)) {
      const auto rounds = then->second.find(e->key());
      if (e->state != entry::status::measured || rounds == then->second.end()) continue;
      out << pad_right("  " + title, 2 * name_width - 16) << pad_right(e->key(), name_width - 4);
      const double before = median(rounds->second);
      out << pad_left(significant(before), figure_width) << " → "
          << pad_right(significant(e->figure.value), figure_width);
      if (before == 0 || e->figure.value == 0) {
        out << '\n';
        continue;
      }
      const auto ratio = unpaired_ratio(e->rounds, rounds->second);
      const char* verdict = ratio.low > 1 ? "slower" : ratio.high < 1 ? "faster" : "";
      out << pad_right(ratio_text(ratio), ratio_width) << verdict << '\n';
    }
  }
}

}  // namespace bench
