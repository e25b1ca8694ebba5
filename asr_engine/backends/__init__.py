"""The only home of torch, NeMo, CTranslate2 and ONNX Runtime."""
