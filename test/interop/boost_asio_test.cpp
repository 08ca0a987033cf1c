#include <boost/asio.hpp>
#include <weft/boost_asio.hpp>

namespace asio = boost::asio;
namespace asio_adapter = weft::boost_asio;

#include "interop/asio_cases.hpp"
