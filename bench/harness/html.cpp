#include "html.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace bench {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw std::runtime_error{"cannot read " + path};
  return text.str();
}

/// "</script>" inside a string would end the script; "<\/" means the same to JSON and nothing to HTML.
std::string for_script(std::string json) {
  for (std::size_t at = 0; (at = json.find("</", at)) != std::string::npos; at += 3) json.insert(at + 1, "\\");
  return json;
}

void put(std::string& page, std::string_view mark, std::string_view text) {
  const auto at = page.find(mark);
  if (at == std::string::npos) throw std::runtime_error{"page.html has no place for " + std::string{mark}};
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string html_page(const nlohmann::ordered_json& run, const std::string& folder) {
  std::string page = read_text(folder + "/page.html");
  put(page, "/*STYLE*/", read_text(folder + "/page.css"));
  put(page, "/*SCRIPT*/", read_text(folder + "/page.js"));
  put(page, "/*RESULTS*/null", for_script(run.dump()));
  return page;
}

}  // namespace bench
