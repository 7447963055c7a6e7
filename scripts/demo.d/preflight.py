"""What the provider needs of this machine; each lack is named with its cure."""

import os
import pathlib
import subprocess

import world
from telling import say


class Lacking(Exception):
    pass


def sysctl(name):
    """Its number; None where the kernel has no such setting."""
    path = pathlib.Path("/proc/sys") / name.replace(".", "/")
    return int(path.read_text()) if path.exists() else None


def lacks_of_namespaces():
    """Why this user cannot have sandboxes in user namespaces."""
    if not sysctl("user.max_user_namespaces"):
        return ["user namespaces: sysctl -w user.max_user_namespaces=10000"]
    tried = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, text=True)
    if tried.returncode == 0:
        return []
    if sysctl("kernel.unprivileged_userns_clone") == 0:
        return ["user namespaces for ordinary users: sysctl -w kernel.unprivileged_userns_clone=1, or run it as root"]
    if sysctl("kernel.apparmor_restrict_unprivileged_userns"):
        return ["user namespaces that AppArmor leaves alone: "
                "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or run it as root"]
    return [f"user namespaces ({tried.stderr.strip()}): in a container, its seccomp profile must allow unshare"]


def lacks_of_cgroups():
    """Why root cannot have a cgroup for each sandbox."""
    lacks = []
    cgroup2 = world.cgroup2()
    if cgroup2 is None:
        lacks.append("cgroup2: mount it with: mkdir -p /sys/fs/cgroup/unified && "
                     "mount -t cgroup2 none /sys/fs/cgroup/unified")
    else:
        probe = cgroup2 / f"sandfleet-preflight-{os.getpid()}"
        try:
            probe.mkdir()
            for control in ("cgroup.freeze", "cgroup.kill"):
                if not (probe / control).exists():
                    lacks.append(f"{control}: needs Linux 5.14 or later; this is {os.uname().release}")
            probe.rmdir()
        except OSError as error:
            lacks.append(f"a writable cgroup2 at {cgroup2} ({error.strerror}): "
                         "in a container, use --privileged --cgroupns=host")
    return lacks


def preflight():
    """What the provider needs of this machine; each lack is named with its cure."""
    root = os.geteuid() == 0
    lacks = lacks_of_namespaces() + (lacks_of_cgroups() if root else [])
    needed, what = ((5, 19), "id-mapped lower layers of overlays") if root else ((5, 12), "overlays of an ordinary user")
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) < needed:
        lacks.append(f"{what}: need Linux {needed[0]}.{needed[1]} or later; this is {os.uname().release}")
    if lacks:
        raise Lacking("this machine lacks:\n" + "\n".join(f"  - {each}" for each in lacks))
    say("machine", (f"root, cgroup2 with freeze at {world.cgroup2()}" if root else
                    f"user {os.geteuid()}, with namespaces of his own") + f", Linux {os.uname().release}")
