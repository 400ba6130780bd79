"""What a page complains of: its console, its errors, its policy, and what it could not load."""

#: Says on the console what the policy has refused; the browser's own words differ by version.
_REPORT_POLICY = """
document.addEventListener("securitypolicyviolation", (event) => {
  const place = `${event.sourceFile}:${event.lineNumber}`;
  console.error(`policy: ${event.effectiveDirective} refused ${event.blockedURI} at ${place}`);
});
"""
_CLIENT_ERROR = 400
#: The browser says so of every response that `_answered` judges already, and htmx once more.
_ECHOES = ("Failed to load resource", "Response Status Error Code")
#: A request that was under way when its page was left.
_LEFT = "net::ERR_ABORTED"


class Watch:
    """Collects the complaints of all pages of one context."""

    def __init__(self, context):
        #: Statuses that a test expects of a page, such as the 422 of a form with a mistake in it.
        self.expected = set()
        self._complaints = []
        context.add_init_script(_REPORT_POLICY)
        context.on("console", self._said)
        context.on("weberror", lambda error: self._complaints.append(f"error: {error.error}"))
        context.on("requestfailed", self._failed)
        context.on("response", self._answered)

    def expect(self, *statuses):
        """Take these statuses as no complaint."""
        self.expected.update(statuses)

    def forget(self):
        """Expect nothing any more, and forget what was complained of."""
        self.expected.clear()
        self._complaints.clear()

    def complaints(self):
        """Return everything that was complained of, and forget it."""
        lines, self._complaints = self._complaints, []
        return lines

    def _said(self, message):
        if message.type in {"error", "warning"} and not message.text.startswith(_ECHOES):
            self._complaints.append(f"console: {message.text} ({message.page.url if message.page else ''})")

    def _failed(self, request):
        if request.failure != _LEFT:
            self._complaints.append(f"failed: {request.method} {request.url}: {request.failure}")

    def _answered(self, response):
        if response.status >= _CLIENT_ERROR and response.status not in self.expected:
            self._complaints.append(f"answered: {response.status} {response.request.method} {response.url}")
