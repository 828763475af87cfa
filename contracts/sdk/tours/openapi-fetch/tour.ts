/**
 * The main job through openapi-fetch, with types by openapi-typescript: a webhook, a client, four accounts, a photo, a
 * post with its targets, figures, events, and an error.
 *
 *     npx openapi-typescript https://<host>/v1/openapi.json -o postline.d.ts
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import createClient from 'openapi-fetch';
import type { components, paths } from 'postline';

type Account = components['schemas']['Account'];
type PostPublishedEvent = components['schemas']['PostPublishedEvent'];

const setting = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`set ${name}`);
  return value;
};

const postline = createClient<paths>({
  baseUrl: setting('POSTLINE_URL'),
  headers: { authorization: `Bearer ${setting('POSTLINE_KEY')}` },
  // openapi-fetch knows the types alone: our lists are separated by commas.
  querySerializer: { array: { style: 'form', explode: false } },
});
/** Every POST that creates something takes a key: a repeat with the same key creates nothing. */
const withKey = (key: string = randomUUID()) => ({ header: { 'Idempotency-Key': key } });

/** The result of a call. @throws the problem that the server answered */
const ok = <Body extends { data: unknown }>(answer: {
  readonly data?: Body;
  readonly error?: unknown;
  readonly response: Response;
}): Body['data'] => {
  if (answer.data === undefined) throw new Error(`${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data.data;
};

const check = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(`not so: ${what}`);
  console.log(`ok  ${what}`);
};

const eventually = async <Value>(what: string, look: () => Promise<Value | null>): Promise<Value> => {
  for (const until = Date.now() + 60_000; Date.now() < until; await delay(150)) {
    const value = await look();
    if (value !== null) return value;
  }
  throw new Error(`not within a minute: ${what}`);
};

const platforms = ['x', 'bluesky', 'instagram', 'pinterest'];

const webhook = ok(
  await postline.POST('/webhooks', {
    params: withKey(),
    body: { url: setting('POSTLINE_RECEIVER'), events: ['post.*', 'target.published'] },
  }),
);
check(typeof webhook.secret === 'string', 'a webhook shows its secret once');

const key = randomUUID();
const client = { name: `Northwind ${key.slice(0, 8)}`, type: 'brand', timezone: 'Europe/Berlin' };
const { id: clientId, name } = ok(await postline.POST('/clients', { params: withKey(key), body: client }));
check(name === client.name, 'a client is created');
const again = await postline.POST('/clients', { params: withKey(key), body: client });
check(ok(again).id === clientId, 'the same key answers the same client');
check(again.response.headers.get('idempotent-replayed') === 'true', 'and says that it is a replay');

const invite = ok(
  await postline.POST('/clients/{id}/connect-invites', {
    params: { path: { id: clientId }, ...withKey() },
    body: { platforms, expiresInHours: 1 },
  }),
);
for (const platform of platforms) {
  // What the invite page sends when a brand connects its account.
  const body = new URLSearchParams({ platform, username: 'northwind', timezone: '' });
  const { status } = await fetch(invite.url ?? '', { method: 'POST', body, redirect: 'manual' });
  check(status === 303, `the invite page connects ${platform}`);
}

const pageOf = async (cursor?: string) => {
  const query = { clientId, limit: 2, ...(cursor === undefined ? {} : { cursor }) };
  const { data, error } = await postline.GET('/accounts', { params: { query } });
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
};
const accounts = await eventually('four accounts on two pages', async () => {
  const found: Account[] = [];
  let page = await pageOf();
  for (found.push(...page.data); page.page.nextCursor !== null; found.push(...page.data)) {
    page = await pageOf(page.page.nextCursor);
  }
  return found.length === platforms.length ? found : null;
});
check(new Set(accounts.map(({ id }) => id)).size === platforms.length, 'a cursor leads through all accounts');

const photo = await readFile(setting('POSTLINE_PHOTO'));
const upload = ok(
  await postline.POST('/media/presign', {
    params: withKey(),
    body: { fileName: 'coffee.jpg', contentType: 'image/jpeg', bytes: photo.length, clientId },
  }),
);
const put = await fetch(upload.url ?? '', { method: 'PUT', headers: upload.headers, body: new Uint8Array(photo) });
check(put.ok, 'the presigned URL takes the file');
const { assetId } = upload;
ok(await postline.POST('/media', { params: withKey(), body: { assetId, clientId, altText: 'An espresso' } }));
await eventually('the photo is publishable', async () => {
  const media = ok(await postline.GET('/media/{id}', { params: { path: { id: assetId } } }));
  return media.publishable ? media : null;
});

const link = 'https://northwind.example/winter';
const post = ok(
  await postline.POST('/posts', {
    params: withKey(),
    body: {
      clientId,
      content: 'Winter menu is here.',
      targets: { mode: 'group', clientId },
      mediaIds: [assetId],
      mediaAltTexts: { [assetId]: 'An espresso with a spoon' },
      variants: [
        { platform: 'x', contentOverride: `Winter menu: ${link}` },
        { platform: 'bluesky', overrides: { link } },
        { platform: 'pinterest', overrides: { boardId: '918273645', title: 'Winter menu', link } },
      ],
      schedule: { type: 'at', scheduledAt: new Date(Date.now() + 3_600_000).toISOString() },
    },
  }),
);
check(post.status === 'scheduled' && post.targets.length === platforms.length, 'a post has a target for each account');
const board = post.variants.find(({ platform }) => platform === 'pinterest')?.overrides.boardId;
check(board === '918273645', 'its variants keep their overrides');

const path = (id: string) => ({ path: { id } });
const query = { postId: post.id, platform: ['x', 'pinterest'] };
const two = ok(await postline.GET('/post-targets', { params: { query } }));
check(two.length === 2 && two.every(({ failure }) => failure === null), 'targets are listed by post and network');
for (const { id } of post.targets) {
  const now = new Date().toISOString();
  const moved = ok(
    await postline.POST('/post-targets/{id}/reschedule', { params: path(id), body: { scheduledAt: now } }),
  );
  check(Date.parse(moved.scheduledAt) <= Date.now() + 1_000, `the target on ${moved.platform} is moved to now`);
}
const done = await eventually('the post is published', async () => {
  const read = ok(await postline.GET('/posts/{id}', { params: path(post.id) }));
  return read.status === 'published' ? read : null;
});
check(
  done.targets.every(({ status, permalink }) => status === 'published' && permalink !== null),
  'every target is published, with its permalink',
);

const today = new Date().toISOString().slice(0, 10);
const range = { from: today, to: today };
const overview = ok(await postline.GET('/analytics/overview', { params: { query: { ...range, clientId } } }));
check(overview.object === 'workspace_analytics', 'the overview has figures');
const account = accounts[0]?.id ?? '';
const figures = ok(await postline.GET('/analytics/accounts/{id}', { params: { ...path(account), query: range } }));
check(figures.socialAccountId === account, 'and so has an account');

const received = async (): Promise<PostPublishedEvent[]> => {
  const events = (await (await fetch(setting('POSTLINE_RECEIVER'))).json()) as string[];
  return events.map((text) => JSON.parse(text)).filter(({ type }) => type === 'post.published');
};
const event = await eventually('post.published arrives', async () => {
  return (await received()).find(({ data }) => data.postId === post.id) ?? null;
});
check(event.data.counts.published === platforms.length, 'the webhook received post.published');
const deliveries = await eventually('its delivery is recorded', async () => {
  const params = { ...path(webhook.id), query: { eventType: event.type } };
  const rows = ok(await postline.GET('/webhooks/{id}/deliveries', { params }));
  return rows.some(({ eventId, status }) => eventId === event.id && status === 'delivered') ? rows : null;
});
check(deliveries.length > 0, 'and the delivery is recorded');

const { error: refusal } = await postline.POST('/posts', {
  params: withKey(),
  body: {
    clientId,
    targets: { mode: 'group', clientId },
    schedule: { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' },
  },
});
check(refusal?.code === 'schedule_in_past' && refusal.status === 422, 'a refusal has a code to branch on');

const { response } = await postline.DELETE('/webhooks/{id}', { params: path(webhook.id) });
check(response.ok, 'the webhook is deleted');
const { error: gone } = await postline.GET('/webhooks/{id}', { params: path(webhook.id) });
check(gone?.code === 'not_found', 'and is not found any more');
console.log('the tour is over');
