"""The lines of scripts that compile IREE's conversions of one source in one program."""

HEADER = """\
# iree {version}: {case}
import iree.runtime
import ml_dtypes
import numpy as np
from iree.compiler.api import Output, Session, Source

"""

COMPILE = """\
session = Session()
session.set_flags({flags}
)
source, targets = "{source}", {{{targets}
}}
program = "".join(
    f'''
func.func @{{name}}(%x: tensor<?x{{source}}>) -> tensor<?x{{target}}> {{{{
  %y = stablehlo.convert %x : (tensor<?x{{source}}>) -> tensor<?x{{target}}>
  return %y : tensor<?x{{target}}>
}}}}'''
    for name, target in targets.items()
)
job, output = session.invocation(), Output.open_membuffer()
job.parse_source(Source.wrap_buffer(session, program.encode() + b"\\0"))
if not job.execute():
    raise NotImplementedError("the compiler refuses the program")
job.output_vm_bytecode(output)
code = bytes(output.map_memory())
module = iree.runtime.load_vm_flatbuffer(code, driver="local-sync")
"""
