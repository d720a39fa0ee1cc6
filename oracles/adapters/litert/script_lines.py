"""The lines of scripts that build a model of one operation, and run it."""

HEADER = """\
# ai-edge-litert {version}: {case}
import flatbuffers
import ml_dtypes
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

"""

BUILD = """\
def tensor(name, dtype):
    return schema.TensorT(name=name, type=dtype, shape=[1], shapeSignature=[-1])

source, target = schema.TensorType.{source}, schema.TensorType.{target}
cast = schema.OperatorT(
    inputs=[0],
    outputs=[1],
    builtinOptionsType=schema.BuiltinOptions.CastOptions,
    builtinOptions=schema.CastOptionsT(source, target),
)
graph = schema.SubGraphT(
    tensors=[tensor("x", source), tensor("y", target)],
    inputs=[0],
    outputs=[1],
    operators=[cast],
)
code = schema.BuiltinOperator.CAST
model = schema.ModelT(
    version=3,
    operatorCodes=[schema.OperatorCodeT(deprecatedBuiltinCode=code, builtinCode=code)],
    subgraphs=[graph],
    buffers=[schema.BufferT()],
)
builder = flatbuffers.Builder()
builder.Finish(model.Pack(builder), b"TFL3")
content = bytes(builder.Output())
"""

INVOKE = """\
interpreter = Interpreter(
    model_content=content, experimental_op_resolver_type=OpResolverType.{resolver}
)
interpreter.resize_tensor_input(0, [x.size])
interpreter.allocate_tensors()
interpreter.set_tensor(0, x.reshape(-1))
interpreter.invoke()
y = interpreter.get_tensor(1).reshape(x.shape)
"""
