#include <weft/observer.hpp>

#include "observer/helper.hpp"

namespace weft {

observer::observer(const observer_options& options) : helper_{new detail::observer_helper{options}} {}

observer::~observer() {
  if (!helper_->is_forked()) delete helper_;
}

std::string_view observer::socket_path() const noexcept { return helper_->socket_path(); }
unsigned short observer::http_port() const noexcept { return helper_->http_port(); }
std::string_view observer::token() const noexcept { return helper_->token(); }
std::string_view observer::token_path() const noexcept { return helper_->token_path(); }

}  // namespace weft
