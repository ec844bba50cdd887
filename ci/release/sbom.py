"""The bill of materials (CycloneDX) of a wheel, read off the wheel itself: what its libraries hold and ask for, and what
its metadata requires. The same wheel gives the same text."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from datetime import datetime, timezone

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

from . import elf
from .repack import EARLIEST
from .wheel import Wheel

# What a compiler puts into a library, by a mark that it leaves there.
_CXX_RUNTIMES = {
    b"libc++abi: ": ("LLVM libc++, libc++abi, libunwind", "Apache-2.0 WITH LLVM-exception"),
    b"terminate called after throwing": ("GCC libstdc++, libgcc", "GPL-3.0-or-later WITH GCC-exception-3.1"),
}
# What a device compiler puts into the code objects, by the plugin's device.
_DEVICE_LIBRARIES = {
    "cuda": ("CUDA Toolkit headers and libdevice", "LicenseRef-NVIDIA-CUDA-Toolkit-EULA"),
    "rocm": ("ROCm device libraries", "NCSA"),
}
_TRITON = ("Triton", "MIT")  # what compiled the kernels of a bundle, and whose device library is in them
_GLIBC = ("GNU C Library", "LGPL-2.1-or-later")
_PYTHON = {"apache-tvm-ffi": "Apache-2.0", "click": "BSD-3-Clause", "clover-ops": "Apache-2.0"}


def member(wheel: Wheel) -> str:
    """Where PEP 770 keeps it."""
    return f"{wheel.dist_info}/sboms/{wheel.project}.cdx.json"


def components(wheel: Wheel, system: Iterable[str]) -> list[Component]:
    """`system` are the sonames of the C library."""
    found: dict[str, Component] = {}

    def add(name: str, licence: str, linkage: str, where: str, **more) -> None:
        new = Component(
            name=name, type=ComponentType.LIBRARY, bom_ref=name, licenses=[LicenseExpression(licence)], **more
        )
        component = found.setdefault(name, new)
        component.properties.add(Property(name="clover-ops:linkage", value=linkage))
        component.properties.add(Property(name="clover-ops:in", value=where))

    for file, data in wheel.libraries.items():
        for mark, (name, licence) in _CXX_RUNTIMES.items():
            if mark in data:
                add(name, licence, "static", file)
        for soname in elf.read(data).needed:
            if soname in system:
                add(*_GLIBC, "dynamic", file, scope=ComponentScope.EXCLUDED)
            elif soname == "libtvm_ffi.so":
                add(
                    "apache-tvm-ffi",
                    _PYTHON["apache-tvm-ffi"],
                    "dynamic",
                    file,
                    purl=PackageURL("pypi", name="apache-tvm-ffi"),
                )
        if elf.code_objects(data):
            device = (wheel.manifest or {}).get("device", ["?"])[0]
            add(*_DEVICE_LIBRARIES.get(device, (f"device code for {device}", "NOASSERTION")), "device code", file)
    for folder in sorted({name.rpartition("/")[0] for name in wheel.members if name.endswith(".clvk")}):
        add(*_TRITON, "device code", folder)
    for text in wheel.metadata.get_all("Requires-Dist", []):
        requirement = Requirement(text)
        if requirement.marker is None or "extra" not in str(requirement.marker):
            licence = _PYTHON.get(requirement.name, "NOASSERTION")
            purl = PackageURL("pypi", name=requirement.name)
            add(requirement.name, licence, "installed", "METADATA", purl=purl)
            found[requirement.name].properties.add(
                Property(name="clover-ops:requires", value=str(requirement.specifier))
            )
    return [found[name] for name in sorted(found)]


def text(wheel: Wheel, system: Iterable[str]) -> str:
    bom = Bom(components=components(wheel, system))
    subject = Component(
        name=wheel.project, version=wheel.version, type=ComponentType.LIBRARY, bom_ref=wheel.project,
        licenses=[LicenseExpression("Apache-2.0")], purl=PackageURL("pypi", name=wheel.project, version=wheel.version),
    )  # fmt: skip
    for toolchain in (wheel.manifest or {}).get("toolchain", []):
        subject.properties.add(Property(name="clover-ops:toolchain", value=toolchain))
    bom.metadata.component = subject
    bom.register_dependency(subject, bom.components)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST))
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"{wheel.project}-{wheel.version}-{wheel.machine}")
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"
