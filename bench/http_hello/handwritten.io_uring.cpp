// The limit of io_uring: see ring_server.hpp.
#include "workload.hpp"

#include <memory>
#include <vector>

#include "../harness/net/ring_server.hpp"

namespace {

class http {
 public:
  bench::after_receive received(bench::ring_server<http>& here, int socket, std::string_view bytes) {
    const auto at = static_cast<std::size_t>(socket);
    if (at >= sessions_.size()) sessions_.resize(at + 1);
    if (sessions_[at] == nullptr) sessions_[at] = std::make_unique<bench::requests>();
    const int complete = sessions_[at]->feed(bytes);
    if (complete < 0) return bench::after_receive::close;
    for (int i = 0; i != complete; ++i) here.send(socket, bench::hello);
    return bench::after_receive::lend;
  }
  void closed(int socket) {
    if (static_cast<std::size_t>(socket) < sessions_.size()) sessions_[static_cast<std::size_t>(socket)] = nullptr;
  }

 private:
  std::vector<std::unique_ptr<bench::requests>> sessions_;  // by number
};

}  // namespace

int main(int count, char** words) { bench::ring_server<http>::serve(bench::read_server_options(count, words)); }
