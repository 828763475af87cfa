"""The main job through a client by openapi-generator's `python`: a webhook, a client, four accounts, a photo, a post
with its targets, figures, events, and an error.

    openapi-generator-cli generate -i https://<host>/v1/openapi.json -g python --additional-properties=packageName=postline
"""

import json
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import urllib3
from postline import (
    AccountsApi,
    AnalyticsApi,
    ApiClient,
    ApiException,
    ClientsApi,
    Configuration,
    MediaApi,
    PostsApi,
    PostTargetsApi,
    WebhooksApi,
)
from postline.models import (
    Account,
    ClientCreate,
    ConnectInviteCreate,
    Media,
    MediaPresign,
    MediaRegister,
    NetworkOverrides,
    Post,
    PostCreate,
    PostPublishedEvent,
    PostTargetReschedule,
    Problem,
    ScheduleInput,
    TargetSelectionInput,
    VariantInput,
    WebhookCreate,
    WebhookDelivery,
)

Value = TypeVar("Value")
UTC = timezone.utc


def check(holds: bool, what: str) -> None:
    if not holds:
        raise RuntimeError(f"not so: {what}")
    print(f"ok  {what}", flush=True)


def eventually(what: str, look: Callable[[], Value | None]) -> Value:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        value = look()
        if value is not None:
            return value
        time.sleep(0.15)
    raise RuntimeError(f"not within a minute: {what}")


def problem_of(call: Callable[[], object]) -> Problem:
    """What the server refused a call with."""
    try:
        call()
    except ApiException as refusal:
        if isinstance(refusal.data, Problem):
            return refusal.data
        raise
    raise RuntimeError("the server did not refuse")


def key() -> str:
    """Every POST that creates something takes a key: a repeat with the same key creates nothing."""
    return str(uuid4())


http = urllib3.PoolManager()
api = ApiClient(Configuration(host=os.environ["POSTLINE_URL"], access_token=os.environ["POSTLINE_KEY"]))
clients, accounts, media, posts = ClientsApi(api), AccountsApi(api), MediaApi(api), PostsApi(api)
targets, analytics, webhooks = PostTargetsApi(api), AnalyticsApi(api), WebhooksApi(api)
receiver = os.environ["POSTLINE_RECEIVER"]
platforms = ["x", "bluesky", "instagram", "pinterest"]

wanted = WebhookCreate(url=receiver, events=["post.published", "target.published"])
webhook = webhooks.register_webhook(key(), wanted).data
check(isinstance(webhook.secret, str), "a webhook shows its secret once")

once = key()
body = ClientCreate(name=f"Northwind {once[:8]}", type="brand", timezone="Europe/Berlin")
client = clients.create_client(once, body).data
check(client.name == body.name, "a client is created")
again = clients.create_client_with_http_info(once, body)
check(again.data.data.id == client.id, "the same key answers the same client")
check((again.headers or {}).get("Idempotent-Replayed") == "true", "and says that it is a replay")

wish = ConnectInviteCreate(platforms=platforms, expiresInHours=1)
invite = clients.create_connect_invite(client.id, key(), wish).data
for platform in platforms:
    # What the invite page sends when a brand connects its account.
    form = {"platform": platform, "username": "northwind", "timezone": ""}
    answer = http.request("POST", str(invite.url), fields=form, encode_multipart=False, redirect=False)
    check(answer.status == 303, f"the invite page connects {platform}")


def all_accounts() -> list[Account] | None:
    page = accounts.list_accounts(client_id=client.id, limit=2)
    found = list(page.data)
    while page.page.next_cursor is not None:
        page = accounts.list_accounts(client_id=client.id, limit=2, cursor=page.page.next_cursor)
        found += page.data
    return found if len(found) == len(platforms) else None


connected = eventually("four accounts on two pages", all_accounts)
check(len({one.id for one in connected}) == len(platforms), "a cursor leads through all accounts")

