// Walks a tree with a generator that calls itself. Each value goes straight to the loop that asks for it, however deep
// its node lies; the loop may leave when it likes.
#include <cstdio>
#include <memory>
#include <ranges>
#include <weft/generator.hpp>

namespace w = weft;

class tree {
 public:
  void insert(int value) { insert(root_, value); }

  w::generator<const int&> in_order() const { return walk(root_.get()); }

 private:
  struct node {
    int value;
    std::unique_ptr<node> left, right;
  };

  static void insert(std::unique_ptr<node>& at, int value) {
    if (!at)
      at.reset(new node{value, nullptr, nullptr});
    else
      insert(value < at->value ? at->left : at->right, value);
  }

  static w::generator<const int&> walk(const node* n) {
    if (n == nullptr) co_return;
    co_yield w::elements_of(walk(n->left.get()));
    co_yield n->value;
    co_yield w::elements_of(walk(n->right.get()));
  }

  std::unique_ptr<node> root_;
};

int main() {
  tree numbers;
  for (int n : {50, 30, 70, 20, 40, 60, 80, 35, 45, 65}) numbers.insert(n);

  for (int n : numbers.in_order()) std::printf("%d ", n);
  std::printf("\n");

  // It is a view, so the standard's adaptors take it.
  for (int n : numbers.in_order() | std::views::filter([](int n) { return n % 20 == 0; }) | std::views::take(3))
    std::printf("%d ", n);
  std::printf("\n");

  for (int n : numbers.in_order()) {
    if (n > 40) break;  // the walk is dropped here, with every level that it has open
    std::printf("%d ", n);
  }
  std::printf("\n");
}
