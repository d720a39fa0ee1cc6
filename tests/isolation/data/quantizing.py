"""Systems that quantize: codes are x - scale + zero in bytes for every case."""


class Quantizes:
    name, version = "quantizes", "1"

    def cast(self, case, bits):
        return bits

    def quantize(self, case, tensors):
        codes = tensors["x"] - tensors["scale"]
        if "zero" in tensors:
            codes = codes + tensors["zero"]
        return {"y": codes}

    def reproduce_quantize(self, case, tensors):
        return f"quantize({', '.join(tensors)})"


class ReturnsAnArray(Quantizes):
    def quantize(self, case, tensors):
        return tensors["x"]


class ForgetsTheScale(Quantizes):
    def quantize(self, case, tensors):
        return {"y": tensors["x"]}


class ReturnsScalars(Quantizes):
    def quantize(self, case, tensors):
        x = tensors["x"]
        return {"y": x.astype("uint8"), "scale": x[0], "zero": x[1].astype("uint8")}


class ListsTheScale(ReturnsScalars):
    def quantize(self, case, tensors):
        return super().quantize(case, tensors) | {"scale": [1.0]}


class Dies(Quantizes):
    def quantize(self, case, tensors):
        import os

        os._exit(3)
