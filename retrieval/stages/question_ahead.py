"""Reading the question while it is embedded."""

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

from retrieval.graph.asked import AskedNames
from retrieval.stages.analyze import Analyze
from retrieval.stages.read_names import ReadNames
from retrieval.stages.route import Route
from retrieval.types import QueryTerms, SearchState


@dataclass(frozen=True, slots=True)
class QuestionAhead:
    """Reads a question's terms, the projects it may name and its names while the query is embedded.

    They are read in the order in which stages wait for them. The embedding leaves a core to it.
    """

    analyze: Analyze
    route: Route
    names: ReadNames
    executor: Executor

    def begun(self, state: SearchState) -> SearchState:
        """Return the state with its terms, projects and names as they are now being read."""
        terms: Future[QueryTerms] = Future()
        projects: Future[Sequence[str]] = Future()
        names = self.executor.submit(self._read, state, terms, projects)
        return replace(state, terms_ahead=terms.result, projects_ahead=projects.result, asked_ahead=names.result)

    def _read(self, state: SearchState, terms: Future[QueryTerms], projects: Future[Sequence[str]]) -> AskedNames:
        """Return the names, having handed over the terms and the projects; what fails fails for all that is left."""
        try:
            terms.set_result(self.analyze.read(state))
            projects.set_result(self.route.projects(state))
        except BaseException as error:
            for left in (terms, projects):
                if not left.done():
                    left.set_exception(error)
            raise
        return self.names.read(replace(state, terms=terms.result()))
