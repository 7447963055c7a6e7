"""CMake refuses a program that links two targets that may never be in one process."""

import pathlib
import subprocess
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(together LANGUAGES C)
include({REPO}/cmake/NeverTogether.cmake)
add_library(fire INTERFACE)
add_library(water INTERFACE)
add_library(our::water ALIAS water)
file(WRITE ${{CMAKE_BINARY_DIR}}/empty.c "")
add_library(lamp STATIC ${{CMAKE_BINARY_DIR}}/empty.c)
target_link_libraries(lamp PRIVATE fire)
add_library(house INTERFACE)
target_link_libraries(house INTERFACE lamp)
add_executable(program ${{CMAKE_BINARY_DIR}}/empty.c)
target_link_libraries(program PRIVATE %s)
never_together(fire water "steam")
"""
CASES = [("fire", False), ("water lamp", True), ("our::water fire", True), ("house our::water", True),
         ("our::water", False)]


class NeverTogether(unittest.TestCase):
    def test_sees_both_through_whatever_lies_between(self):
        for links, refused in CASES:
            with self.subTest(links), tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "CMakeLists.txt").write_text(PROJECT % links)
                done = subprocess.run(
                    ["cmake", "-S", folder, "-B", folder + "/build", "-G", "Ninja", "-DCMAKE_C_COMPILER=clang-19",
                     "-DCMAKE_C_COMPILER_FORCED=ON"], capture_output=True, text=True)
                self.assertEqual("program links both fire and water: steam." in done.stderr, refused, done.stderr)
                self.assertEqual(done.returncode != 0, refused, done.stderr)


unittest.main()
