// The limit of io_uring: see ring_server.hpp.
#include "../harness/net/ring_server.hpp"

namespace {

struct echo {
  bench::after_receive received(bench::ring_server<echo>&, int, std::string_view) { return bench::after_receive::send; }
  void closed(int) {}
};

}  // namespace

int main(int count, char** words) { bench::ring_server<echo>::serve(bench::read_server_options(count, words)); }
