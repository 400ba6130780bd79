"""Embedding models: what the engine asks of one, and the ONNX encoder that answers."""

import os

# Where Django's settings are not read: onnxruntime collects telemetry in the home folder from its import on.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from retrieval.encoders.onnx_encoder import OnnxEncoder, load_encoder
from retrieval.encoders.protocol import Encoder

__all__ = ["Encoder", "OnnxEncoder", "load_encoder"]
