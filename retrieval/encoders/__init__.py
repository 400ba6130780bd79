"""Embedding models: what the engine asks of one, and the ONNX encoder that answers."""

from retrieval.encoders.onnx_encoder import OnnxEncoder, load_encoder
from retrieval.encoders.protocol import Encoder

__all__ = ["Encoder", "OnnxEncoder", "load_encoder"]
