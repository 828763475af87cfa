"""Hooks of schemathesis for `make fuzz`: ids of real resources, and the courtesies that the contract does not show.

The service under test has taken its tour, so it has resources of every kind. A generated uuid stands for one of them in
three cases of four, else for an unknown one: which one follows from the uuid, so that a seed plays the same calls again.
"""

import collections
import datetime
import json
import os
import re
import urllib.request

import schemathesis
from schemathesis.generation import GenerationMode

base_url = os.environ["FUZZ_URL"]
key = os.environ["FUZZ_KEY"]
uuid = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def read(path):
    request = urllib.request.Request(base_url + path, headers={"Authorization": "Bearer " + key})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]


def ids(path):
    return sorted(row["id"] for row in read(path + "?limit=100"))


pools = {
    "clients": ids("/clients"),
    "accounts": ids("/accounts"),
    "posts": ids("/posts"),
    "post-targets": ids("/post-targets"),
    "media": ids("/media"),
    "webhooks": ids("/webhooks"),
    "reports": ids("/reports"),
}
pools["deliveries"] = [
    (webhook, delivery)
    for webhook in pools["webhooks"]
    for delivery in ids("/webhooks/" + webhook + "/deliveries")
]
pools["runs"] = [(report, run["runId"]) for report in pools["reports"] for run in read("/reports/" + report)["runs"]]

members = {
    "clientId": "clients",
    "accountId": "accounts",
    "socialAccountId": "accounts",
    "accountIds": "accounts",
    "postId": "posts",
    "targetIds": "post-targets",
    "mediaIds": "media",
    "mediaIdsOverride": "media",
    "coverMediaId": "media",
    "assetId": "media",
}


def real(value, pool):
    """A resource of the pool for three uuids of four; anything else as it is."""
    if not isinstance(value, str) or not uuid.match(value) or not pools[pool]:
        return value
    number = int(value[-6:], 16)
    return value if number % 4 == 3 else pools[pool][number // 4 % len(pools[pool])]


def with_real_ids(value):
    if isinstance(value, list):
        return [with_real_ids(one) for one in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, member in value.items():
        pool = members.get(name)
        if pool is None:
            result[name] = with_real_ids(member)
        elif isinstance(member, list):
            result[name] = [real(one, pool) for one in member]
        else:
            result[name] = real(member, pool)
    return result


@schemathesis.hook
def map_path_parameters(context, parameters):
    """Both ids of a nested resource come from one pair."""
    if not parameters:
        return parameters
    first, *rest = [segment for segment in context.operation.path.split("/") if segment]
    noun = "accounts" if context.operation.path.startswith("/analytics/accounts") else first
    if first == "analytics":
        noun = rest[0]
    mapped = dict(parameters)
    for outer, inner, pool in (("id", "deliveryId", "deliveries"), ("id", "runId", "runs")):
        value = parameters.get(inner)
        if inner in parameters and pools[pool] and isinstance(value, str) and uuid.match(value):
            mapped[outer], mapped[inner] = real(value, pool) if real(value, pool) != value else (
                parameters[outer],
                value,
            )
            return mapped
    if noun in pools and "id" in mapped:
        mapped["id"] = real(mapped["id"], noun)
    return mapped


@schemathesis.hook
def map_query(context, query):
    return with_real_ids(query)


@schemathesis.hook
def map_body(context, body):
    return with_real_ids(body)


closed_words = "Other values are refused."


def close(node):
    """Texts whose other values are refused get those that are listed: the others are refused one by one."""
    if isinstance(node, list):
        for one in node:
            close(one)
    elif isinstance(node, dict):
        values = node.get("x-extensible-enum")
        if isinstance(values, list) and closed_words in node.get("description", ""):
            node["enum"] = values + [None] if "null" in node["type"] else values
        for one in node.values():
            close(one)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    close(raw_schema["components"]["schemas"])


@schemathesis.hook
def before_call(context, case, kwargs):
    """A cursor comes from an answer, of a list or of the feed: no generator can make one, nor an event that is there."""
    for name in ("cursor", "after", "asOf"):
        if case.query and isinstance(case.query.get(name), str) and is_positive(case):
            del case.query[name]
            # Each workspace has a first event. Lists refuse some filters beside it.
            if name == "asOf" and case.operation.path.endswith("/{id}"):
                case.query[name] = "1"
    # The clock of the sandbox goes ahead alone, and not far.
    if case.operation.path == "/sandbox/clock" and isinstance(case.body, dict) and is_positive(case):
        then = datetime.datetime.fromisoformat(read("/sandbox/clock")["now"]) + datetime.timedelta(minutes=1)
        case.body["to"] = then.isoformat()


def is_positive(case):
    return case.meta is None or case.meta.generation.mode == GenerationMode.POSITIVE


own_times = {"now": set(), "at": {"scheduledAt", "scheduledLocal"}, "range": {"from", "to"}}
times = {"scheduledAt", "scheduledLocal", "from", "to"}


def has_foreign_time(value):
    """A schedule ignores the times of another type than its own, whatever they are."""
    if isinstance(value, list):
        return any(has_foreign_time(one) for one in value)
    if not isinstance(value, dict):
        return False
    schedule = value.get("schedule")
    if isinstance(schedule, dict) and isinstance(schedule.get("type"), str) and schedule["type"] in own_times:
        if (times & schedule.keys()) - own_times[schedule["type"]]:
            return True
    return any(has_foreign_time(member) for member in value.values())


def has_overrides(value):
    """Settings are checked for the networks that a post goes to, and not in drafts; a preview tells of them with 200."""
    if isinstance(value, list):
        return any(has_overrides(one) for one in value)
    if not isinstance(value, dict):
        return False
    return bool(value.get("overrides")) or any(has_overrides(member) for member in value.values())


every_nth = int(os.environ["FUZZ_EVERY_NTH"])
covered = collections.Counter()


def is_left_out(case):
    """A short run plays the first of every n cases that the contract alone gives for an operation, so at least one."""
    if case.meta is None or case.meta.phase.name.value != "coverage":
        return False
    before = covered[case.operation.label]
    covered[case.operation.label] += 1
    return before % every_nth != 0


@schemathesis.hook
def filter_case(context, case):
    """The service reads null as no body where one is optional; the contract does not say so."""
    if is_left_out(case):
        return False
    return is_positive(case) or not (case.body is None or has_foreign_time(case.body) or has_overrides(case.body))


@schemathesis.check
def an_invalid_entry_is_rejected(context, response, case):
    """A bulk answers 200 for entries that it rejects: of a call that breaks the contract, at least one must be."""
    if case.operation.path != "/posts/bulk" or is_positive(case) or response.status_code != 200:
        return
    results = response.json()["data"]["results"]
    if all(result["status"] != "rejected" for result in results):
        raise AssertionError("no entry of an invalid call was rejected")
