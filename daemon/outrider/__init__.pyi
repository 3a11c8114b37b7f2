# The types of the Python API, for checkers and editors; `__init__.py` makes the names when used.
from outrider.python_api.reading import generate_campus as generate_campus
from outrider.python_api.reading import generate_grid as generate_grid
from outrider.python_api.reading import ingest as ingest
from outrider.python_api.reading import open_journal as open_journal
from outrider.python_api.reading import read_campus as read_campus
from outrider.python_api.reading import read_swf as read_swf
from outrider.python_api.replaying import compare as compare
from outrider.python_api.replaying import replay as replay

__version__: str
__all__: list[str]
