"""Judges: loopback servers that refuse what a provider refuses, and misbehave on demand.

``ChatJudge``, ``ResponsesJudge``, ``AnthropicJudge``, ``GeminiJudge`` and ``BedrockJudge`` hold
what an adapter sends to the provider's rules, answer a request that breaks one with the provider's
own error, and everything else with real-looking answers, plain or streamed. They prove agreement
with the rules on record, not acceptance by the provider.

server, http         a judge: the server that plays a provider
provider, answers    what it has to know of an API, and what answers are made from
misbehave, reply     what a server can do wrong, and the answers it does it to
findings             what a rule found

chat, chat_*         Chat Completions, and in what the servers that speak it differ
responses, …_*       Responses, likewise
anthropic, …_*       Anthropic's Messages: rules, turns, blocks, tools, models, words
bedrock, …_*         Bedrock's Converse: rules, turns, blocks, families, words
gemini, …_*          Gemini, at AI Studio and at Vertex AI
common_rules, media_rules, openai_words    what several have in common

An API of its own is one file beside ``chat``: a subclass of `Provider`.
"""

from golem.testing.judge import misbehave as misbehave
from golem.testing.judge.answers import pieces_of as pieces_of
from golem.testing.judge.anthropic import AnthropicJudge as AnthropicJudge
from golem.testing.judge.anthropic import AnthropicProvider as AnthropicProvider
from golem.testing.judge.anthropic_rules import judge_anthropic as judge_anthropic
from golem.testing.judge.bedrock import BedrockJudge as BedrockJudge
from golem.testing.judge.bedrock import BedrockProvider as BedrockProvider
from golem.testing.judge.bedrock_rules import judge_bedrock as judge_bedrock
from golem.testing.judge.chat import ChatJudge as ChatJudge
from golem.testing.judge.chat import ChatProvider as ChatProvider
from golem.testing.judge.chat_rules import judge_chat as judge_chat
from golem.testing.judge.chat_servers import ChatRules as ChatRules
from golem.testing.judge.findings import Violation as Violation
from golem.testing.judge.gemini import GeminiJudge as GeminiJudge
from golem.testing.judge.gemini import GeminiProvider as GeminiProvider
from golem.testing.judge.gemini_rules import judge_gemini as judge_gemini
from golem.testing.judge.misbehave import Misbehavior as Misbehavior
from golem.testing.judge.provider import Provider as Provider
from golem.testing.judge.provider import Said as Said
from golem.testing.judge.reply import Reply as Reply
from golem.testing.judge.reply import event as event
from golem.testing.judge.responses import ResponsesJudge as ResponsesJudge
from golem.testing.judge.responses import ResponsesProvider as ResponsesProvider
from golem.testing.judge.responses_rules import judge_responses as judge_responses
from golem.testing.judge.responses_servers import ResponsesRules as ResponsesRules
from golem.testing.judge.server import Asked as Asked
from golem.testing.judge.server import Judge as Judge
