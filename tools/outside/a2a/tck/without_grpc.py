"""A pytest plugin: the suite imports gRPC and protobuf also for its other transports, which call nothing of them."""

import sys
from types import ModuleType


class AnyName(type):
    """A class with a class under every name, so that it can be imported, called, raised and extended."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = AnyName(name, (Exception,), {})
        setattr(cls, name, found)
        return found


class Absent(ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = AnyName(name, (Exception,), {})
        setattr(self, name, found)
        return found


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
    sys.modules[absent] = Absent(absent)
