# cmake -DFROM=<folder> -DTO=<source> -P embed.cmake
# Makes one page of page.html, page.css and page.js, and of that a source, which defines weft::detail::observer_page.
foreach(kind IN ITEMS html css js)
  file(READ ${FROM}/page.${kind} ${kind} HEX)
endforeach()
string(REPLACE 405354594c4540 "${css}" html "${html}")      # @STYLE@
string(REPLACE 4053435249505440 "${js}" html "${html}")     # @SCRIPT@
string(LENGTH "${html}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${html}")
string(REPEAT "[^,]+," 16 line)
string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
file(WRITE ${TO} "#include \"observer/page.hpp\"
namespace weft::detail {
static constexpr char bytes[] = {
${bytes}
};
constinit const std::string_view observer_page{bytes, ${size}};
}  // namespace weft::detail
")
