"""A pytest plugin: the suite imports gRPC and protobuf also for its other transports, which call nothing of them."""

import sys
from types import ModuleType


def absent_class(owner, name):
    """A class under every name, so that it can be imported, called, raised and extended."""
    if name.startswith("__"):
        raise AttributeError(name)
    found = AbsentClass(name, (Exception,), {})
    setattr(owner, name, found)
    return found


class AbsentClass(type):
    __getattr__ = absent_class


class AbsentModule(ModuleType):
    __path__ = []
    __getattr__ = absent_class


for absent in (
    "grpc",
    "google",
    "google.api",
    "google.rpc",
    "google.protobuf",
    "google.protobuf.descriptor",
    "google.protobuf.json_format",
    "specification.generated",
    "specification.generated.a2a_pb2",
    "specification.generated.a2a_pb2_grpc",
):
    sys.modules[absent] = AbsentModule(absent)
