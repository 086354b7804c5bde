# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A kubelet's pod-resources API: a real gRPC server on a unix socket, with Google's own protobuf behind it."""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# The whole of what a kubelet sends, so that fields which nobody reads are there to be stepped over.
_MESSAGES = {
    "NUMANode": [("ID", 1, "int64")],
    "TopologyInfo": [("nodes", 1, "*NUMANode")],
    "ContainerMemory": [
        ("memory_type", 1, "string"),
        ("size", 2, "uint64"),
        ("topology", 3, "TopologyInfo"),
    ],
    "ContainerDevices": [
        ("resource_name", 1, "string"),
        ("device_ids", 2, "*string"),
        ("topology", 3, "TopologyInfo"),
    ],
    "CDIDevice": [("name", 1, "string")],
    "ClaimResource": [
        ("cdi_devices", 1, "*CDIDevice"),
        ("driver_name", 2, "string"),
        ("pool_name", 3, "string"),
        ("device_name", 4, "string"),
    ],
    "DynamicResource": [
        ("claim_name", 2, "string"),
        ("claim_namespace", 3, "string"),
        ("claim_resources", 4, "*ClaimResource"),
    ],
    "ContainerResources": [
        ("name", 1, "string"),
        ("devices", 2, "*ContainerDevices"),
        ("cpu_ids", 3, "*int64"),
        ("memory", 4, "*ContainerMemory"),
        ("dynamic_resources", 5, "*DynamicResource"),
    ],
    "PodResources": [
        ("name", 1, "string"),
        ("namespace", 2, "string"),
        ("containers", 3, "*ContainerResources"),
    ],
    "ListPodResourcesResponse": [("pod_resources", 1, "*PodResources")],
}


def _response_class() -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    plain = {"string": kinds.TYPE_STRING, "int64": kinds.TYPE_INT64, "uint64": kinds.TYPE_UINT64}
    file = descriptor_pb2.FileDescriptorProto(
        name="tests/pod_resources.proto", package="v1", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, written in fields:
            row = message.field.add(name=field_name, number=number)
            kind = written.removeprefix("*")
            row.label = kinds.LABEL_OPTIONAL if kind == written else kinds.LABEL_REPEATED
            if kind in plain:
                row.type = plain[kind]
            else:
                row.type, row.type_name = kinds.TYPE_MESSAGE, f".v1.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("v1.ListPodResourcesResponse")
    )


Response = _response_class()


@dataclass(frozen=True)
class Held:
    """A container and what it holds: device ids by resource, and devices of claims by driver."""

    pod: str
    devices: dict[str, Sequence[str]] = field(default_factory=dict)
    claims: dict[str, Sequence[str]] = field(default_factory=dict)
    namespace: str = "video"
    container: str = "main"


def answer_of(*containers: Held) -> bytes:
    """The answer of a kubelet with these containers, written by protobuf itself."""
    response = Response()
    pods: dict[tuple[str, str], Any] = {}
    for held in containers:
        name = (held.namespace, held.pod)
        if name not in pods:
            pods[name] = response.pod_resources.add(name=held.pod, namespace=held.namespace)
        container = pods[name].containers.add(name=held.container, cpu_ids=[0, 300, 70_000])
        memory = container.memory.add(memory_type="memory", size=2**40)
        memory.topology.nodes.add(ID=1)
        for resource, ids in held.devices.items():
            devices = container.devices.add(resource_name=resource, device_ids=ids)
            devices.topology.nodes.add(ID=1)
        for driver, names in held.claims.items():
            claim = container.dynamic_resources.add(claim_name="gpu", claim_namespace="video")
            for device in names:
                resource = claim.claim_resources.add(
                    driver_name=driver, pool_name="node-1", device_name=device
                )
                resource.cdi_devices.add(name=f"k8s.{driver}/claim=1-{device}")
    return bytes(response.SerializeToString())


class FakeKubelet:
    """Started and stopped like a kubelet: a stop takes the socket away, a start makes a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answer = answer_of()
        self.status: grpc.StatusCode | None = None
        self.words = ""
        self.calls = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self._server: Any = None

    def holds(self, *containers: Held) -> Self:
        self.answer = answer_of(*containers)
        return self

    def start(self) -> Self:
        self._server = grpc.server(
            ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)]
        )
        handler = grpc.unary_unary_rpc_method_handler(self._list)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),)
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._server.add_insecure_port(f"unix:{self.path}")
        self._server.start()
        return self

    def _list(self, request: bytes, context: Any) -> bytes:
        self.calls += 1
        assert request == b""
        self.go_on.wait()
        if self.status is not None:
            context.abort(self.status, self.words)
        return self.answer

    def stop(self) -> None:
        self.go_on.set()
        if self._server is not None:
            self._server.stop(0).wait()
            self._server = None
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


@contextmanager
def listening(path: Path, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """Something on the socket that is no kubelet: `serve` is given each connection."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(path))
    door.listen()

    def accept() -> None:
        while True:
            try:
                connection, _ = door.accept()
            except OSError:
                return
            with connection:
                try:
                    serve(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield
    finally:
        # Wakes the accepting thread, which closing alone does not.
        door.shutdown(socket.SHUT_RDWR)
        door.close()
        thread.join(10)
        path.unlink()
