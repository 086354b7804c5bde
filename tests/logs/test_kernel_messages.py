# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What kernel messages say: the forms that drivers and kernels of many years write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.logs.kernel_messages import (
    Message,
    OomKill,
    OomScope,
    OomVictim,
    OomVictims,
    SwitchXidMessage,
    XidMessage,
    read_message,
)

SIZES = "total-vm:41943040kB, anon-rss:33554432kB, file-rss:0kB, shmem-rss:12kB"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.",
            XidMessage(
                pci_bus_id="0000:3b:00.0",
                code=79,
                pid=4711,
                process="python3",
                detail="GPU has fallen off the bus.",
            ),
        ),
        (
            "NVRM: Xid (PCI:0000:3B:00): 79, GPU has fallen off the bus.",
            XidMessage(pci_bus_id="0000:3b:00.0", code=79, detail="GPU has fallen off the bus."),
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, pid=7062, Contained: SM (0x1).",
            XidMessage(
                pci_bus_id="0000:3b:00.0",
                code=94,
                gpu_instance=5,
                pid=7062,
                detail="Contained: SM (0x1).",
            ),
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 13, pid=7, name=a b, Graphics Exception",
            XidMessage(
                pci_bus_id="0000:3b:00.0",
                code=13,
                gpu_instance=5,
                compute_instance=0,
                pid=7,
                process="a b",
                detail="Graphics Exception",
            ),
        ),
        (
            "NVRM: Xid (0000:03:00): 13, 0003 00000000 0000a0c0",
            XidMessage(pci_bus_id="0000:03:00.0", code=13, detail="0003 00000000 0000a0c0"),
        ),
        ("NVRM: Xid (0000:03): 14, x", XidMessage(pci_bus_id="0000:03:00.0", code=14, detail="x")),
        (
            "NVRM: Xid (PCI:0000:3b:00): 31, pid='<unknown>', name=<unknown>, Ch 00000010",
            XidMessage(pci_bus_id="0000:3b:00.0", code=31, detail="Ch 00000010"),
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 45, pid=9, name=x, Ch 00000008 caused by previous Xid 94",
            XidMessage(
                pci_bus_id="0000:3b:00.0",
                code=45,
                pid=9,
                process="x",
                detail="Ch 00000008 caused by previous Xid 94",
            ),
        ),
        (
            (
                "NVRM: Xid (PCI:00010000:C1:00): 154, GPU recovery action changed from 0x0 (None) to "
                "0x2 (Node Reboot Required)"
            ),
            XidMessage(
                pci_bus_id="10000:c1:00.0",
                code=154,
                detail="GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
            ),
        ),
        ("NVRM: Xid (PCI:0000:3b:00): 63", XidMessage(pci_bus_id="0000:3b:00.0", code=63)),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 31",
            SwitchXidMessage(pci_bus_id="0000:c1:00.0", code=12028),
        ),
        (
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 00001, x",
            SwitchXidMessage(pci_bus_id="0000:c1:00.0", code=1),
        ),
        # Kernel 5 and 6.
        (
            (
                f"Out of memory: Killed process 4242 (veo-engine) {SIZES}, UID:1000 pgtables:81920kB "
                "oom_score_adj:0"
            ),
            OomKill(pid=4242, process="veo-engine", scope=OomScope.GLOBAL),
        ),
        (
            f"Memory cgroup out of memory: Killed process 4242 (veo-engine) {SIZES}, UID:0",
            OomKill(pid=4242, process="veo-engine", scope=OomScope.MEMORY_CGROUP),
        ),
        (
            f"Out of memory (oom_kill_allocating_task): Killed process 7 (a) {SIZES}",
            OomKill(pid=7, process="a", scope=OomScope.GLOBAL),
        ),
        # Kernel 3 and 4: two lines.
        (
            "Out of memory: Kill process 4242 (python3) score 912 or sacrifice child",
            OomVictim(pid=4242, scope=OomScope.GLOBAL),
        ),
        (
            "Memory cgroup out of memory: Kill process 4242 (a (b) c) score 1000 or sacrifice child",
            OomVictim(pid=4242, scope=OomScope.MEMORY_CGROUP),
        ),
        (
            "Killed process 4242 (python3) total-vm:1kB, anon-rss:1kB, file-rss:0kB",
            OomKill(pid=4242, process="python3", scope=OomScope.UNKNOWN),
        ),
        # A name with brackets and spaces in it, and the distributions' UID before or after it.
        (
            f"Out of memory: Killed process 5 (a) b (c) {SIZES}",
            OomKill(pid=5, process="a) b (c", scope=OomScope.GLOBAL),
        ),
        (
            f"Killed process 5, UID 48, (httpd) {SIZES}",
            OomKill(pid=5, process="httpd", scope=OomScope.UNKNOWN),
        ),
        (
            f"Killed process 5 (httpd), UID 48, {SIZES}",
            OomKill(pid=5, process="httpd", scope=OomScope.UNKNOWN),
        ),
        (
            (
                "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-1,mems_allowed=0-1,"
                "oom_memcg=/kubepods/pod1/c,task_memcg=/kubepods/pod1/c,task=python3,pid=4242,uid=0"
            ),
            OomVictim(pid=4242, scope=OomScope.MEMORY_CGROUP, cgroup="/kubepods/pod1/c"),
        ),
        (
            (
                "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
                "task_memcg=/system.slice/x.service,task=a,b,pid=9,uid=33"
            ),
            OomVictim(pid=9, scope=OomScope.GLOBAL, cgroup="/system.slice/x.service"),
        ),
        (
            (
                "oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0,cpuset=x,mems_allowed=0,global_oom,"
                "task_memcg=/,task=a,pid=9,uid=33"
            ),
            OomVictim(pid=9, scope=OomScope.NUMA, cgroup="/"),
        ),
    ],
)
def test_messages(text: str, said: Message) -> None:
    assert read_message(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "usb 1-1: new high-speed USB device",
        # The same fault a second time, as a line about the device.
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:3b:00): x",
        "NVRM: Xid (PCI:zzzz:3b:00): 79, x",
        "NVRM: Xid (PCI:0000:3b:00): 12345678, more digits than any Xid",
        # Who caused it, and what was won by it: neither is a kill.
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "oom_reaper: reaped process 4242 (python3), now anon-rss:0kB, file-rss:0kB",
        "Out of memory and no killable processes...",
        # A process whose name tells lies.
        "foo[1]: segfault at 0 NVRM: Xid (PCI:0000:3b:00): 79, x",
    ],
)
def test_what_is_not_our_affair(text: str) -> None:
    assert read_message(text) is None


