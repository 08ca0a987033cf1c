// Crosses from code that knows no coroutines into tasks, and back: a C function with a callback, a thread that sets a
// promise, and a main that blocks on a future.
#include <cstdio>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/weft.hpp>

namespace w = weft;

// ---- a C library: reports through a function and a pointer, from whatever thread -------------------------------------

extern "C" {
using on_found = void (*)(void* context, int error, int port);

void find_port(const char* service, on_found report, void* context) {
  const std::string name{service};
  std::thread{[=] {
    if (name == "http")
      report(context, 0, 80);
    else
      report(context, ENOENT, 0);
  }}.detach();
}
}

// ---- in: a callback, as something to await ---------------------------------------------------------------------------

w::task<int> port_of(std::string service) {
  co_return co_await w::from_callback<int>([&](w::callback<int> done) {
    find_port(
        service.c_str(),
        [](void* context, int error, int port) {
          auto done = w::callback<int>::from_address(context);
          if (error != 0)
            done.set_exception(std::make_exception_ptr(w::error{{error, std::generic_category()}, "find_port"}));
          else
            done(port);
        },
        done.address());
  });
}

// ---- in: a thread that sets a promise --------------------------------------------------------------------------------

w::task<std::string> address_of(std::string service, w::future<std::string> host) {
  // The two run on threads of their own; the task goes on where it was awaited.
  auto [name, port] = co_await w::when_all(std::move(host), port_of(std::move(service)));
  co_return name + ":" + std::to_string(port);
}

int main() {
  for (const char* service : {"http", "gopher"}) {
    w::promise<std::string> host;
    auto known = host.get_future();
    std::jthread resolver{[host = std::move(host)]() mutable { host.set_value("localhost"); }};

    // ---- out: a task, as a future that a plain thread waits for ------------------------------------------------------
    w::future<std::string> address = w::as_future(address_of(service, std::move(known)));
    try {
      std::printf("%s: %s\n", service, address.get().c_str());
    } catch (const std::system_error& failure) {
      std::printf("%s: %s\n", service, failure.what());
    }
  }
}
