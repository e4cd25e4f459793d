"""What a generator cannot know of the API: identifiers of what is there, confirmations, and a session to end.

Read by tests/tests/operations/schemathesis.rs, which starts the server and says in the environment who calls.
"""

import json
import os
import urllib.error
import urllib.request

import schemathesis

API = os.environ["PACKHOUSE_API"]
EMAIL = os.environ.get("PACKHOUSE_EMAIL", "")
PASSWORD = os.environ.get("PACKHOUSE_PASSWORD", "")
SESSION = "Bearer " + os.environ.get("PACKHOUSE_SESSION", "")
# Paths' beginnings with what may stand in their {id}, each used for every other call.
KNOWN = json.loads(os.environ.get("PACKHOUSE_KNOWN", "{}"))

# A component is bytes like any other to a generator.
schemathesis.serializer.alias("application/wasm", "application/octet-stream")

# Which action a sensitive call needs to be confirmed for.
ACTIONS = {
    ("POST", "/v1/tokens"): "create_token",
    ("POST", "/v1/tokens/{id}/rotation"): "rotate_token",
    ("POST", "/v1/npm-logins/{id}/finish"): "finish_npm_login",
    ("PUT", "/v1/repositories/{id}/upstream-credentials"): "set_upstream_credentials",
}
calls = 0


def address():
    """Another address for each call: what is guessed from one holds up all that comes from it."""
    global calls
    calls += 1
    return f"10.{calls // 65536 % 256}.{calls // 256 % 256}.{calls % 256}"


def post(path, body, session=None):
    """The answer to a call of the hook's own."""
    headers = {"Content-Type": "application/json", "X-Forwarded-For": address()}
    if session:
        headers["Authorization"] = session
    request = urllib.request.Request(API + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def action(case):
    """What a call must be confirmed for; none for most."""
    if "/access-keys" in case.path and case.method.upper() != "GET":
        return "manage_access_keys"
    return ACTIONS.get((case.method.upper(), case.path))


if EMAIL:

    @schemathesis.auth()
    class Session:
        """Signed in, but for the calls that leave it out to see that they are refused."""

        def get(self, case, context):
            return SESSION

        def set(self, case, data, context):
            case.headers = case.headers or {}
            case.headers["Authorization"] = data


@schemathesis.hook
def before_call(context, case, kwargs):
    """Fills in what is there, and a fresh confirmation or session where the call spends one."""
    from_here = address()
    if case.headers is not None:
        case.headers["X-Forwarded-For"] = from_here
    parameters = case.path_parameters or {}
    for beginning, known in KNOWN.items():
        if case.path.startswith(beginning) and "id" in parameters and calls % 2 == 0:
            parameters["id"] = known[calls // 2 % len(known)]
    if "format" in parameters and calls % 2 == 0:
        parameters["format"] = "maven"
    if not EMAIL or case.headers.get("Authorization") != SESSION:
        return
    if case.path == "/v1/organization" and isinstance(case.body, dict) and case.body.get("require_second_factor") is True:
        # The caller has no second factor, so every later call would be refused.
        case.body["require_second_factor"] = False
    with_password = case.path in ("/v1/confirmations", "/v1/me/totp") and isinstance(case.body, dict)
    if with_password and isinstance(case.body.get("password"), str):
        # Guessing would hold up everybody's next confirmation.
        case.body["password"] = PASSWORD
    if case.path == "/v1/sessions/current":
        fresh = post("/v1/sessions", {"email": EMAIL, "password": PASSWORD})
        case.headers["Authorization"] = "Bearer " + fresh["session"]
    wanted = action(case)
    if wanted and isinstance(case.body, dict) and isinstance(case.body.get("confirmation_token", ""), str):
        try:
            confirmed = post("/v1/confirmations", {"action": wanted, "password": PASSWORD}, SESSION)
            case.body["confirmation_token"] = confirmed["confirmation_token"]
        except urllib.error.HTTPError:
            # The call is made without a session, to see that it is refused.
            pass
