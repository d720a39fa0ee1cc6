"""The lines of a script that casts by a kernel of triton's; adapter and scripts execute them."""

HEADER = """\
# triton {version}: {case}
import linecache
import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton
import triton.language as tl

"""
KERNEL = '''\
kernel = """
@triton.jit
def cast(X, Y, n, BLOCK: tl.constexpr):
    # In 32 bits the interpreter would check each sum for overflow, which takes it longer.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_in = i < n
    x = tl.load(X + i, is_in)
    tl.store(Y + i, tl.cast(x, Y.dtype.element_ty{options}), is_in)
"""
# triton reads the source of a function by the name of its file.
linecache.cache["<{name}>"] = (len(kernel), None, kernel.splitlines(True), "<{name}>")
exec(compile(kernel, "<{name}>", "exec"))
'''
LAUNCH = """\
y = torch.empty_like(x, dtype=torch.{dtype})
block = {block}
cast[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), block)
"""
