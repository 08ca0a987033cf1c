#include "driver.hpp"

int main(int argc, char** argv) { return bench::run_driver(argc, argv); }
