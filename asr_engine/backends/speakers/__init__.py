"""Who spoke: the embedded diariser on ONNX Runtime, and NeMo's Sortformer for sites with a GPU."""
