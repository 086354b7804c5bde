# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The whole way, from the driver's library to the scraped page, in a process of its own.

pynvml is unpatched; the library behind it is the fake one of tests/fake_nvml.
"""

import gzip
import json
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import CALL_DEADLINE_SECONDS, StartDaemon
from tests.daemon import (
    NOT_GIVEN_BACK,
    Daemon,
    Page,
    all_ok,
    daemon,
    seconds_to_end,
    wait_until,
)
from tests.fake_nvml import FakeNode

STALE_AFTER_SECONDS = 5.0
"""The least age at which a value is withdrawn (three intervals, but not under 5 s)."""


def test_values_are_the_drivers_in_base_units(node: FakeNode, start: StartDaemon) -> None:
    node.gpus[2].set(
        utilization_gpu_percent=97,
        utilization_memory_percent=61,
        power_usage_milliwatts=612_345,
        energy_millijoules=123_456_789,
        temperature_celsius=62,
        clock_sm_mhz=1980,
        clock_memory_mhz=2619,
        decoder_utilization_percent=18,
    )
    page = start().wait_for(all_ok)

    gpu = {"gpu": "2", "uuid": node.gpus[2].uuid}
    assert page.value("veo_gpu_utilization_ratio", **gpu) == 0.97
    assert page.value("veo_gpu_memory_copy_utilization_ratio", **gpu) == 0.61
    assert page.value("veo_gpu_power_watts", **gpu) == 612.345
    assert page.value("veo_gpu_energy_joules_total", **gpu) == 123_456.789
    assert page.value("veo_gpu_temperature_celsius", **gpu) == 62
    assert page.value("veo_gpu_sm_clock_hertz", **gpu) == 1.98e9
    assert page.value("veo_gpu_memory_clock_hertz", **gpu) == 2.619e9
    assert page.value("veo_gpu_decoder_utilization_ratio", **gpu) == 0.18
    total = page.value("veo_gpu_memory_total_bytes", **gpu)
    parts = [
        page.value(f"veo_gpu_memory_{part}_bytes", **gpu) for part in ("used", "free", "reserved")
    ]
    assert total == node.gpus[2].memory_total_bytes
    assert sum(part for part in parts if part is not None) == total
    assert page.value("veo_gpu_info", pci_bus_id=node.gpus[2].sysfs_address, **gpu) == 1
    assert page.value("veo_gpus_expected") == 8
    assert page.value("veo_gpus_visible") == 8
    assert page.value("veo_gpus_usable") == 8
    assert page.value("veo_exporter_simulated") == 0


def test_first_data_is_there_soon_after_the_start(start: StartDaemon) -> None:
    running = start()
    page = running.wait_for(lambda page: bool(page.values("veo_gpu_power_watts")))
    assert len(page.values("veo_gpu_power_watts")) == 8


def test_peaks_between_scrapes_are_kept(node: FakeNode, start: StartDaemon) -> None:
    node.gpus[0].set(power_usage_milliwatts=100_000)
    running = start()
    running.wait_for(all_ok)

    node.gpus[0].set(power_usage_milliwatts=700_000)
    running.wait_for(lambda page: page.value("veo_gpu_power_watts", gpu="0") == 700)
    node.gpus[0].set(power_usage_milliwatts=100_000)
    page = running.wait_for(lambda page: page.value("veo_gpu_power_watts", gpu="0") == 100)

    assert page.value("veo_gpu_power_peak_watts", gpu="0") == 700
    assert page.value("veo_gpu_power_min_watts", gpu="0") == 100
    mean = page.value("veo_gpu_power_mean_watts", gpu="0")
    assert mean is not None
    assert 100 < mean < 700
    # The window is 5 s long here, and then the peak is history.
    running.wait_for(lambda page: page.value("veo_gpu_power_peak_watts", gpu="0") == 100)


def test_throttling_is_counted_in_seconds_by_reason(node: FakeNode, start: StartDaemon) -> None:
    running = start()
    page = running.wait_for(all_ok)
    reason = {"gpu": "5", "reason": "hw_thermal_slowdown"}
    assert page.value("veo_gpu_throttle_seconds_total", **reason) == 0

    began = time.monotonic()
    node.gpus[5].set(clock_event_reasons=0x40)
    page = running.wait_for(
        lambda page: (page.value("veo_gpu_throttle_seconds_total", **reason) or 0) > 3
    )
    counted = page.value("veo_gpu_throttle_seconds_total", **reason)
    assert counted is not None
    # The step up to the first sample with the reason counts whole; one of more than a second does not.
    assert counted <= time.monotonic() - began + 1
    assert page.value("veo_gpu_throttle_seconds_total", gpu="5", reason="sw_power_cap") == 0
    assert page.value("veo_gpu_throttle_seconds_total", gpu="4", reason="hw_thermal_slowdown") == 0


def test_a_lost_gpu_stays_as_lost_without_values_and_comes_back(
    node: FakeNode, start: StartDaemon
) -> None:
    running = start()
    running.wait_for(all_ok)

    node.gpus[3].lose()
    page = running.wait_for(lambda page: page.states()["3"] == "lost")

    gone = node.gpus[3]
    assert page.value("veo_gpu_nvml_return_code", uuid=gone.uuid) == 15
    assert (
        page.value("veo_gpu_state", uuid=gone.uuid, pci_bus_id=gone.sysfs_address, state="ok") == 0
    )
    assert [state for gpu, state in page.states().items() if gpu != "3"] == ["ok"] * 7
    assert page.value("veo_gpus_expected") == 8
    assert page.value("veo_gpus_usable") == 7
    values = {name for (name, labels) in page.series if ("uuid", gone.uuid) in labels}
    assert values == {
        "veo_gpu_state",
        "veo_gpu_info",
        "veo_gpu_board_info",
        "veo_gpu_nvml_return_code",
        "veo_gpu_nvml_errors_total",
        "veo_gpu_implausible_readings_total",
        "veo_gpu_capability_missing",
        "veo_gpu_xid_errors_total",
    }
    assert len(page.values("veo_gpu_power_watts")) == 7
    status, body = running.get("/-/ready")
    assert status == 503
    assert f"GPU 3 ({gone.uuid}): lost" in body.decode()
    assert running.get("/-/healthy")[0] == 200

    node.gpus[3].recover()
    page = running.wait_for(all_ok)
    assert page.value("veo_gpu_power_watts", gpu="3") is not None
    # Eight at the start, and two since.
    changes = running.told("GPU state changed", 10)
    assert [line["state"] for line in changes if line["gpu"] == 3] == ["ok", "lost", "ok"]


def test_a_gpu_that_wants_a_reset_says_so(node: FakeNode, start: StartDaemon) -> None:
    running = start()
    running.wait_for(all_ok)
    node.gpus[6].require_reset()
    page = running.wait_for(lambda page: page.states()["6"] == "reset_required")
    assert page.value("veo_gpu_nvml_return_code", gpu="6") == 16


def test_a_hung_call_costs_its_gpu_alone_and_its_values_by_the_rule(
    node: FakeNode, start: StartDaemon
) -> None:
    running = start()
    running.wait_for(all_ok)

    began = time.monotonic()
    node.gpus[3].hang("nvmlDeviceGetPowerUsage")
    page = running.wait_for(lambda page: page.states()["3"] == "hung")
    # Young enough to be true still, unless it took us so long to look: withdrawn by age and not before.
    young = time.monotonic() - began < STALE_AFTER_SECONDS - 1
    assert page.value("veo_gpu_temperature_celsius", gpu="3") is not None or not young
    in_flight = page.value(
        "veo_gpu_nvml_call_in_flight_seconds", gpu="3", function="nvmlDeviceGetPowerUsage"
    )
    assert in_flight is not None
    assert in_flight >= CALL_DEADLINE_SECONDS

    node.gpus[0].set(power_usage_milliwatts=333_000)
    running.wait_for(lambda page: page.value("veo_gpu_power_watts", gpu="0") == 333)
    page = running.wait_for(lambda page: page.value("veo_gpu_power_watts", gpu="3") is None)
    assert time.monotonic() - began > STALE_AFTER_SECONDS - 1
    assert len(page.values("veo_gpu_power_watts")) == 7
    assert page.states()["3"] == "hung"
    assert [state for gpu, state in page.states().items() if gpu != "3"] == ["ok"] * 7

    node.gpus[3].release("nvmlDeviceGetPowerUsage")
    page = running.wait_for(all_ok)
    assert page.value("veo_gpu_power_watts", gpu="3") is not None
    assert page.values("veo_gpu_nvml_call_in_flight_seconds") == []
    assert (
        page.value(
            "veo_gpu_nvml_errors_total", gpu="3", function="nvmlDeviceGetPowerUsage", code="OVERDUE"
        )
        == 1
    )


def test_a_process_that_was_stopped_blames_no_gpu(node: FakeNode, start: StartDaemon) -> None:
    daemon = start()
    daemon.wait_for(all_ok)
    # So that it is stopped in the middle of a call, whenever that is.
    node.gpus[3].delay("nvmlDeviceGetTemperature", 0.08)
    daemon.wait_for(
        lambda page: (
            (
                page.value("veo_gpu_nvml_call_seconds_total", function="nvmlDeviceGetTemperature")
                or 0
            )
            > 0.5
        )
    )
    daemon.process.send_signal(signal.SIGSTOP)
    # Longer than a call may take.
    time.sleep(2 * CALL_DEADLINE_SECONDS)
    daemon.process.send_signal(signal.SIGCONT)
    page = daemon.wait_for(
        lambda page: (
            (
                page.value("veo_gpu_nvml_call_seconds_total", function="nvmlDeviceGetTemperature")
                or 0
            )
            > 2 * CALL_DEADLINE_SECONDS + 0.5
            and all_ok(page)
        )
    )
    assert daemon.told("stood still; no call is blamed for that")
    assert not daemon.events("NVML call is over its deadline; its thread is left behind")
    assert page.values("veo_gpu_nvml_call_in_flight_seconds") == []
    # The next one that hangs is noticed as ever.
    node.gpus[3].hang("nvmlDeviceGetTemperature")
    daemon.wait_for(lambda page: page.states()["3"] == "hung")
    node.gpus[3].release("nvmlDeviceGetTemperature")


def test_a_second_hung_call_means_the_driver_and_nothing_more_is_called(
    node: FakeNode, start: StartDaemon
) -> None:
    running = start()
    running.wait_for(all_ok)
    node.gpus[3].hang()
    running.wait_for(lambda page: page.states()["3"] == "hung")

    node.gpus[5].hang()
    page = running.wait_for(lambda page: list(page.states().values()) == ["hung"] * 8)
    assert page.value("veo_gpus_usable") == 0
    page = running.wait_for(lambda page: not page.values("veo_gpu_power_watts"))
    assert running.get("/-/healthy")[0] == 200
    assert len(running.told("NVML call is over its deadline; its thread is left behind", 2)) == 2

    assert running.end() < 2

    assert running.process.returncode == 0


def test_all_are_well_again_once_the_hung_calls_return(node: FakeNode, start: StartDaemon) -> None:
    running = start()
    running.wait_for(all_ok)
    node.gpus[3].hang()
    running.wait_for(lambda page: page.states()["3"] == "hung")
    node.gpus[5].hang()
    running.wait_for(lambda page: list(page.states().values()) == ["hung"] * 8)

    node.gpus[5].release()
    page = running.wait_for(lambda page: list(page.states().values()).count("ok") == 7)
    assert page.states()["3"] == "hung"
    node.gpus[3].release()
    running.wait_for(all_ok)


def test_many_scrapes_are_answered_while_a_gpu_hangs(node: FakeNode, start: StartDaemon) -> None:
    running = start()
    running.wait_for(all_ok)
    node.gpus[1].hang()
    running.wait_for(lambda page: page.states()["1"] == "hung")
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(running.get("/metrics")[0]))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 20
    assert node.gpus[1].uuid in running.scrape().text


def test_an_unsupported_field_is_absent_and_has_a_capability_row(
    node: FakeNode, start: StartDaemon
) -> None:
    node.gpus[4].unsupport("nvmlDeviceGetEncoderUtilization")
    node.gpus[4].fail("nvmlDeviceGetPowerUsage", 4)
    page = start().wait_for(all_ok)

    assert page.value("veo_gpu_encoder_utilization_ratio", gpu="4") is None
    assert page.value("veo_gpu_power_watts", gpu="4") is None
    capability = "veo_gpu_capability_missing"
    assert (
        page.value(
            capability, gpu="4", signal="veo_gpu_encoder_utilization_ratio", why="not_supported"
        )
        == 1
    )
    assert page.value(capability, gpu="4", signal="veo_gpu_power_watts", why="not_permitted") == 1
    # What a board of this kind lacks is the same on both.
    lacking = {
        gpu: {
            (dict(labels)["signal"], dict(labels)["why"])
            for name, labels in page.series
            if name == capability and ("gpu", gpu) in labels
        }
        for gpu in ("4", "5")
    }
    assert lacking["4"] - lacking["5"] == {("veo_gpu_power_watts", "not_permitted")}
    assert page.value("veo_gpu_power_watts", gpu="5") is not None


@pytest.mark.parametrize("code", [2, 6, 10, 17, 21, 27, 999, 12345])
def test_nothing_is_ever_zero_because_it_failed(
    node: FakeNode, start: StartDaemon, code: int
) -> None:
    for function in (
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetMemoryInfo",
    ):
        node.gpus[0].fail(function, code)
    page = start().wait_for(all_ok)

    for metric in (
        "veo_gpu_utilization_ratio",
        "veo_gpu_utilization_peak_ratio",
        "veo_gpu_memory_copy_utilization_ratio",
        "veo_gpu_temperature_celsius",
        "veo_gpu_memory_used_bytes",
        "veo_gpu_memory_total_bytes",
    ):
        assert page.value(metric, gpu="0") is None, metric
        assert page.value(metric, gpu="1") is not None, metric
    assert page.value("veo_gpu_power_watts", gpu="0") is not None


def test_it_starts_without_a_driver_and_finds_it_later(node: FakeNode, start: StartDaemon) -> None:
    node.unload_driver()
    running = start()
    page = running.wait_for(lambda page: page.value("veo_gpus_visible") == 0)
    assert page.values("veo_gpu_power_watts") == []
    wait_until(lambda: b"not loaded" in running.get("/-/ready")[1])
    assert running.get("/-/ready")[0] == 503

    node.load_driver()
    page = running.wait_for(all_ok)
    assert page.value("veo_gpus_visible") == 8
    assert running.get("/-/ready")[0] == 200


def test_it_starts_without_the_library(tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci").mkdir(parents=True)
    with daemon(["serve", f"--gpu.sysfs-root={tmp_path / 'sys'}"]) as running:
        wait_until(lambda: b"libnvidia-ml.so.1 was not found" in running.get("/-/ready")[1])
        page = running.scrape()
        assert page.value("veo_gpus_expected") == 0
        assert page.value("veo_gpus_usable") == 0
        assert page.value("veo_gpu_nvml_errors_total", code="LIBRARY_NOT_FOUND") is not None
        assert running.end() < 2


def test_gpus_are_known_again_by_uuid_when_the_driver_comes_back_in_another_order(
    node: FakeNode, start: StartDaemon
) -> None:
    for number, gpu in enumerate(node.gpus):
        gpu.set(power_usage_milliwatts=(100 + number) * 1000)
    running = start()
    running.wait_for(all_ok)

    node.unload_driver()
    page = running.wait_for(lambda page: set(page.states().values()) == {"unknown"})
    assert page.values("veo_gpu_power_watts") == []
    assert page.value("veo_gpus_usable") == 0
    node.load_driver(order=[7, 6, 5, 4, 3, 2, 1, 0])
    page = running.wait_for(all_ok)

    for number, gpu in enumerate(node.gpus):
        assert page.value("veo_gpu_power_watts", uuid=gpu.uuid) == 100 + number
        assert page.value("veo_gpu_power_watts", uuid=gpu.uuid, gpu=str(7 - number)) == 100 + number
    assert len(page.values("veo_gpu_power_watts")) == 8


def test_a_gpu_that_nvml_does_not_list_is_hidden(node: FakeNode, start: StartDaemon) -> None:
    node.gpus[7].hide()
    running = start()
    page = running.wait_for(lambda page: page.value("veo_gpus_usable") == 7)
    assert page.value("veo_gpus_expected") == 8
    assert page.value("veo_gpus_visible") == 7
    assert page.value("veo_gpu_state", pci_bus_id=node.gpus[7].sysfs_address, state="hidden") == 1


def test_a_gpu_lost_before_the_start_has_its_pci_address(
    node: FakeNode, start: StartDaemon
) -> None:
    node.gpus[2].lose()
    running = start()
    page = running.wait_for(lambda page: page.value("veo_gpus_usable") == 7)
    assert page.value("veo_gpu_state", pci_bus_id=node.gpus[2].sysfs_address, state="lost") == 1
    assert len(page.states()) == 8


def test_values_that_cannot_be_true_are_left_out_and_counted(
    node: FakeNode, start: StartDaemon
) -> None:
    node.gpus[0].set(utilization_gpu_percent=101, temperature_celsius=255)
    page = start().wait_for(all_ok)
    assert page.value("veo_gpu_utilization_ratio", gpu="0") is None
    assert page.value("veo_gpu_temperature_celsius", gpu="0") is None
    assert page.value("veo_gpu_memory_copy_utilization_ratio", gpu="0") is not None
    counted = page.value("veo_gpu_implausible_readings_total", gpu="0")
    assert counted is not None
    assert counted >= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_gives_the_session_back(
    start: StartDaemon, number: signal.Signals
) -> None:
    # Once more if the machine stood still for as long as the driver has to take its session back.
    for _ in range(2):
        running = start()
        running.wait_for(all_ok)
        assert running.end(number) < 2
        assert running.process.returncode == 0
        if not running.events(NOT_GIVEN_BACK):
            break
    assert running.log[-1]["event"] == "ending"


def test_a_client_that_never_finishes_does_not_keep_it(start: StartDaemon) -> None:
    import socket

    running = start()
    host, _, port = running.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")
        assert running.end() < 2


def test_sighup_takes_a_good_configuration_and_refuses_a_bad_one(
    node: FakeNode, start: StartDaemon, tmp_path: Path
) -> None:
    config = tmp_path / "veo.yaml"
    config.write_text("gpu: {expected_count: 8}\n")
    running = start(f"--config.file={config}")
    running.wait_for(all_ok)

    config.write_text("gpu: {expected_count: 9}\n")
    running.process.send_signal(signal.SIGHUP)
    page = running.wait_for(lambda page: page.value("veo_gpus_expected") == 9)
    assert page.value("veo_exporter_config_last_reload_successful") == 1

    config.write_text("gpu: {expected_counts: 10}\n")
    running.process.send_signal(signal.SIGHUP)
    page = running.wait_for(
        lambda page: page.value("veo_exporter_config_last_reload_successful") == 0
    )
    assert page.value("veo_gpus_expected") == 9
    [refusal] = running.told("configuration refused, the old one stays")
    assert refusal["faults"] == [
        f"{config}: gpu.expected_counts: no such setting; the nearest setting is gpu.expected_count"
    ]

    config.write_text("gpu: {expected_count: 7}\n")
    running.process.send_signal(signal.SIGHUP)
    page = running.wait_for(lambda page: page.value("veo_gpus_expected") == 7)
    assert page.value("veo_exporter_config_last_reload_successful") == 1


def test_openmetrics_and_gzip_by_negotiation(start: StartDaemon) -> None:
    running = start()
    running.wait_for(all_ok)
    status, body = running.get(
        "/metrics",
        {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"},
    )
    assert status == 200
    assert gzip.decompress(body).endswith(b"# EOF\n")


def test_a_quiet_node_logs_nothing_after_the_start(
    node: FakeNode, start: StartDaemon, tmp_path: Path
) -> None:
    (tmp_path / "kern.log").touch()
    running = start(f"--kernel.log-path={tmp_path / 'kern.log'}")
    running.wait_for(all_ok)
    # The last words of the start.
    running.told("GPU state changed", 8)
    running.told("the kernel log is read")
    before = len(running.log)
    node.gpus[0].set(power_usage_milliwatts=111_000)
    running.wait_for(lambda page: page.value("veo_gpu_power_watts", gpu="0") == 111)
    node.gpus[0].set(power_usage_milliwatts=222_000)
    running.wait_for(lambda page: page.value("veo_gpu_power_watts", gpu="0") == 222)
    assert running.log[before:] == []


def test_a_refused_configuration_ends_it_before_it_serves(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    config = tmp_path / "veo.yaml"
    config.write_text("gpu: {fast_intervall: 1s, full_interval: 100MHz}\n")
    run = subprocess.run(
        [sys.executable, "-m", "veo_exporter", "serve", f"--config.file={config}"],
        env={**os.environ, "VEO_GPU__WINDOWS": "30s"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.splitlines() == [
        (
            "veo-exporter serve: environment variable VEO_GPU__WINDOWS: no such setting; "
            "the nearest setting is VEO_GPU__WINDOW"
        ),
        (
            f"{config}: gpu.full_interval: '100MHz' is not a duration: "
            "write a number with ms, s, m, h or d, such as 100ms or 1m30s"
        ),
        f"{config}: gpu.fast_intervall: no such setting; the nearest setting is gpu.fast_interval",
    ]


def test_the_demo_says_that_it_is_simulated() -> None:
    with daemon(["demo"]) as running:
        page = running.wait_for(all_ok)
        assert page.value("veo_exporter_simulated") == 1
        names = {dict(labels)["name"] for name, labels in page.series if name == "veo_gpu_info"}
        assert names == {"Simulated NVIDIA H100 80GB HBM3"}
        assert b"Simulated: every figure here is made up." in running.get("/")[1]
        assert running.told("simulated: every figure is made up")
        assert running.end(signal.SIGINT) < 2


def test_log_lines_are_json_objects(start: StartDaemon) -> None:
    running: Daemon = start()
    running.wait_for(all_ok)
    assert running.events("no JSON") == []
    assert all({"event", "level", "timestamp"} <= entry.keys() for entry in running.log)
    assert json.dumps(running.log)


def test_a_full_pipe_behind_the_log_stops_neither_the_truth_nor_the_end(
    node: FakeNode, tmp_path: Path
) -> None:
    import os
    import subprocess
    import sys

    from tests.conftest import QUICK

    read, write = os.pipe()
    # Nobody ever reads, and the pipe is full before the first line.
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write, True)
    port_file = tmp_path / "veo.sock"
    command = [sys.executable, "-m", "veo_exporter", "serve", *QUICK]
    command += ["--web.listen-address=127.0.0.1:0", f"--web.unix-socket={port_file}"]
    command += [f"--gpu.sysfs-root={tmp_path / 'sys'}"]
    with subprocess.Popen(
        command, env={**os.environ, **node.environment()}, stderr=write
    ) as process:
        try:
            wait_until(lambda: len(states_over(port_file)) == 8)
            node.gpus[3].lose()
            wait_until(lambda: states_over(port_file).get("3") == "lost")
            node.gpus[5].lose()
            wait_until(lambda: states_over(port_file).get("5") == "lost")
            assert seconds_to_end(process, signal.SIGTERM) < 2
            assert process.returncode == 0
        finally:
            process.kill()
            os.close(read)
            os.close(write)


def states_over(path: Path) -> dict[str, str]:
    import socket

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(path))
            client.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    except OSError:
        return {}
    return Page(answer.partition(b"\r\n\r\n")[2].decode()).states()


def test_the_driver_comes_back_in_another_order_while_a_call_is_stuck(
    node: FakeNode, start: StartDaemon
) -> None:
    running = start()
    running.wait_for(all_ok)
    stuck = node.gpus[2]
    stuck.hang("nvmlDeviceGetPowerUsage")
    running.wait_for(lambda page: page.states()["2"] == "hung")
    node.unload_driver()
    running.wait_for(lambda page: page.value("veo_gpus_visible") == 0)
    node.load_driver(order=[7, 6, 5, 4, 3, 2, 1, 0])

    # Seven are well again at their new places, and nothing hangs but what hung before.
    page = running.wait_for(lambda page: page.value("veo_gpus_usable") == 7)
    assert page.value("veo_gpu_state", uuid=stuck.uuid, state="hung") == 1
    for number, gpu in enumerate(node.gpus):
        if gpu is not stuck:
            assert page.value("veo_gpu_power_watts", uuid=gpu.uuid, gpu=str(7 - number)) is not None
    stuck.release("nvmlDeviceGetPowerUsage")
    page = running.wait_for(all_ok)
    assert page.value("veo_gpu_state", uuid=stuck.uuid, gpu="5", state="ok") == 1


def test_gpus_stay_hung_after_a_locked_driver_until_they_answer(
    node: FakeNode, start: StartDaemon
) -> None:
    running = start()
    running.wait_for(all_ok)
    node.gpus[3].hang()
    running.wait_for(lambda page: page.states()["3"] == "hung")
    node.gpus[5].hang()
    running.wait_for(lambda page: list(page.states().values()) == ["hung"] * 8)
    node.gpus[5].release()
    node.gpus[3].release()
    running.wait_for(all_ok)
    # Eight at the start, eight that hung, eight that are well again.
    assert {line["state"] for line in running.told("GPU state changed", 24)} == {"ok", "hung"}


def test_a_count_that_fails_is_withdrawn(node: FakeNode, start: StartDaemon) -> None:
    running = start()
    running.wait_for(all_ok)
    node.fail("nvmlDeviceGetCount", 999)
    page = running.wait_for(lambda page: page.value("veo_gpus_visible") is None)
    assert page.value("veo_gpus_usable") == 8
    status, body = running.get("/-/ready")
    assert status == 503
    assert b"veo_gpus_visible withdrawn" in body
