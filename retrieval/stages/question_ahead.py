"""Reading the question while it is embedded."""

from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

from retrieval.graph.asked import AskedNames
from retrieval.stages.analyze import Analyze
from retrieval.stages.read_names import ReadNames
from retrieval.types import QueryTerms, SearchState


@dataclass(frozen=True, slots=True)
class QuestionAhead:
    """Begins to read a question's terms, and then its names, while the query is embedded, which leaves a core to it."""

    analyze: Analyze
    names: ReadNames
    executor: Executor

    def begun(self, state: SearchState) -> SearchState:
        """Return the state with its terms and names as they are now being read."""
        terms: Future[QueryTerms] = Future()
        names = self.executor.submit(self._read, state, terms)
        return replace(state, terms_ahead=terms.result, asked_ahead=names.result)

    def _read(self, state: SearchState, terms: Future[QueryTerms]) -> AskedNames:
        """Return the names, having handed over the terms; what fails with these fails with both."""
        try:
            found = self.analyze.read(state)
        except BaseException as error:
            terms.set_exception(error)
            raise
        terms.set_result(found)
        return self.names.read(replace(state, terms=found))
