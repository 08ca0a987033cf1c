"""Builds and runs the program at the top of README.md with the package, and looks at what it prints."""
import io
import os

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class WeftTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        printed = io.StringIO()
        self.run(os.path.join(self.cpp.build.bindir, "squares"), printed, env="conanrun")
        if printed.getvalue().split() != ["333833500"]:
            raise ConanException(f"squares printed {printed.getvalue()!r}")
        self.output.info(f"squares printed {printed.getvalue().strip()}")
