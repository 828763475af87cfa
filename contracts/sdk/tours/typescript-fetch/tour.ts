/**
 * The main job through a client by openapi-generator's `typescript-fetch`: a webhook, a client, four accounts, a photo, a
 * post with its targets, figures, events, and an error.
 *
 *     openapi-generator-cli generate -i https://<host>/v1/openapi.json -g typescript-fetch -o postline
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Account,
  AccountsApi,
  AnalyticsApi,
  type ClientCreate,
  ClientsApi,
  Configuration,
  MediaApi,
  PostPublishedEventFromJSON,
  PostsApi,
  PostTargetsApi,
  type Problem,
  ProblemFromJSON,
  ResponseError,
  WebhooksApi,
} from 'postline';

const setting = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`set ${name}`);
  return value;
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

/** What the server refused a call with. */
const problemOf = async (call: Promise<unknown>): Promise<Problem> => {
  const error = await call.then(() => new Error('the server did not refuse')).catch((refusal: unknown) => refusal);
  if (error instanceof ResponseError) return ProblemFromJSON(await error.response.json());
  throw error;
};

const configuration = new Configuration({
  basePath: setting('POSTLINE_URL'),
  accessToken: setting('POSTLINE_KEY'),
});
const clients = new ClientsApi(configuration);
const accounts = new AccountsApi(configuration);
const media = new MediaApi(configuration);
const posts = new PostsApi(configuration);
const targets = new PostTargetsApi(configuration);
const analytics = new AnalyticsApi(configuration);
const webhooks = new WebhooksApi(configuration);
const receiver = setting('POSTLINE_RECEIVER');
const platforms = ['x', 'bluesky', 'instagram', 'pinterest'];
/** Every POST that creates something takes a key: a repeat with the same key creates nothing. */
const key = (): string => randomUUID();

const { data: webhook } = await webhooks.registerWebhook({
  idempotencyKey: key(),
  webhookCreate: { url: receiver, events: ['post.*', 'target.published'] },
});
check(typeof webhook.secret === 'string', 'a webhook shows its secret once');

const once = key();
const clientCreate: ClientCreate = { name: `Northwind ${once.slice(0, 8)}`, type: 'brand', timezone: 'Europe/Berlin' };
const { data: client } = await clients.createClient({ idempotencyKey: once, clientCreate });
check(client.name === clientCreate.name, 'a client is created');
const again = await clients.createClientRaw({ idempotencyKey: once, clientCreate });
check((await again.value()).data.id === client.id, 'the same key answers the same client');
check(again.raw.headers.get('idempotent-replayed') === 'true', 'and says that it is a replay');

const { data: invite } = await clients.createConnectInvite({
  id: client.id,
  idempotencyKey: key(),
  connectInviteCreate: { platforms, expiresInHours: 1 },
});
for (const platform of platforms) {
  // What the invite page sends when a brand connects its account.
  const body = new URLSearchParams({ platform, username: 'northwind', timezone: '' });
  const { status } = await fetch(invite.url ?? '', { method: 'POST', body, redirect: 'manual' });
  check(status === 303, `the invite page connects ${platform}`);
}

const connected = await eventually('four accounts on two pages', async () => {
  const found: Account[] = [];
  let page = await accounts.listAccounts({ clientId: client.id, limit: 2 });
  for (found.push(...page.data); page.page.nextCursor !== null; found.push(...page.data)) {
    page = await accounts.listAccounts({ clientId: client.id, limit: 2, cursor: page.page.nextCursor });
  }
  return found.length === platforms.length ? found : null;
});
check(new Set(connected.map(({ id }) => id)).size === platforms.length, 'a cursor leads through all accounts');

