"""The main job through a client by openapi-python-client: a webhook, a client, four accounts, a photo, a post with its
targets, figures, events, and an error.

    openapi-python-client generate --url https://<host>/v1/openapi.json
"""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import httpx
from postline_client import AuthenticatedClient
from postline_client.api.accounts import list_accounts
from postline_client.api.analytics import get_account_analytics, get_analytics_overview
from postline_client.api.clients import create_client, create_connect_invite
from postline_client.api.media import get_media, presign_media, register_media
from postline_client.api.post_targets import list_post_targets, reschedule_post_target
from postline_client.api.posts import create_post, get_post
from postline_client.api.webhooks import delete_webhook, get_webhook, list_webhook_deliveries, register_webhook
from postline_client.models import (
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
from postline_client.types import Response

Body = TypeVar("Body")
Value = TypeVar("Value")


def ok(answer: Response[Body | Problem]) -> Body:
    """The body of a call, unless the server refused it."""
    if isinstance(answer.parsed, Problem):
        raise RuntimeError(f"{answer.parsed.status} {answer.parsed.code}: {answer.parsed.detail}")
    if answer.parsed is None:
        raise RuntimeError(f"{answer.status_code} is not in the contract")
    return answer.parsed


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


postline = AuthenticatedClient(base_url=os.environ["POSTLINE_URL"], token=os.environ["POSTLINE_KEY"])
receiver = os.environ["POSTLINE_RECEIVER"]
platforms = ["x", "bluesky", "instagram", "pinterest"]


def key() -> str:
    """Every POST that creates something takes a key: a repeat with the same key creates nothing."""
    return str(uuid4())


wanted = WebhookCreate(url=receiver, events=["post.published", "target.published"])
webhook = ok(
    register_webhook.sync_detailed(
        client=postline, idempotency_key=key(), body=wanted
    )
).data
check(isinstance(webhook.secret, str), "a webhook shows its secret once")

once = key()
body = ClientCreate(name=f"Northwind {once[:8]}", type_="brand", timezone="Europe/Berlin")
client = ok(create_client.sync_detailed(client=postline, idempotency_key=once, body=body)).data
check(client.name == body.name, "a client is created")
again = create_client.sync_detailed(client=postline, idempotency_key=once, body=body)
check(ok(again).data.id == client.id, "the same key answers the same client")
check(again.headers["Idempotent-Replayed"] == "true", "and says that it is a replay")

invite = ok(
    create_connect_invite.sync_detailed(
        client.id,
        client=postline,
        idempotency_key=key(),
        body=ConnectInviteCreate(platforms=platforms, expires_in_hours=1),
    )
).data
for platform in platforms:
    # What the invite page sends when a brand connects its account.
    form = {"platform": platform, "username": "northwind", "timezone": ""}
    status = httpx.post(str(invite.url), data=form).status_code
    check(status == 303, f"the invite page connects {platform}")


def all_accounts() -> list[Account] | None:
    page = ok(list_accounts.sync_detailed(client=postline, client_id=client.id, limit=2))
    found = list(page.data)
    while page.page.next_cursor is not None:
        page = ok(
            list_accounts.sync_detailed(client=postline, client_id=client.id, limit=2, cursor=page.page.next_cursor)
        )
        found += page.data
    return found if len(found) == len(platforms) else None


accounts = eventually("four accounts on two pages", all_accounts)
check(len({one.id for one in accounts}) == len(platforms), "a cursor leads through all accounts")

photo = Path(os.environ["POSTLINE_PHOTO"]).read_bytes()
upload = ok(
    presign_media.sync_detailed(
        client=postline,
        idempotency_key=key(),
        body=MediaPresign(file_name="coffee.jpg", content_type="image/jpeg", bytes_=len(photo), client_id=client.id),
    )
).data
put = httpx.put(str(upload.url), content=photo, headers=upload.headers.additional_properties)
check(put.is_success, "the presigned URL takes the file")
ok(
    register_media.sync_detailed(
        client=postline,
        idempotency_key=key(),
        body=MediaRegister(asset_id=upload.asset_id, client_id=client.id, alt_text="An espresso"),
    )
)


def publishable() -> Media | None:
    media = ok(get_media.sync_detailed(upload.asset_id, client=postline)).data
    return media if media.publishable else None


eventually("the photo is publishable", publishable)

link = "https://northwind.example/winter"
group = TargetSelectionInput(mode="group", client_id=client.id)
post = ok(
    create_post.sync_detailed(
        client=postline,
        idempotency_key=key(),
        body=PostCreate(
            client_id=client.id,
            content="Winter menu is here.",
            targets=group,
            media_ids=[upload.asset_id],
            variants=[
                VariantInput(platform="x", content_override=f"Winter menu: {link}"),
                VariantInput(platform="bluesky", overrides=NetworkOverrides(link=link)),
                VariantInput(
                    platform="pinterest",
                    overrides=NetworkOverrides(board_id="918273645", title="Winter menu", link=link),
                ),
            ],
            schedule=ScheduleInput(type_="at", scheduled_at=datetime.now(UTC) + timedelta(hours=1)),
        ),
    )
).data
check(post.status == "scheduled" and len(post.targets) == len(platforms), "a post has a target for each account")
board = next(one.overrides for one in post.variants if one.platform == "pinterest")["boardId"]
check(board == "918273645", "its variants keep their overrides")

two = ok(
    list_post_targets.sync_detailed(
        client=postline, post_id=post.id, platform=["x", "pinterest"]
    )
).data
check(len(two) == 2 and all(one.failure is None for one in two), "targets are listed by post and network")
for target in post.targets:
    now = PostTargetReschedule(scheduled_at=datetime.now(UTC))
    moved = ok(reschedule_post_target.sync_detailed(target.id, client=postline, body=now)).data
    check(moved.scheduled_at < datetime.now(UTC) + timedelta(seconds=1), f"the target on {moved.platform} is moved")


def published() -> Post | None:
    read = ok(get_post.sync_detailed(post.id, client=postline)).data
    return read if read.status == "published" else None


done = eventually("the post is published", published)
check(
    all(one.status == "published" and one.permalink is not None for one in done.targets),
    "every target is published, with its permalink",
)

today = datetime.now(UTC).date()
overview = ok(get_analytics_overview.sync_detailed(client=postline, from_=today, to=today, client_id=client.id)).data
check(overview.object_ == "workspace_analytics", "the overview has figures")
figures = ok(get_account_analytics.sync_detailed(accounts[0].id, client=postline, from_=today, to=today)).data
check(figures.social_account_id == accounts[0].id, "and so has an account")


def received() -> PostPublishedEvent | None:
    events = [json.loads(text) for text in httpx.get(receiver).json()]
    told = [PostPublishedEvent.from_dict(one) for one in events if one["type"] == "post.published"]
    return next((one for one in told if one.data.post_id == post.id), None)


event = eventually("post.published arrives", received)
check(event.data.counts.published == len(platforms), "the webhook received post.published")


def recorded() -> list[WebhookDelivery] | None:
    rows = ok(list_webhook_deliveries.sync_detailed(webhook.id, client=postline, event_type=event.type_)).data
    return [one for one in rows if one.event_id == event.id and one.status == "delivered"] or None


check(len(eventually("its delivery is recorded", recorded)) > 0, "and the delivery is recorded")

past = ScheduleInput(type_="at", scheduled_at=datetime(2020, 1, 1, tzinfo=UTC))
refused = create_post.sync_detailed(
    client=postline, idempotency_key=key(), body=PostCreate(client_id=client.id, targets=group, schedule=past)
).parsed
check(isinstance(refused, Problem) and refused.code == "schedule_in_past", "a refusal has a code to branch on")

ok(delete_webhook.sync_detailed(webhook.id, client=postline))
gone = get_webhook.sync_detailed(webhook.id, client=postline).parsed
check(isinstance(gone, Problem) and gone.code == "not_found", "the webhook is deleted")
print("the tour is over")
