"""Judges: loopback servers that refuse what a provider refuses, and misbehave on demand.

``ChatJudge`` and ``ResponsesJudge`` hold what an adapter sends to the provider's rules, answer
a request that breaks one with the provider's own error, and everything else with real-looking
answers, plain or streamed. They prove agreement with the rules on record, not acceptance by the
provider.

findings          a `Violation`, and how providers word one
chat_rules        what Chat Completions servers refuse; `chat_dialects`: in what they differ
responses_rules   what Responses servers refuse
wire              what a judge has to know of an API; implement it for one that is not here
chat, responses   the two APIs: their judges, and how they spell answers
misbehave         what a server can do wrong
server, http      the server itself
"""

from golem.testing.judge import misbehave as misbehave
from golem.testing.judge.chat import ChatJudge as ChatJudge
from golem.testing.judge.chat import ChatWire as ChatWire
from golem.testing.judge.chat_dialects import ChatRules as ChatRules
from golem.testing.judge.chat_rules import judge_chat as judge_chat
from golem.testing.judge.findings import Findings as Findings
from golem.testing.judge.findings import Violation as Violation
from golem.testing.judge.misbehave import Misbehavior as Misbehavior
from golem.testing.judge.reply import Reply as Reply
from golem.testing.judge.responses import ResponsesJudge as ResponsesJudge
from golem.testing.judge.responses import ResponsesWire as ResponsesWire
from golem.testing.judge.responses_dialects import ResponsesRules as ResponsesRules
from golem.testing.judge.responses_rules import judge_responses as judge_responses
from golem.testing.judge.server import Asked as Asked
from golem.testing.judge.server import Judge as Judge
from golem.testing.judge.wire import Said as Said
from golem.testing.judge.wire import Wire as Wire
