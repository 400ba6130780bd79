"""Analyzing the question while it is embedded."""

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace

from retrieval.engine.state import SearchState
from retrieval.engine.types import QueryTerms
from retrieval.presets.helix.stages.names import LinkEntities, QuestionNames
from retrieval.presets.helix.stages.route import Route
from retrieval.stages.analyze import Analyze


@dataclass(frozen=True, slots=True)
class PrefetchQuestion:
    """Reads a question's terms, the known projects and its names while the query is embedded.

    In the order in which stages wait for them. The embedding leaves a CPU core free.
    """

    analyze: Analyze
    route: Route
    names: LinkEntities
    executor: Executor

    def begun(self, state: SearchState) -> SearchState:
        """Return the state with futures of its terms, projects and names."""
        terms: Future[QueryTerms] = Future()
        projects: Future[Sequence[str]] = Future()
        names = self.executor.submit(self._read, state, terms, projects)
        begun = {self.analyze.name: terms.result, self.route.name: projects.result, self.names.name: names.result}
        return replace(state, prefetch={**state.prefetch, **begun})

    def _read(self, state: SearchState, terms: Future[QueryTerms], projects: Future[Sequence[str]]) -> QuestionNames:
        """Return the names after setting the terms and the projects; without terms everything fails."""
        try:
            found = self.analyze.read(state)
        except BaseException as error:
            terms.set_exception(error)
            projects.set_exception(error)
            raise
        terms.set_result(found)
        try:
            projects.set_result(self.route.projects(state))
        except Exception as error:  # noqa: BLE001 -- handed to the stage that waits for them
            projects.set_exception(error)
        return self.names.read(replace(state, terms=found))