photo = Path(os.environ["POSTLINE_PHOTO"]).read_bytes()
offer = MediaPresign(fileName="coffee.jpg", contentType="image/jpeg", bytes=len(photo), clientId=client.id)
upload = media.presign_media(offer, idempotency_key=key()).data
put = http.request("PUT", str(upload.url), body=photo, headers=upload.headers)
check(put.status < 300, "the presigned URL takes the file")
register = MediaRegister(assetId=upload.asset_id, clientId=client.id, altText="An espresso")
media.register_media(key(), register)


def publishable() -> Media | None:
    asset = media.get_media(upload.asset_id).data
    return asset if asset.publishable else None


eventually("the photo is publishable", publishable)

link = "https://northwind.example/winter"
group = TargetSelectionInput(mode="group", clientId=client.id)
pin = NetworkOverrides(boardId="918273645", title="Winter menu", link=link)
compose = PostCreate(
    clientId=client.id,
    content="Winter menu is here.",
    targets=group,
    mediaIds=[upload.asset_id],
    mediaAltTexts={str(upload.asset_id): "An espresso with a spoon"},
    variants=[
        VariantInput(platform="x", contentOverride=f"Winter menu: {link}"),
        VariantInput(platform="bluesky", overrides=NetworkOverrides(link=link)),
        VariantInput(platform="pinterest", overrides=pin),
    ],
    schedule=ScheduleInput(type="at", scheduledAt=datetime.now(UTC) + timedelta(hours=1)),
)
post = posts.create_post(key(), compose).data
check(post.status == "scheduled" and len(post.targets) == len(platforms), "a post has a target for each account")
board = next(one.overrides for one in post.variants if one.platform == "pinterest")["boardId"]
check(board == "918273645", "its variants keep their overrides")

two = targets.list_post_targets(post_id=post.id, platform=["x", "pinterest"]).data
check(len(two) == 2 and all(one.failure is None for one in two), "targets are listed by post and network")
for target in post.targets:
    now = PostTargetReschedule(scheduledAt=datetime.now(UTC))
    moved = targets.reschedule_post_target(target.id, now).data
    check(moved.scheduled_at < datetime.now(UTC) + timedelta(seconds=1), f"the target on {moved.platform} is moved")


def published() -> Post | None:
    read = posts.get_post(post.id).data
    return read if read.status == "published" else None


done = eventually("the post is published", published)
check(
    all(one.status == "published" and one.permalink is not None for one in done.targets),
    "every target is published, with its permalink",
)

today = datetime.now(UTC).date()
overview = analytics.get_analytics_overview(var_from=today, to=today, client_id=client.id).data
check(overview.object == "workspace_analytics", "the overview has figures")
figures = analytics.get_account_analytics(connected[0].id, var_from=today, to=today).data
check(figures.social_account_id == connected[0].id, "and so has an account")


def received() -> PostPublishedEvent | None:
    events = [json.loads(text) for text in http.request("GET", receiver).json()]
    told = [PostPublishedEvent.model_validate(one) for one in events if one["type"] == "post.published"]
    return next((one for one in told if one.data.post_id == post.id), None)


event = eventually("post.published arrives", received)
check(event.data.counts.published == len(platforms), "the webhook received post.published")


def recorded() -> list[WebhookDelivery] | None:
    rows = webhooks.list_webhook_deliveries(webhook.id, event_type=event.type).data
    return [one for one in rows if one.event_id == event.id and one.status == "delivered"] or None


check(len(eventually("its delivery is recorded", recorded)) > 0, "and the delivery is recorded")

past = ScheduleInput(type="at", scheduledAt=datetime(2020, 1, 1, tzinfo=UTC))
late = PostCreate(clientId=client.id, targets=group, schedule=past)
refused = problem_of(lambda: posts.create_post(key(), late))
check(refused.code == "schedule_in_past" and refused.status == 422, "a refusal has a code to branch on")

webhooks.delete_webhook(webhook.id)
gone = problem_of(lambda: webhooks.get_webhook(webhook.id))
check(gone.code == "not_found", "the webhook is deleted")
print("the tour is over")
