// Requests on the observer's socket: random lines, most of them nearly right. What is taken has to be JSON for another parser, too,
// and say the same; the name that is written into JSON, whatever its bytes are, has to be that name.
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.hpp"
#include "observer/request.hpp"
#include "support/fuzz.hpp"

namespace {

using nlohmann::json;

std::string nearly_a_request(test::choices& chosen) {
  constexpr std::string_view pieces[] = {"{",        "}",     "\"request\"", "\"id\"", ":",    ",",     "\"snapshot\"",
                                         "\"help\"", "17",    "-",           "0",      "\"",   "\\n",   "\\u0041",
                                         "\\",       " ",     "\t",          "[",      "]",    "null",  "help",
                                         "\xff",     "\"x\"", "1e5",         ".",      "\x01", "stalls"};
  std::string line = chosen.one_in(3) ? "" : R"({"request":"help")";
  while (chosen.are_left()) line += pieces[chosen.up_to(std::size(pieces) - 1)];
  if (!line.empty() && line.front() == '{' && chosen.up_to(1) == 0 && line.back() != '}') line += '}';
  return line;
}

}  // namespace

WEFT_FUZZ(observer_request, 20'000, 24) {
  const std::string line = nearly_a_request(chosen);
  const weft::detail::observer_request got = weft::detail::parse_request(line);
  std::string written;
  weft::detail::append_json(written, line);
  const json read = json::parse(written, nullptr, false);
  test::must(read.is_string(), "what is written is no JSON: " + written);
  test::must(line.find_first_of("\xff\x01") != line.npos || read.get<std::string>() == line,
             "it is another text: " + written);
  test::must(written.find('<') == written.npos, "it could end an element of HTML");
  if (got.error != nullptr) return;
  if (line.find('{') == line.npos) return test::must(line.find(weft::detail::name_of(got.kind)) != line.npos, line);
  const json theirs = json::parse(line, nullptr, false);
  if (line.find_first_of("\xff\\") != line.npos) return;  // strings of ids: they are only repeated
  test::must(theirs.is_object(), "it is taken, and no JSON: " + line);
  test::must(theirs["request"] == weft::detail::name_of(got.kind), "it is another request: " + line);
  test::must(theirs.contains("id") == !got.id.empty(), "the id is lost: " + line);
  if (!got.id.empty()) test::must(theirs["id"] == json::parse(got.id), "it is another id: " + line);
}
