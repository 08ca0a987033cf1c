// The results as text, for a terminal.
#pragma once

#include "results.hpp"

#include <iosfwd>
#include <optional>
#include <string>

namespace bench {

/// Three significant digits, and no more: "8.21", "1276", "0.97".
std::string significant(double value);

/// A ratio: "0.93", "1.30", "13.1", "130".
std::string times(double ratio);

/// "1.30 × [1.28 … 1.33]"
std::string ratio_text(const estimate& ratio);

/// How many columns a text takes: its characters, not its bytes.
std::size_t columns(std::string_view text);

/// The text, filled up to `width` columns, on the right side of it or the left.
std::string pad_right(std::string text, std::size_t width);
std::string pad_left(std::string text, std::size_t width);

/// Every row of the run: fastest first, weft in bold, what was not measured at the end.
void print_table(std::ostream& out, const run_record& run, const manifest& built);

/// What went wrong, what was left out, and how to point at a peer that is missing.
void print_remarks(std::ostream& out, const run_record& run, const manifest& built);

/// This run beside an earlier one.
void print_comparison(std::ostream& out, const run_record& run, const earlier_run& earlier);

/// The published table of a system (report/<name>.json), with the same programs measured in this run beside it.
void print_published(std::ostream& out, const run_record& run, const manifest& built, const std::string& path);

/// How many rounds it is made of, where it says.
std::optional<std::size_t> published_rounds(const std::string& path);

/// The workloads that a published table needs.
std::vector<std::string> published_workloads(const std::string& path);

}  // namespace bench
