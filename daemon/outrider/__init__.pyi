# The types of the Python API, for checkers and editors; `__init__.py` makes the names when used.
from outrider.scripting.comparing import compare as compare
from outrider.scripting.journals import open_journal as open_journal
from outrider.scripting.logs import ingest as ingest
from outrider.scripting.replaying import replay as replay
from outrider.scripting.traces import generate_campus as generate_campus
from outrider.scripting.traces import generate_grid as generate_grid
from outrider.scripting.traces import read_campus as read_campus
from outrider.scripting.traces import read_swf as read_swf

__version__: str
__all__: list[str]
