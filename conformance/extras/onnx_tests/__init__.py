"""Cases as tests for the runners of other projects, such as ONNX's."""
