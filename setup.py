"""The extension modules. Everything else is in pyproject.toml.

Switches, each compared with "1": TOOLWIRE_DEBUG (assertions, no optimisation), TOOLWIRE_SANITIZE (address and undefined
behaviour sanitizers), TOOLWIRE_NO_GROW (public string functions only), TOOLWIRE_SUBINTERPRETERS (loads into any interpreter of a
process; a small document or frame of its own costs up to six times as much, because Cython then looks its module up),
TOOLWIRE_WERROR (warnings fail; for our own checks).
"""

import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup


def on(name: str) -> bool:
    return os.environ.get(name) == "1"


compile_args: list[str] = []
link_args: list[str] = []
macros: list[tuple[str, str | None]] = []
if sys.platform != "win32":
    compile_args += ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Wno-cast-function-type"]
    compile_args += ["-O0", "-g"] if on("TOOLWIRE_DEBUG") else ["-O3"]
    if on("TOOLWIRE_WERROR"):
        compile_args.append("-Werror")
    if on("TOOLWIRE_SANITIZE"):
        flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g"]
        compile_args += flags
        link_args += flags
if on("TOOLWIRE_NO_GROW"):
    macros.append(("TW_NO_GROW_IN_PLACE", None))

if on("TOOLWIRE_SUBINTERPRETERS"):
    macros += [("CYTHON_USE_MODULE_STATE", "1"), ("CYTHON_USE_TYPE_SPECS", "1"), ("TW_SUBINTERPRETERS", None)]

CORE = "src/toolwire/_core/"
HEADERS = [CORE + name for name in ("tw_common.h", "tw_scan.h", "tw_json.h", "tw_number.h", "tw_pow5.h")]

BUILDER = ["src/toolwire/_pybuild.h", "src/toolwire/_pystr.h"]


def extension(name: str, sources: list[str], depends: list[str]) -> Extension:
    return Extension(
        f"toolwire.{name}",
        [f"src/toolwire/{name}.pyx", *sources],
        depends=depends + HEADERS,
        include_dirs=["src/toolwire"],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
        define_macros=macros,
    )


setup(
    ext_modules=cythonize(
        [
            extension("_json", ["src/toolwire/_pytap.c"], ["src/toolwire/_pytap.h", "src/toolwire/_partial.pxi", "src/toolwire/_taps.pxi", *BUILDER]),
            extension("_tokens", [], ["src/toolwire/_pytokens.h", *BUILDER]),
            extension("_calls", [], [CORE + "tw_trial.h", *BUILDER]),
            extension("_projection", [CORE + "tw_template.c"], ["src/toolwire/_pyproject.h", CORE + "tw_template.h", CORE + "tw_trial.h", *BUILDER]),
            extension("_lanes", [], [CORE + "tw_template.h", *BUILDER]),
            extension("_framing", [CORE + name for name in ("tw_sse.c", "tw_lines.c", "tw_array.c")], []),
            extension("_aws", [CORE + "tw_aws.c"], [CORE + "tw_aws.h", CORE + "tw_frame.h"]),
        ],
        compiler_directives={
            "language_level": "3",
            # Methods without Cython's function objects around them: a call costs less. Their signatures are in the docstrings.
            "binding": False,
            "embedsignature": True,
            "embedsignature.format": "clinic",
            # Holds where CYTHON_USE_MODULE_STATE is on, and says nothing elsewhere.
            "subinterpreters_compatible": "own_gil",
        },
    ),
)
