#include <atomic>
#include <cstdio>
#include <string>
#include <weft/error.hpp>

namespace weft {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weft"; }
  std::string message(int code) const override {
    switch (static_cast<errc>(code)) {
      case errc::closed: return "closed: the other end is gone";
      case errc::timed_out: return "timed out";
      case errc::broken_promise: return "the promise was destroyed before it was set";
      case errc::promise_already_set: return "the promise was already set";
      case errc::future_already_taken: return "the promise's future was already taken";
      case errc::no_room:
        return "the scope has as many children as it may have, or this thread as many forks in each other's first run";
    }
    return "unknown error " + std::to_string(code);
  }
};

std::string sentence(std::string_view operation, std::string_view subject) {
  std::string text{operation};
  if (!subject.empty()) (text += ' ') += subject;
  return text;
}

void print_lost_error(const char* operation, const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "weft: %s: a failure came too late to be thrown: %s\n", operation, thrown.what());
  } catch (...) {  // it has no text
    std::fprintf(stderr, "weft: %s: a failure came too late to be thrown\n", operation);
  }
}

// Whoever sets the handler has written before what the handler uses:
//   edge handler  all before it was set  ->  its calls. No model: relacy has no statics.
std::atomic<lost_error_handler> handler_of_lost_errors{print_lost_error};

}  // namespace

lost_error_handler set_lost_error_handler(lost_error_handler handler) noexcept {
  return handler_of_lost_errors.exchange(handler != nullptr ? handler : print_lost_error,
                                         std::memory_order_acq_rel);  // -> handler, <- handler (no model: as declared)
}

void detail::lose_error(const char* operation, const std::exception_ptr& failure) noexcept {
  handler_of_lost_errors.load(std::memory_order_acquire)(operation, failure);  // <- handler (no model: as declared)
}

const std::error_category& weft_category() noexcept {
  static const category one;
  return one;
}

error::error(std::error_code code, std::string_view operation, std::string_view subject)
    : std::system_error{code, sentence(operation, subject)} {}

namespace detail {

void rethrow(const std::exception_ptr& failure) { std::rethrow_exception(failure); }
void rethrow(std::exception_ptr&& failure) { std::rethrow_exception(std::move(failure)); }

// Where nothing can be caught, a thread is being cancelled, which is no exception of C++.
std::exception_ptr caught() noexcept {
  std::exception_ptr exception = std::current_exception();
  WEFT_EXPECTS(
      exception != nullptr,
      "a thread was to end (pthread_exit, pthread_cancel) in the middle of a task or fiber, which others wait for: "
      "return from it, or end it by a stop");
  return exception;
}

void throw_stopped() { throw stopped{}; }

std::error_code code_of(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const std::system_error& known) {
    return known.code();
  } catch (...) {  // any other exception has no code, and `failure` still holds it
    return {};
  }
}

}  // namespace detail
}  // namespace weft
