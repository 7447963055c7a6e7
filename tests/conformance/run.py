"""Runs cases by each way that can express them: `run.py --stage FOLDER identity.a_blank_path_is_nothing`, with the folder of a
stage that stands (stage.py); `run.py --own DSH_BUILT identity` sets one up for itself, and runs all cases of a module. `run.py
--without identity …` shows of the cases that say so that they fail without the mechanism that they are about."""

import argparse
import contextlib
import importlib
import json
import pathlib
import sys
import time
import traceback

from stage import stage, world
from alone import alone_executor
from ground import Ground
from over_dsh import DshSeam
from over_wire import WireSeam
from seam import WAYS

PATIENCE_WITHOUT_S = 3


def cases_named(name):
    module, _, case = name.partition(".")
    functions = vars(importlib.import_module(f"cases.{module}"))
    return [functions[f"test_{case}"]] if case else [each for title, each in functions.items() if title.startswith("test_")]


def seam_by(way, told):
    ground = Ground(told[way]["root"], told[way]["home"])
    return DshSeam(told, ground) if way == "dsh" else WireSeam(told, ground, way)


def passes(case, way, told):
    reason = getattr(case, "not_through", {}).get(way)
    if reason:
        print(f"{way}: {case.__name__} is not for this way: {reason}")
        return True
    began = time.monotonic()
    try:
        with seam_by(way, told) as seam:
            case(seam)
    except Exception:
        print(f"{way}: {case.__name__} FAILED\n{traceback.format_exc()}")
        return False
    print(f"{way}: {case.__name__} passed in {time.monotonic() - began:.3f} s")
    return True


def fails_without_its_mechanism(case):
    env = {"SANDFLEET_WITHOUT": case.fails_without}
    with alone_executor("executor_without", env) as executor:
        told = {"executor": executor.told(), "patience_s": PATIENCE_WITHOUT_S}
        if not passes(case, "executor", told):
            return True
    print(f"{case.__name__} passes without {case.fails_without}: it cannot fail")
    return False


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    where = asked.add_mutually_exclusive_group(required=True)
    where.add_argument("--stage", type=pathlib.Path)
    where.add_argument("--own", metavar="DSH_BUILT")
    where.add_argument("--without", action="store_true")
    asked.add_argument("--way", choices=WAYS, action="append")
    asked.add_argument("cases", nargs="+")
    asked = asked.parse_args()
    world.need_root()
    world.end_on_signals()
    cases = [case for name in asked.cases for case in cases_named(name)]
    if asked.without:
        fail = [fails_without_its_mechanism(case) for case in cases if hasattr(case, "fails_without")]
        return 0 if fail and all(fail) else 1
    standing = stage(asked.own) if asked.own else contextlib.nullcontext(json.loads((asked.stage / "stage.json").read_text()))
    with standing as told:
        results = [passes(case, way, told) for case in cases for way in asked.way or WAYS]
    return 0 if all(results) else 1


sys.exit(main())
