"""Passes over whole histories: pure functions, each with a report (contract §2)."""

from golem.history.bounds import TokenCounter as TokenCounter
from golem.history.bounds import budget_history as budget_history
from golem.history.bounds import trim_history as trim_history
from golem.history.edit import Turn as Turn
from golem.history.edit import drop_turn as drop_turn
from golem.history.edit import edit_user as edit_user
from golem.history.edit import fork_at as fork_at
from golem.history.edit import rewind_to as rewind_to
from golem.history.edit import turns as turns
from golem.history.estimate import EstimatedTokens as EstimatedTokens
from golem.history.merge import merge as merge
from golem.history.repair import Repairer as Repairer
from golem.history.repair import arepair as arepair
from golem.history.repair import normalize_history as normalize_history
from golem.history.repair import repair as repair
from golem.history.report import Change as Change
from golem.history.report import HistoryRepair as HistoryRepair
from golem.history.report import InvalidPart as InvalidPart
from golem.history.report import SanitizeReport as SanitizeReport
from golem.history.report import UnsafePart as UnsafePart
from golem.history.sanitize import sanitize_history as sanitize_history
from golem.history.seal import SealReport as SealReport
from golem.history.seal import seal as seal
from golem.history.seal import verify as verify
