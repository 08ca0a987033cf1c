// The results as one page that needs nothing else: report/page.html with the run's JSON put in.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace bench {

std::string html_page(const nlohmann::ordered_json& run);

}  // namespace bench
