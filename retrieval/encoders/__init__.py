"""Embedding models: the protocol of encoders, and the ONNX encoder."""

import os

# For uses without Django's settings: onnxruntime writes telemetry into the home folder once it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from retrieval.encoders.onnx_encoder import OnnxEncoder, load_encoder
from retrieval.encoders.protocol import Encoder

__all__ = ["Encoder", "OnnxEncoder", "load_encoder"]
