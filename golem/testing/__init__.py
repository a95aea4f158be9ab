"""Public tools for testing agents without a provider; golem's own suite uses them.

scripted     models that answer from a script or a function, and fail where told to
strict       what every provider asks of calls and results: say it, or have a model refuse it
judge        loopback servers that refuse what one provider refuses, and misbehave on demand
conformance  what every adapter has to pass
sweep        a run that dies at every point in turn; what has to be true each time is in
             ``deaths``, how it is made to die in ``ways``
strategies   Hypothesis strategies of broken histories (``golem-agents[testing]``); imported
             by its own name, ``golem.testing.strategies``, so that nothing else needs it
"""

from golem.testing.deaths import Death as Death
from golem.testing.deaths import Watch as Watch
from golem.testing.scripted import HANG as HANG
from golem.testing.scripted import Fragments as Fragments
from golem.testing.scripted import FunctionModel as FunctionModel
from golem.testing.scripted import Hang as Hang
from golem.testing.scripted import Scripted as Scripted
from golem.testing.scripted import ScriptedModel as ScriptedModel
from golem.testing.scripted import assemble as assemble
from golem.testing.scripted import cut_args as cut_args
from golem.testing.scripted import dies as dies
from golem.testing.scripted import fragments as fragments
from golem.testing.scripted import hangs as hangs
from golem.testing.strict import Strict as Strict
from golem.testing.strict import complaints as complaints
from golem.testing.sweep import How as How
from golem.testing.sweep import SweepReport as SweepReport
from golem.testing.sweep import read as read
from golem.testing.sweep import sweep_cancellation as sweep_cancellation
from golem.testing.sweep import sweep_leaving as sweep_leaving
from golem.testing.sweep import sweep_stops as sweep_stops
