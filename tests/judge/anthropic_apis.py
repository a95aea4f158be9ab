"""Anthropic and Bedrock with their adapters and judges."""

from __future__ import annotations

from golem.testing.judge import AnthropicJudge, BedrockJudge
from golem_adapters import Anthropic, Bedrock
from tests.judge.support import API

APIS = {
    "anthropic": API("anthropic", AnthropicJudge, Anthropic),
    "bedrock": API("bedrock", BedrockJudge, Bedrock),
}