PIECES = st.sampled_from(
    [
        "NVRM: Xid (PCI:",
        "0000:3b:00",
        "): ",
        "79",
        ", pid=",
        "Killed process ",
        "(",
        ")",
        " total-vm:",
        "Out of memory: ",
        "oom-kill:constraint=CONSTRAINT_",
        "task_memcg=",
        ",task=",
        ",pid=",
        "٣",
    ]
)


@given(
    st.one_of(
        st.text(max_size=300), st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join)
    )
)
def test_any_text_gives_a_message_or_none(text: str) -> None:
    assert isinstance(read_message(text), Message | None)


@given(
    domain=st.integers(0, 0xFFFFFFFF),
    bus=st.integers(0, 255),
    device=st.integers(0, 31),
    code=st.integers(0, 999_999),
    detail=st.text(st.characters(exclude_characters="\n\r"), max_size=50),
)
def test_every_xid_is_found_again(
    domain: int, bus: int, device: int, code: int, detail: str
) -> None:
    message = read_message(f"NVRM: Xid (PCI:{domain:04x}:{bus:02x}:{device:02x}): {code}, {detail}")
    assert isinstance(message, XidMessage)
    assert message.pci_bus_id == f"{domain:04x}:{bus:02x}:{device:02x}.0"
    assert message.code == code


@given(st.text(st.characters(exclude_characters="\n\r"), max_size=15))
def test_a_process_may_have_any_name(name: str) -> None:
    message = read_message(f"Out of memory: Killed process 7 ({name}) {SIZES}")
    assert message == OomKill(pid=7, process=name, scope=OomScope.GLOBAL)


def test_a_kill_gets_what_was_said_of_its_victim() -> None:
    victims = OomVictims()
    victims.remember(OomVictim(pid=1, scope=OomScope.MEMORY_CGROUP, cgroup="/a"))
    # Kernel 4.19 and 4.20 wrote both; the second knows no control group.
    victims.remember(OomVictim(pid=1, scope=OomScope.MEMORY_CGROUP))
    kill = OomKill(pid=1, process="x", scope=OomScope.UNKNOWN)
    assert victims.complete(kill) == OomKill(
        pid=1, process="x", scope=OomScope.MEMORY_CGROUP, cgroup="/a"
    )
    assert victims.complete(kill) == kill, "a pid is given away again"


def test_numa_is_known_from_the_line_before() -> None:
    victims = OomVictims()
    victims.remember(OomVictim(pid=1, scope=OomScope.NUMA))
    kill = OomKill(pid=1, process="x", scope=OomScope.GLOBAL)
    assert victims.complete(kill).scope is OomScope.NUMA


def test_victims_are_not_remembered_for_ever() -> None:
    victims = OomVictims()
    for pid in range(65):
        victims.remember(OomVictim(pid=pid, scope=OomScope.NUMA))
    kill = OomKill(pid=0, process="x", scope=OomScope.GLOBAL)
    assert victims.complete(kill).scope is OomScope.GLOBAL
