"""The crash reason is the line of stderr that says why a process died."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from oracles.backend.supervised_process import (
    MAX_REASON,
    STDERR_TAIL,
    ProcessFailed,
    SupervisedProcess,
    crash_reason,
)

ABSL = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
W0000 00:00:1795403803.654824   18965 port.cc:153] custom operations are on
F1123 03:16:42.323884   18963 primitive_util.h:681] unhandled type 0
*** Check failure stack trace: ***
    @     0x7fc783a40634  absl::log_internal::LogMessage::SendToLog()
    @     0x7fc783f1e34c  xla::HloPassPipeline::RunHelper<>()
    @     0x7fc7936a71f5  (unknown)
"""
TSL = """\
2025-11-23 03:16:40.000001: I tensorflow/core/util/port.cc:153] oneDNN is on.
2025-11-23 03:16:42.323884: F tensorflow/core/framework/types.cc:10] Check failed: 1 == 2 (1 vs. 2)
"""
CPP = """\
terminate called after throwing an instance of 'std::runtime_error'
  what():  no kernel for type 3
"""
LLVM = """\
LLVM ERROR: Cannot select: v4f8
PLEASE submit a bug report to https://example.org and include the crash backtrace.
Stack dump:
0.\tProgram arguments: /usr/bin/llc -O2
1.\tRunning pass 'Select' on function '@f'
 #0 0x00007f1234567890 llvm::sys::PrintStackTrace (/lib/libLLVM.so+0x123)
"""
ASSERTION = """\
loading
vendor: cast.c:12: main: Assertion `width <= 64' failed.
./vendor(+0x1234) [0x55d0c0ffee00]
/lib/libc.so.6(abort+0xd3) [0x7f1234567890]
"""
FAULTHANDLER = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f1234567890 (most recent call first):
  File "/home/a/adapter.py", line 12 in cast
  File "<string>", line 1 in <module>

Extension modules: numpy._core._multiarray_umath (total: 1)
"""
NODE = """\
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/vendor.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.19.0
"""
JAVA = """\
Exception in thread "main" java.lang.IllegalStateException: no such dtype
\tat Vendor.cast(Vendor.java:12)
\tat Vendor.main(Vendor.java:40)
"""
GO = """\
panic: runtime error: index out of range [3] with length 3

goroutine 1 [running]:
main.main()
\t/vendor.go:12 +0x1d
exit status 2
"""
PYTHON = """\
a warning
Traceback (most recent call last):
  File "adapter.py", line 3, in <module>
    import torch_npu
ImportError: libascend.so: no such file

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "adapter.py", line 5, in <module>
    raise SystemError("no device")
SystemError: no device
"""
RUST = """\
thread 'main' panicked at src/main.rs:3:5:
index out of bounds: the len is 3 but the index is 7
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
RUST_BACKTRACE = """\
thread 'main' (23) panicked at src/main.rs:3:5:
kernel lost
stack backtrace:
   0: rust_begin_unwind
             at /rustc/abc/library/std/src/panicking.rs:695:5
   1: vendor::main
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
"""
OUTPUTS = {
    "absl": (ABSL, "unhandled type 0"),
    "tensorflow": (TSL, "Check failed: 1 == 2 (1 vs. 2)"),
    "c++": (CPP, "no kernel for type 3"),
    "c++, no text": (CPP.splitlines()[0].replace("std::runtime_error", "int"),
                     "terminate called after throwing an instance of 'int'"),
    "llvm": (LLVM, "LLVM ERROR: Cannot select: v4f8"),
    "assertion": (ASSERTION, "vendor: cast.c:12: main: Assertion `width <= 64' failed."),
    "faulthandler": (FAULTHANDLER, "Fatal Python error: Segmentation fault"),
    "python": (PYTHON, "SystemError: no device"),
    "node": (NODE, "Error: Cannot find module '/vendor.js'"),
    "java": (JAVA, 'Exception in thread "main" java.lang.IllegalStateException: no such dtype'),
    "go": (GO, "panic: runtime error: index out of range [3] with length 3"),
    "rust": (RUST, "index out of bounds: the len is 3 but the index is 7"),
    "rust, with frames": (RUST_BACKTRACE, "kernel lost"),
    "a trace of an unknown kind": ("out of memory\n#0 f()\n   in g()\n", "out of memory"),
    "no trace": ("loading\ndone with 3 of 5\n\n", "done with 3 of 5"),
    "nothing but a trace": ("*** SIGSEGV received on cpu 1 ***\n    @ 0x7fc7936a71f5  f()\n",
                            "*** SIGSEGV received on cpu 1 ***"),
    "a reason below the trace": ("    @ 0x7fc7936a71f5  f()\nout of memory\n", "out of memory"),
    "nothing": ("\n \n", ""),
    "not utf-8": ("caf\udce9 is closed", "caf\\xe9 is closed"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_process_that_writes_this_and_aborts_is_quoted_with_its_reason(
    name: str, tmp_path: Path
) -> None:
    text, reason = OUTPUTS[name]
    (tmp_path / "stderr").write_bytes(text.encode(errors="surrogateescape"))
    code = "import os, sys; os.write(2, open(sys.argv[1], 'rb').read()); os.abort()"
    process = SupervisedProcess([sys.executable, "-c", code, str(tmp_path / "stderr")], os.environ)
    try:
        with pytest.raises(ProcessFailed) as caught:
            process.receive(30.0)
    finally:
        process.kill()
    assert str(caught.value) == "was ended by SIGABRT" + (f" ({reason})" if reason else "")


def test_the_reason_is_found_above_a_long_trace() -> None:
    frames = "".join(f"    @     0x7fc7{n:08x}  xla::Pass<{n}>()\n" for n in range(1000))
    assert STDERR_TAIL > len(frames) > STDERR_TAIL // 2
    assert crash_reason(f"F1123 03:16:42.3 18963 a.h:1] no type\n{frames}".encode()) == "no type"


def test_what_varies_from_one_crash_to_the_next_is_left_out() -> None:
    first = crash_reason(b"process 18963 at 0x7fc783a40634: 12:30:01.5 no memory")
    again = crash_reason(b"process 20011 at 0x7fc783a50000: 12:31:07.9 no memory")
    assert first == again == "process … at …: … no memory"
    assert len(crash_reason(b"a" * 1000)) == MAX_REASON
