"""weft for Conan 2: `conan create .` builds it, and then the program in test_package/.

weft::tls and what else needs a library use that of the system, by the options below. So no remote is asked for anything, and a
program has one OpenSSL. An option that is off keeps the library out, also where the system has it.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.system.package_manager import Apt, Dnf, PacMan, Zypper

required_conan_version = ">=2.0"

# What an option needs: Debian's packages, and those of others.
SYSTEM_PACKAGES = {
    "uring": {Apt: ["liburing-dev"], Dnf: ["liburing-devel"], PacMan: ["liburing"], Zypper: ["liburing-devel"]},
    "cares": {Apt: ["libc-ares-dev"], Dnf: ["c-ares-devel"], PacMan: ["c-ares"], Zypper: ["c-ares-devel"]},
    "tls": {Apt: ["libssl-dev"], Dnf: ["openssl-devel"], PacMan: ["openssl"], Zypper: ["libopenssl-devel"]},
    "http": {Apt: ["libhttp-parser-dev"], Dnf: ["http-parser-devel"], PacMan: ["http-parser"], Zypper: ["http-parser-devel"]},
}
SYSTEM_LIBRARIES = {"uring": ["uring"], "cares": ["cares"], "tls": ["ssl", "crypto"], "http": ["http_parser"]}


class WeftRecipe(ConanFile):
    name = "weft"
    package_type = "library"
    license = "BSL-1.0"
    description = "One C++20 coroutine runtime: tasks, scopes, fibers, channels, I/O"
    topics = ("coroutines", "fibers", "channels", "structured-concurrency", "io-uring")
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "uring": [True, False],  # runtimes may wait by io_uring
        "cares": [True, False],  # names are looked up by c-ares
        "tls": [True, False],  # weft::tls
        "observe": [True, False],  # weft::observe
        "http": [True, False],  # weft::observe answers by HTTP, too
    }
    default_options = {
        "shared": False, "fPIC": True, "uring": False, "cares": False, "tls": False, "observe": True, "http": False,
    }
    exports_sources = ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "tools/weft/*", "tools/gdb/*")

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/weft/version.hpp"))
        parts = [re.search(rf"#define WEFT_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
        self.version = ".".join(parts)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")
        if not self.options.observe:
            self.options.rm_safe("http")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("weft is for Linux")
        check_min_cppstd(self, 20)

    def is_on(self, option):
        return bool(self.options.get_safe(option, False))

    def system_requirements(self):
        for option, packages in SYSTEM_PACKAGES.items():
            if self.is_on(option):
                for manager, names in packages.items():
                    manager(self).install(names)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "BENCH", "EXAMPLES", "TOOLS"):
            toolchain.cache_variables[f"WEFT_BUILD_{part}"] = False
        toolchain.cache_variables["WEFT_HWLOC"] = False
        toolchain.cache_variables["WEFT_SDT"] = False
        for option, name in (("uring", "URING"), ("cares", "CARES"), ("tls", "TLS"), ("http", "OBSERVE_HTTP")):
            toolchain.cache_variables[f"WEFT_{name}"] = self.is_on(option)
        # All of a library's sources at once: a third of the time.
        toolchain.cache_variables["CMAKE_UNITY_BUILD"] = True
        toolchain.cache_variables["CMAKE_UNITY_BUILD_BATCH_SIZE"] = 0
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))  # Conan writes its own
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def component(self, name, libs, requires=(), needs=()):
        info = self.cpp_info.components[name]
        info.libs = libs
        info.requires = list(requires)
        info.set_property("cmake_target_name", f"weft::{name}")
        info.set_property("pkg_config_name", "weft" if name == "weft" else f"weft-{name}")
        # A shared library has what it needs in itself.
        if not self.options.shared:
            info.system_libs = [library for option in needs if self.is_on(option) for library in SYSTEM_LIBRARIES[option]]
        return info

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "weft")
        core = self.component("weft", ["weft"], needs=("uring", "cares"))
        core.system_libs += ["pthread", "dl"]
        self.component("test", ["weft_test"], ["weft"])
        hook = self.component("hook", ["weft_hook"], ["weft"])
        hook.system_libs.append("dl")
        if self.options.tls:
            self.component("tls", ["weft_tls"], ["weft"], ("tls",))
        if self.options.observe:
            # Linked though no program refers to it: it reads WEFT_OBSERVE.
            observe = self.component("observe", ["weft_observe"], ["weft"], ("http",))
            observe.exelinkflags = observe.sharedlinkflags = [
                "-Wl,--no-as-needed" if self.options.shared else "-Wl,--undefined=weft_observe_is_linked"]
