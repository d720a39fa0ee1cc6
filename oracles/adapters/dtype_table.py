"""The names that packages give to dtypes, and the dtypes by which they share bits with numpy."""

from __future__ import annotations

from collections.abc import Mapping

from specs.formats import format_named

TABLE = """
dtype             name               numpy api ml torch jax tf paddle tvm onnx              openvino stablehlo     xla      pypto
float64           float64            =     =   -  =     =   =  =      =   double            f64      f64           f64      -
float32           float32            =     =   -  =     =   =  =      =   float             f32      f32           f32      DT_FP32
float16           float16            =     -   -  =     =   =  =      =   float16           f16      f16           f16      DT_FP16
bfloat16          bfloat16           -     -   =  =     =   =  =      =   bfloat16          bf16     bf16          bf16     DT_BF16
float8e4m3fn      float8_e4m3fn      -     -   =  =     =   =  =      =   float8e4m3fn      f8e4m3   f8E4M3FN      f8e4m3fn -
float8e4m3fnuz    float8_e4m3fnuz    -     -   =  =     =   =  -      =   float8e4m3fnuz    -        f8E4M3FNUZ    -        -
float8e5m2        float8_e5m2        -     -   =  =     =   =  =      =   float8e5m2        f8e5m2   f8E5M2        f8e5m2   -
float8e5m2fnuz    float8_e5m2fnuz    -     -   =  =     =   =  -      =   float8e5m2fnuz    -        f8E5M2FNUZ    -        -
float8e4m3        float8_e4m3        -     -   =  -     =   -  -      =   float8e4m3        -        f8E4M3        -        -
float8e3m4        float8_e3m4        -     -   =  -     =   -  -      =   float8e3m4        -        f8E3M4        -        -
float8e4m3b11fnuz float8_e4m3b11fnuz -     -   =  -     =   =  -      =   float8e4m3b11fnuz -        f8E4M3B11FNUZ -        -
float8e8m0        float8_e8m0fnu     -     -   =  =     =   -  -      =   float8e8m0        f8e8m0   f8E8M0FNU     -        -
float6e2m3        float6_e2m3fn      -     -   =  -     -   -  -      =   float6e2m3        -        f6E2M3FN      -        -
float6e3m2        float6_e3m2fn      -     -   =  -     -   -  -      =   float6e3m2        -        f6E3M2FN      -        -
float4e2m1        float4_e2m1fn      -     -   =  -     =   =  -      =   float4e2m1        f4e2m1   f4E2M1FN      -        -
int64             int64              =     =   -  =     =   =  =      =   int64             i64      i64           s64      DT_INT64
int32             int32              =     =   -  =     =   =  =      =   int32             i32      i32           s32      DT_INT32
int16             int16              =     =   -  =     =   =  =      =   int16             i16      i16           s16      DT_INT16
int8              int8               =     =   -  =     =   =  =      =   int8              i8       i8            s8       DT_INT8
int4              int4               -     -   =  -     =   =  -      =   int4              i4       i4            -        -
int2              int2               -     -   =  -     =   =  -      =   int2              -        i2            -        -
uint64            uint64             =     =   -  =     =   =  =      =   uint64            u64      ui64          u64      -
uint32            uint32             =     =   -  =     =   =  =      =   uint32            u32      ui32          u32      -
uint16            uint16             =     =   -  =     =   =  =      =   uint16            u16      ui16          u16      -
uint8             uint8              =     =   -  =     =   =  =      =   uint8             u8       ui8           u8       DT_UINT8
uint4             uint4              -     -   =  -     =   =  -      =   uint4             u4       ui4           -        -
uint2             uint2              -     -   =  -     =   =  -      =   uint2             u2       ui2           -        -
bool              bool               =     =   -  =     =   =  =      =   bool              boolean  i1            pred     -
complex64         complex64          =     =   -  =     =   =  =      -   complex64         -        complex<f32>  c64      -
complex128        complex128         =     =   -  =     =   =  =      -   complex128        -        complex<f64>  c128     -
"""  # noqa: E501
"""A row is a dtype, and ``name`` is what most packages call it. In a package's column ``=`` says
that it uses this name, and ``-`` that it lacks the dtype; the last five columns have other names.

``ml`` stands for the dtypes that ml_dtypes adds to numpy's, ``api`` for those of the array API
standard, ``xla`` for those that torch_xla has on its device. onnx's names are those of its text
format; in its enumeration they are in capitals.
"""

CARRIERS: Mapping[str, Mapping[str, str]] = {
    "torch": {"V16": "complex128"},
    "paddle": {"uint16": "int16", "uint32": "int32", "uint64": "int64", "V16": "complex128"},
}
"""By package and storage, the dtype by which numpy and the package exchange patterns.

The package can view it as any other dtype of the same size. Missing storages are exchanged as they
are.
"""


def names_in(package: str) -> dict[str, str]:
    """Return, by Castigate's names, what a package calls the dtypes that it has.

    ``package`` is the head of a column of ``TABLE``; the dtypes are in the order of its rows.
    """
    head, *rows = (line.split() for line in TABLE.strip().splitlines())
    column = head.index(package)
    found = ((row[0], row[1] if row[column] == "=" else row[column]) for row in rows)
    return {dtype: name for dtype, name in found if name != "-"}


def carrier_in(package: str, dtype: str) -> str:
    """Return the dtype by which numpy and a package exchange patterns of a dtype.

    The package is torch or paddle.
    """
    storage = format_named(dtype).storage
    return CARRIERS[package].get(storage, storage)
