// The results as one page that needs nothing else: bench/report/page.html with style, script and the run's JSON put in.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace bench {

/// `folder` is bench/report of the sources.
///
/// Fails  with std::runtime_error where a part of the page is missing.
std::string html_page(const nlohmann::ordered_json& run, const std::string& folder);

}  // namespace bench
