"""What a wheel must be: kernels without debug information, a page without links to nowhere."""

import re
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    kernels = [name for name in wheel.namelist() if name.endswith((".so", ".pyd"))]
    page = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
    size = sum(info.compress_size for info in wheel.infolist())
    assert len(kernels) > 30, kernels
    assert not [name for name in wheel.namelist() if name.startswith(("tests", "benchmarks"))]
    for name in kernels:
        assert b".debug_info" not in wheel.read(name), f"{name} holds debug information"
    links = re.findall(r"\]\((?!https?:)([^)]*)\)", wheel.read(page).decode())
    assert not links, f"the page of a package index has relative links: {links}"
    assert b"Description-Content-Type: text/markdown" in wheel.read(page)
print(f"{len(kernels)} kernels, {size / 1e6:.1f} MB")
