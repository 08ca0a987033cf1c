// getaddrinfo: runs the C library's function on the pool for blocking calls, so that all of the system's configuration applies. A
// stop abandons the lookup: the call returns, and the lookup runs on by itself, even beyond the runtime of the fiber.
#include <netdb.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <weft/blocking.hpp>

#include "hook/next.hpp"
#include "hook/waiting.hpp"

namespace weft::detail {
namespace {

WEFT_HOOK_NEXT(getaddrinfo);

using weft::hook_options;

// A lookup that owns its arguments and its result: after a stop it still runs in the pool although the call has returned.
struct name_lookup {
  std::string host, service;
  bool has_host, has_service, has_hints;
  addrinfo hints;

  struct freed {
    void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
  };
  struct answer {
    int failed = 0;
    int error = 0;
    std::unique_ptr<addrinfo, freed> list;
  };
  answer operator()() const noexcept {
    addrinfo* list = nullptr;
    errno = 0;
    const int failed = next_getaddrinfo(has_host ? host.c_str() : nullptr, has_service ? service.c_str() : nullptr,
                                        has_hints ? &hints : nullptr, &list);
    answer mine{failed, errno, nullptr};
    if (failed == 0) mine.list.reset(list);
    return mine;
  }
};

// Whether the host is absent or a numeric address, so that the lookup asks no name server.
bool is_numeric(const char* host, const char* service, const addrinfo* hints) noexcept {
  if (host == nullptr || (hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0)) return true;
  addrinfo as_number{};
  if (hints != nullptr) {
    as_number.ai_flags = hints->ai_flags;
    as_number.ai_family = hints->ai_family;
    as_number.ai_socktype = hints->ai_socktype;
    as_number.ai_protocol = hints->ai_protocol;
  }
  as_number.ai_flags |= AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (next_getaddrinfo(host, service, &as_number, &list) != 0) return false;
  ::freeaddrinfo(list);
  return true;
}

}  // namespace

extern const char hooks_names;
const char hooks_names = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** into) {
  const hooked_call call{&hook_options::names};
  if (!call || is_numeric(host, service, hints)) return next_getaddrinfo(host, service, hints, into);
  const auto fail_as_stopped = [&] { return static_cast<void>(call.fail(ECANCELED)), EAI_SYSTEM; };
  if (call.is_stopped()) return fail_as_stopped();
  try {
    name_lookup lookup{.host = host != nullptr ? host : "",
                       .service = service != nullptr ? service : "",
                       .has_host = host != nullptr,
                       .has_service = service != nullptr,
                       .has_hints = hints != nullptr,
                       .hints = hints != nullptr ? *hints : addrinfo{}};
    auto asked = await_unless_stopped(weft::as_result(weft::blocking(
        weft::abandon_on_stop, [](const name_lookup& its) noexcept { return its(); }, std::move(lookup))));
    if (!asked || asked->is_stopped()) return fail_as_stopped();
    if (asked->has_value()) {
      name_lookup::answer& answer = asked->value();
      if (answer.failed == 0) *into = answer.list.release();
      if (answer.failed == EAI_SYSTEM)
        static_cast<void>(call.fail(answer.error));
      else
        static_cast<void>(call.give(0));
      return answer.failed;
    }
    if (asked->error()) return next_getaddrinfo(host, service, hints, into);  // the pool could start no thread
  } catch (const std::bad_alloc&) {
  }
  return EAI_MEMORY;
}

}  // extern "C"
