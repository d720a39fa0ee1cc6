"""Writers and readers of the containers in which tensors travel: files, messages and DLPack."""
