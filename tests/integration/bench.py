"""The benchmark of agentd, small: that it measures all that it says, however long that takes here. Run one test: bench.py NAME;
without a name: their names."""

import json
import pathlib
import subprocess
import sys

from whole import world

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from agentd_table import judge  # noqa: E402

HOPS, SDKS = {"agentd", "echo, socket", "echo, router"}, {"E2B JS", "E2B Python"}
SMALL = ["--rounds", "1", "--each", "2", "--bulk-rounds", "1", "--bulk-mib", "1", "--memory-mib", "4"]


def test_the_benchmark_of_agentd_measures_all_that_it_says():
    world.need_root()
    with world.temporary_folder("bench") as folder:
        done = subprocess.run([sys.executable, "-B", world.REPO / "bench/agentd", *SMALL, "-o", "json", "--no-bars", "--file", folder / "all.json"],
                              stdout=subprocess.PIPE, text=True, timeout=200)
        assert done.returncode == 0, done.returncode
        told = json.loads(done.stdout)
        assert json.loads((folder / "all.json").read_text()) == told
    for word, by in told["hops_us"].items():
        assert set(by) == HOPS and all(each["p50"] > 0 for each in by.values()), (word, by)
    for word, by in told["latency_us"].items():
        asked = {"agentd"} if word == "shell" else {"agentd"} | SDKS
        assert set(by) == asked and all(each["p50"] > 0 for each in by.values()), (word, by)
    request, reply = told["frame_bytes"]["read"]
    assert 0 < request < 1024 < reply, told["frame_bytes"]
    assert set(told["bulk_mb_per_s"]["upload"]) == set(told["bulk_mb_per_s"]["download"]) == HOPS | SDKS, told["bulk_mb_per_s"]
    assert len(told["memory"]) == 9 and len(told["verdict"]) == 5, told


def test_a_bar_that_is_missed_is_told():
    def met(hops, ours, sdk, held):
        result = {"hops_us": {"stat": {"agentd": {"p50": ours}, "echo, socket": {"p50": hops / 4}, "echo, router": {"p50": 3 * hops / 4}}},
                  "together_us": {"agentd": {"p50": 10 * ours}, "E2B JS": {"p50": 2 * sdk}, "E2B Python": {"p50": sdk}},
                  "memory": {"it": {"asked_bytes": 1 << 20, "agentd_bytes": held, "executor_bytes": 0}}}
        return [each for _, _, each in judge(result).values()]
    assert met(hops=40, ours=120, sdk=6000, held=17 << 20) == [True, True, True, True]
    assert met(hops=39, ours=120, sdk=5999, held=(17 << 20) + 1) == [False, False, False, True]


if __name__ == "__main__":
    world.run_test_named_by(sys.argv[1:], globals())
