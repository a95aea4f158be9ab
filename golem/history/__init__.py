"""Passes over whole histories: pure functions, each with a report (contract §2)."""

from golem.history.repair import Repairer as Repairer
from golem.history.repair import arepair as arepair
from golem.history.repair import normalize_history as normalize_history
from golem.history.repair import repair as repair
from golem.history.report import Change as Change
from golem.history.report import HistoryRepair as HistoryRepair
