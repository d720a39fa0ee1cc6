"""The lines of a script that casts by a function of LLVM's IR; adapter and scripts execute them."""

HEADER = """\
# llvmlite {version}: {case}
import ctypes
import ctypes.util

import llvmlite.binding as llvm
import numpy as np

"""
LOAD = """\
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
# Of 16-bit floats, LLVM calls what a compiler's library has.
for library in filter(None, map(ctypes.util.find_library, ("gcc_s", "m"))):
    llvm.load_library_permanently(library)
"""
FUNCTION = '''\
module = llvm.parse_assembly("""
{declaration}define void @cast(ptr %x, ptr %y, i64 %count) {{
start:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %end, label %loop
loop:
  %at = phi i64 [ 0, %start ], [ %next, %loop ]
  %from = getelementptr {source}, ptr %x, i64 %at
  %to = getelementptr {target}, ptr %y, i64 %at
  %value = load {source}, ptr %from
  %answer = {cast}
  store {target} %answer, ptr %to
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}
""")
machine = llvm.Target.from_default_triple().create_target_machine({machine})
{passes}engine = llvm.create_mcjit_compiler(module, machine)
engine.finalize_object()
address = engine.get_function_address("cast")
cast = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int64)(address)
'''
HOST = """
    cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten()
"""
PASSES = """\
options = llvm.create_pipeline_tuning_options(speed_level=3)
options.loop_vectorization = True
builder = llvm.create_pass_builder(machine, options)
builder.getModulePassManager().run(module, builder)
"""
CALL = """\
y = np.empty(x.shape, np.{storage})
cast(x.ctypes.data, y.ctypes.data, x.size)
"""
