"""What bench/agentd found, for people, and whether it is good enough."""

BARS = {"hops_ratio_p50": 3.0, "sdk_ratio_p50": 5.0, "memory_bytes": 16 << 20}
RANKS = ("p50", "p90", "p99")


def judge(result):
    """{what: (value, bar, whether it is met)}"""
    found = {}
    for word, by in result["hops_us"].items():
        hops = sum(by[name]["p50"] for name in by if name.startswith("echo"))
        ratio = by["agentd"]["p50"] / hops
        found[f"{word} / the echoes of its hops, p50"] = (ratio, f"≤{BARS['hops_ratio_p50']:g}", ratio <= BARS["hops_ratio_p50"])
    by = result["together_us"]
    best = min(one["p50"] for name, one in by.items() if name != "agentd")
    ratio = best / by["agentd"]["p50"]
    found["write + read + run: the faster SDK / agentd, p50"] = (ratio, f"≥{BARS['sdk_ratio_p50']:g}", ratio >= BARS["sdk_ratio_p50"])
    for who in ("agentd", "executor"):
        most = max((each[f"{who}_bytes"] - each["asked_bytes"] for each in result["memory"].values()), default=0)
        found[f"{who}: MiB beyond what was asked for"] = (most / 2**20, f"≤{BARS['memory_bytes'] >> 20}", most <= BARS["memory_bytes"])
    return found


def line(*cells):
    print("  ".join(f"{cell:>22}" if number else f"{cell:<48}" for number, cell in enumerate(cells)).rstrip())


def table(result):
    def latencies(what, rows, names):
        line(f"{what}, us: p50 (p90, p99)", *names)
        for word, by in rows:
            line(word, *("{:.0f} ({:.0f}, {:.0f})".format(*(by[name][rank] for rank in RANKS)) if name in by else "" for name in names))
        print()

    latencies("on one CPU", result["hops_us"].items(), list(result["hops_us"]["stat"]))
    latencies("anywhere", [*result["latency_us"].items(), ("write + read + run", result["together_us"])], list(result["together_us"]))
    line("used each time", "agentd, us of CPU", "executor, us of CPU", "agentd, sleeps", "executor, sleeps")
    for word, by in result["used"].items():
        line(word, *(f"{by[who]['cpu_us']:.0f}" for who in by), *(f"{by[who]['sleeps']:.1f}" for who in by))
    print()
    names = list(result["bulk_mb_per_s"]["upload"])
    line("MB/s", *names)
    for word, by in result["bulk_mb_per_s"].items():
        line(word, *(f"{by[name]:.0f}" for name in names))
    print()
    line(f"{result['options']['memory_mib']} MiB pass; MiB more than before", "asked for", "agentd", "executor", "sandfleet, in all", "MB/s")
    for what, each in result["memory"].items():
        line(what, *(f"{each[who] / 2**20:.1f}" if who in each else "" for who in ("asked_bytes", "agentd_bytes", "executor_bytes", "cli_bytes")),
             f"{result['options']['memory_mib'] * 1.048576 / each['seconds']:.0f}")
    print()
    line("", "here", "bar", "")
    for what, (value, bar, met) in judge(result).items():
        line(what, f"{value:.2f}", bar, "" if met else "missed")
