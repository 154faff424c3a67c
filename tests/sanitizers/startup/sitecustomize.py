"""Where the undefined sanitizer writes what it has found, said when Python starts.

Its option ``log_path`` has no effect beside the address sanitizer: both libraries have a function
`__sanitizer_set_report_path`, and the one that is loaded first is called for both. Reports of the
other go to the standard error stream, which pytest takes.
"""

import ctypes
import os

if "DTREES_UNDEFINED_REPORTS" in os.environ:
    for path in os.environ["LD_PRELOAD"].split():
        if "libubsan" in path:  # asked for by its handle, it is the library's own function
            ctypes.CDLL(path).__sanitizer_set_report_path(
                os.environ["DTREES_UNDEFINED_REPORTS"].encode()
            )
