"""What the benchmark of clusters found, for people."""

BARS = {"ratio_p50": 1.5, "object_writes_each": 3, "steady_object_writes": 0, "reconciles_each": 5, "burst_seconds": 0.9,
        "serial_p50_ms": 20, "twenty_p50_ms": 40, "kib_each": 4, "clean_handover_seconds": 2}
PARTS = {"without_provider_ms": "  without the provider's work", "own_writes_ms": "  its own writes, at the server",
         "provider_ms": "  the provider's work", "rest_ms": "  the rest", "bare_writes_ms": "  bare writes beside it"}


def line(*cells):
    print("  ".join(f"{cell:>16}" if number else f"{cell:<34}" for number, cell in enumerate(cells)))


def table(result):
    line("create→Ready, ms", "p50", "p90", "p99", "Ready/s", "bar, p50")
    bars = {("serial", "without_provider_ms"): BARS["serial_p50_ms"], ("twenty_at_once", "create_to_ready_ms"): BARS["twenty_p50_ms"]}

    def bar_of(*row):
        return f"≤{bars[row]}" if row in bars else ""
    for name in ("serial", "twenty_at_once", "burst", "paced"):
        each = result[name]
        line(f"{name.replace('_', ' ')} ({each['sandboxes']})", *(f"{each['create_to_ready_ms'][rank]:.1f}" for rank in ("p50", "p90", "p99")),
             f"{each['ready_per_second']:.1f}", bar_of(name, "create_to_ready_ms"))
        for part, words in PARTS.items():
            if part in each:
                line(words, *(f"{each[part][rank]:.1f}" for rank in ("p50", "p90", "p99")), "", bar_of(name, part))
    each, rest = result["paced"], result["steady"]
    print()
    line("", "here", "bar")
    line("create→Ready / bare writes, p50", f"{each['ratio']['p50']:.2f}", f"≤{BARS['ratio_p50']}")
    if "ratio_without_provider" in each:
        line("  without the provider's work, p50", f"{each['ratio_without_provider']['p50']:.2f}", f"≤{BARS['ratio_p50']}")
        line("  without the provider's work, p99", f"{each['ratio_without_provider']['p99']:.2f}")
    line(f"burst of {result['burst']['sandboxes']}, s", f"{result['burst']['seconds']:.2f}", f"≤{BARS['burst_seconds']} for 100")
    line("object writes, create to Ready", f"{each['object_writes_each']:.2f}", f"≤{BARS['object_writes_each']}")
    line("reconciles, create to Ready", f"{each['reconciles_each']:.2f}", f"≤{BARS['reconciles_each']}")
    line("controller CPU, ms each", f"{each['cpu_ms_each']['controller']:.2f}")
    line("API server CPU, ms each", f"{each['cpu_ms_each']['api_server']:.2f}")
    line("object writes, steady", f"{rest['object_writes']}", f"{BARS['steady_object_writes']}")
    line("controller, steady, cores", f"{rest['cores']['controller']:.3f}", "≤1")
    line("heartbeats/s; p99 late, s, under", f"{rest['heartbeats_per_second']:.1f}; {rest['heartbeat_p99_seconds_at_most']}", "<1")
    line("controller memory, MiB", f"{rest['controller_memory_bytes'] / 2**20:.1f}")
    line("controller memory, KiB each", f"{rest['controller_memory_bytes_each'] / 1024:.1f}", f"≤{BARS['kib_each']}")
    line(f"time to sync {result['sync']['objects']}, s", f"{result['sync']['seconds']:.2f}")
    for name, bar in (("clean_hand_over", f"≤{BARS['clean_handover_seconds']}"),
                      ("crash_hand_over", f"≤{result['options']['lease_seconds']}, a lease")):
        over = result[name]
        line(f"{name.replace('_', ' ')}, s", f"{over['lease_held_seconds']:.2f}", bar)
        line("  until a new Sandbox is Ready", f"{over['new_sandbox_ready_seconds']:.2f}")
        line("  until every lease is kept", f"{over['all_kept_seconds']:.2f}")
    line("deleted/s", f"{result['delete']['per_second']:.1f}")
    line("duplicates; left", f"{result['duplicates']}; {result['left']}", "0; 0")
    print("\nwrites of the controller, each: ", ", ".join(f"{title} {count:g}" for title, count in each["api_writes_each"].items()))
    print("at deletion: ", ", ".join(f"{title} {count:g}" for title, count in result["delete"]["api_writes_each"].items()))