const photo = await readFile(setting('POSTLINE_PHOTO'));
const { data: upload } = await media.presignMedia({
  idempotencyKey: key(),
  mediaPresign: { fileName: 'coffee.jpg', contentType: 'image/jpeg', bytes: photo.length, clientId: client.id },
});
const put = await fetch(upload.url ?? '', { method: 'PUT', headers: upload.headers, body: new Uint8Array(photo) });
check(put.ok, 'the presigned URL takes the file');
const { assetId } = upload;
await media.registerMedia({
  idempotencyKey: key(),
  mediaRegister: { assetId, clientId: client.id, altText: 'An espresso' },
});
await eventually('the photo is publishable', async () => {
  const { data } = await media.getMedia({ id: assetId });
  return data.publishable ? data : null;
});

const link = 'https://northwind.example/winter';
const group = { mode: 'group', clientId: client.id } as const;
const { data: post } = await posts.createPost({
  idempotencyKey: key(),
  postCreate: {
    clientId: client.id,
    content: 'Winter menu is here.',
    targets: group,
    mediaIds: [assetId],
    mediaAltTexts: { [assetId]: 'An espresso with a spoon' },
    variants: [
      { platform: 'x', contentOverride: `Winter menu: ${link}` },
      { platform: 'bluesky', overrides: { link } },
      { platform: 'pinterest', overrides: { boardId: '918273645', title: 'Winter menu', link } },
    ],
    schedule: { type: 'at', scheduledAt: new Date(Date.now() + 3_600_000) },
  },
});
check(post.status === 'scheduled' && post.targets.length === platforms.length, 'a post has a target for each account');
const board = post.variants.find(({ platform }) => platform === 'pinterest')?.overrides.boardId;
check(board === '918273645', 'its variants keep their overrides');

const { data: two } = await targets.listPostTargets({
  postId: post.id,
  platform: ['x', 'pinterest'],
});
check(two.length === 2 && two.every(({ failure }) => failure === null), 'targets are listed by post and network');
for (const { id } of post.targets) {
  const { data } = await targets.reschedulePostTarget({ id, postTargetReschedule: { scheduledAt: new Date() } });
  check(data.scheduledAt.getTime() < Date.now() + 1_000, `the target on ${data.platform} is moved to now`);
}
const done = await eventually('the post is published', async () => {
  const { data } = await posts.getPost({ id: post.id });
  return data.status === 'published' ? data : null;
});
check(
  done.targets.every(({ status, permalink }) => status === 'published' && permalink !== null),
  'every target is published, with its permalink',
);

const range = { from: new Date(), to: new Date() };
const { data: overview } = await analytics.getAnalyticsOverview({ ...range, clientId: client.id });
check(overview.object === 'workspace_analytics', 'the overview has figures');
const account = connected[0]?.id ?? '';
const { data: figures } = await analytics.getAccountAnalytics({ id: account, ...range });
check(figures.socialAccountId === account, 'and so has an account');

const event = await eventually('post.published arrives', async () => {
  const texts = (await (await fetch(receiver)).json()) as string[];
  const events = texts.map((text) => JSON.parse(text)).filter(({ type }) => type === 'post.published');
  return events.map(PostPublishedEventFromJSON).find(({ data }) => data.postId === post.id) ?? null;
});
check(event.data.counts.published === platforms.length, 'the webhook received post.published');
const deliveries = await eventually('its delivery is recorded', async () => {
  const { data } = await webhooks.listWebhookDeliveries({ id: webhook.id, eventType: event.type });
  return data.some(({ eventId, status }) => eventId === event.id && status === 'delivered') ? data : null;
});
check(deliveries.length > 0, 'and the delivery is recorded');

const past = { type: 'at', scheduledAt: new Date('2020-01-01T00:00:00Z') } as const;
const refused = await problemOf(
  posts.createPost({ idempotencyKey: key(), postCreate: { clientId: client.id, targets: group, schedule: past } }),
);
check(refused.code === 'schedule_in_past' && refused.status === 422, 'a refusal has a code to branch on');

await webhooks.deleteWebhook({ id: webhook.id });
const gone = await problemOf(webhooks.getWebhook({ id: webhook.id }));
check(gone.code === 'not_found', 'the webhook is deleted');
console.log('the tour is over');
