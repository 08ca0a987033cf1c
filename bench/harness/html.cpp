#include "html.hpp"

#include "page.hpp"  // made from report/ by the build

#include <stdexcept>
#include <string_view>

namespace bench {
namespace {

/// "</script>" inside a string would end the script; "<\/" means the same to JSON and nothing to HTML.
std::string for_script(std::string json) {
  for (std::size_t at = 0; (at = json.find("</", at)) != std::string::npos; at += 3) json.insert(at + 1, "\\");
  return json;
}

void put(std::string& page, std::string_view mark, std::string_view text) {
  const auto at = page.find(mark);
  if (at == std::string::npos) throw std::logic_error{"the page has no " + std::string{mark}};
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string html_page(const nlohmann::ordered_json& run) {
  std::string page{page_html};
  put(page, "/*STYLE*/", page_css);
  put(page, "/*SCRIPT*/", page_js);
  put(page, "/*RESULTS*/null", for_script(run.dump()));
  return page;
}

}  // namespace bench
