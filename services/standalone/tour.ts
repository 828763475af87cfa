import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { platforms } from '#schemas/common.ts';
import type { Received, Receiver } from './receiver.ts';
import type { Screen } from './screen.ts';
import { showAnalytics } from './tour-analytics.ts';
import { showApproval } from './tour-approvals.ts';
import { TourClient } from './tour-client.ts';
import { showBulk, showPreview } from './tour-composing.ts';
import { prepareMedia } from './tour-media.ts';
import { showHandOver } from './tour-native.ts';
import { type RealAccount, showReal } from './tour-real.ts';

/**
 * The main job over HTTP, as a caller does it: a webhook, a client, a connect invite, ten accounts, a clip and a photo,
 * a preview, one post with ten targets and a first comment, and every event of the post at the webhook, then posts and
 * targets in one call. One account's network rate-limits the first try, one accepts and does not answer; one account
 * lives in another zone. Then a post is handed to a network's own scheduler, and taken back; a guest of the client
 * approves a post through a link, and a campaign moves by a day. Where the operator gave an account of Bluesky, one post
 * goes out for real.
 */

export interface TourOptions {
  readonly baseUrl: string;
  readonly key: string;
  /** A first-party session of the same workspace, and the workspace's zone. */
  readonly session: string;
  readonly timezone: string;
  /** Null: everything stays in the sandbox. */
  readonly real: (RealAccount & { readonly key: string }) | null;
  readonly screen: Screen;
  readonly receiver: Receiver;
  readonly signal: AbortSignal;
}

/** Accounts whose sandbox misbehaves once, by name; see the sandbox's table of faults. */
const usernames: Readonly<Record<string, string>> = {
  linkedin: 'rate-limit-once-northwind',
  facebook: 'timeout-after-once-northwind',
};
const homeZone = 'Europe/Berlin';
const farZone = 'America/New_York';
const farPlatform = 'pinterest';
const short = 'Winter menu is here ❄️☕ Maple cortado, spiced oat flat white, and a very good hot chocolate.';
const link = 'https://northwind.example/winter';

/** Three networks get the clip, all others the photo. */
const variantsWith = (clip: string) => [
  { platform: 'x', contentOverride: `${short} ${link}`, overrides: { firstComment: 'Book a table for Saturday ☕' } },
  { platform: 'bluesky', contentOverride: short, overrides: { link } },
  { platform: 'instagram', mediaIdsOverride: [clip] },
  { platform: 'youtube', mediaIdsOverride: [clip] },
  { platform: 'tiktok', mediaIdsOverride: [clip], overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE' } },
  { platform: 'pinterest', overrides: { boardId: '918273645', title: 'Winter menu', link } },
];

interface Target {
  readonly id: string;
  readonly platform: string;
  readonly status: string;
  readonly scheduledAt: string;
  readonly timezone: string;
  readonly attempts: number;
  readonly publishedAt: string | null;
  readonly permalink: string | null;
  readonly failure: { readonly code: string } | null;
  readonly retryAt: string | null;
}

interface Commented {
  readonly firstComment: string | null;
  readonly firstCommentExternalId: string | null;
  readonly firstCommentIssue: { readonly code: string } | null;
}

interface Post {
  readonly id: string;
  readonly status: string;
  readonly targets: readonly Target[];
}

const final = ['published', 'failed', 'canceled'];
/** The slowest target waits for a deadline of 3 s and a settle window of 10 s. */
const patienceMs = 60_000;

/** Now as a wall clock of the zone shows it, to the minute. */
const wallClock = (zone: string): string => {
  const parts = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' }).format(
    new Date(),
  );
  return parts.replace(' ', 'T');
};

/** Late in a minute the present minute would soon be "in the past": wait for the next one. */
const earlyInTheMinute = async (signal: AbortSignal): Promise<void> => {
  const seconds = new Date().getUTCSeconds();
  if (seconds > 50) await delay((60 - seconds) * 1_000, undefined, { signal });
};

/** A client with an account on every network, each connected over an invite as its owner would do it. */
const connectClient = async (http: TourClient, screen: Screen): Promise<{ readonly id: string }> => {
  const client = await http.post<{ id: string; name: string }>('/clients', {
    name: 'Northwind Coffee',
    type: 'brand',
    defaultPostMode: 'now',
    timezone: homeZone,
  });
  screen.event('client created', client.name);

  const invite = await http.post<{ url: string; expiresAt: string }>(`/clients/${client.id}/connect-invites`, {
    platforms,
    expiresInHours: 1,
  });
  screen.event('connect invite minted', `for ${platforms.length} platforms, until ${invite.expiresAt}`);

  for (const platform of platforms) {
    const username = usernames[platform] ?? 'northwind';
    await http.connect(invite.url, { platform, username, timezone: platform === farPlatform ? farZone : '' });
  }
  const accounts = await connected(http, client.id);
  screen.event('accounts connected', accounts.map((one) => one.platform).join(', '));
  return client;
};

export interface TourResult {
  readonly passed: boolean;
  /** The client whose sandbox accounts it connected. */
  readonly clientId: string;
}

/** It has passed when every target was published, and every event of the post arrived with both signatures. */
export const tour = async (options: TourOptions): Promise<TourResult> => {
  const { baseUrl, key, session, timezone, real, screen, receiver, signal } = options;
  const http = new TourClient(baseUrl, key, signal);
  screen.tourBegins();

  const endpoint = await http.post<{ id: string; url: string; secret: string }>('/webhooks', {
    url: `http://${receiver.host}/events`,
    events: ['post.*', 'target.*', 'media.*', 'analytics.refreshed'],
  });
  receiver.expect(endpoint.secret);
  screen.event('webhook registered', `post.*, target.*, media.*, analytics.refreshed to ${endpoint.url}`);

  const client = await connectClient(http, screen);

  const { photo, clip } = await prepareMedia(http, { clientId: client.id, receiver, screen, signal });

  await earlyInTheMinute(signal);
  const content = readFileSync(new URL('../../test/fixtures/tour-post.txt', import.meta.url), 'utf8').trim();
  const scheduledLocal = wallClock(homeZone);
  const body = {
    clientId: client.id,
    content,
    targets: { mode: 'group', clientId: client.id },
    mediaIds: [photo],
    mediaAltTexts: { [photo]: 'A cup of espresso with a spoon on a wooden table' },
    variants: variantsWith(clip),
    schedule: { type: 'at', scheduledLocal },
  };
  await showPreview(http, screen, body);
  const post = await http.post<Post>('/posts', body);
  screen.event('post composed', `${post.targets.length} targets, each due ${scheduledLocal} in its own zone`);

  const far = post.targets.find((target) => target.platform === farPlatform);
  if (far !== undefined) {
    screen.event(`${far.platform} is due later`, `${far.scheduledAt}, as ${far.timezone} has it: moved to now`);
    await http.post(`/post-targets/${far.id}/reschedule`, { scheduledAt: new Date().toISOString() });
  }
  const { post: done, notes } = await watch(http, post.id, screen);
  screen.table(
    ['platform', 'status', 'published', 'attempts', 'permalink', ''],
    done.targets.map((target) => [
      target.platform,
      target.status,
      target.publishedAt ?? '–',
      String(target.attempts),
      target.permalink ?? target.failure?.code ?? '–',
      notes.get(target.id) ?? '',
    ]),
    1,
  );
  const commented = await showComment(http, done, options);
  const published = done.targets.filter((target) => target.status === 'published').length;
  const received = await receivedEvents(http, endpoint.id, receiver, post.id, signal);
  showEvents(received, done, screen);
  const signed = received.filter(({ standard, service }) => standard && service).length;
  const whole = published === platforms.length && commented && received.some(isLast);
  const passed = whole && signed === received.length;
  const events = `${signed} of ${received.length} events arrived with both signatures valid`;
  screen.result(
    passed,
    `${published} of ${done.targets.length} targets published; the post is ${done.status}; ${events}`,
  );
  await showBulk(http, screen, client.id);
  const handedOver = await showHandOver({ http, clientId: client.id, clip, screen, signal });
  const approved = await showApproval({ http, clientId: client.id, screen, signal });
  const member = new TourClient(baseUrl, session, signal);
  const analysed = await showAnalytics({ http, member, timezone, receiver, screen, signal });
  await http.delete(`/webhooks/${endpoint.id}`);
  const seen =
    real === null ||
    (await showReal({ http: new TourClient(baseUrl, real.key, signal), real, content: short, screen }));
  return { passed: passed && handedOver && approved && analysed && seen, clientId: client.id };
};

/** Waits for the event of the comment, as an integration does that does not poll. True when it is posted. */
const showComment = async (
  http: TourClient,
  post: Post,
  { receiver, screen, signal }: Pick<TourOptions, 'receiver' | 'screen' | 'signal'>,
): Promise<boolean> => {
  const target = post.targets.find(({ platform }) => platform === 'x');
  const isAbout = ({ type, data }: Received) =>
    type.startsWith('target.first_comment_') && data.targetId === target?.id;
  for (const until = performance.now() + patienceMs; performance.now() < until; ) {
    if (receiver.received.some(isAbout)) break;
    await delay(50, undefined, { signal });
  }
  const { firstComment, firstCommentExternalId, firstCommentIssue } = await http.get<Commented>(
    `/post-targets/${target?.id}`,
  );
  const said = firstCommentIssue === null ? `“${firstComment}” as ${firstCommentExternalId}` : firstCommentIssue.code;
  screen.event(`x first comment ${firstCommentIssue === null ? 'posted' : 'failed'}`, said);
  return firstCommentExternalId !== null;
};

const isLast = ({ type }: Received): boolean => type === 'post.published';

/** Events about the post at the webhook, once every delivery was accepted. */
const receivedEvents = async (
  http: TourClient,
  endpointId: string,
  receiver: Receiver,
  postId: string,
  signal: AbortSignal,
): Promise<readonly Received[]> => {
  const own = () => receiver.received.filter(({ data }) => data.postId === postId);
  for (const until = performance.now() + patienceMs; performance.now() < until; ) {
    const pending = await http.get<unknown[]>(`/webhooks/${endpointId}/deliveries?status=pending&limit=1`);
    if (pending.length === 0 && own().some(isLast)) break;
    await delay(100, undefined, { signal });
  }
  return own();
};

const showEvents = (received: readonly Received[], post: Post, screen: Screen): void => {
  const platformOf = new Map(post.targets.map(({ id, platform }) => [id, platform]));
  const rows = [...received]
    .sort((a, b) => a.created.localeCompare(b.created))
    .map(({ id, type, created, data, attempt, standard, service }) => [
      type,
      platformOf.get(String(data.targetId)) ?? '–',
      created,
      id,
      String(attempt),
      standard && service ? 'both valid' : 'NOT VALID',
    ]);
  screen.table(['event at the webhook', 'platform', 'created', 'webhook-id', 'attempt', 'signatures'], rows, -1);
};

/** The guest of the invite page connected them: our own reads need not show them at once. */
const connected = async (http: TourClient, clientId: string): Promise<readonly { readonly platform: string }[]> => {
  const until = performance.now() + patienceMs;
  for (;;) {
    const accounts = await http.get<{ platform: string }[]>(`/accounts?clientId=${clientId}&limit=100`);
    if (accounts.length >= platforms.length || performance.now() > until) return accounts;
    await delay(50);
  }
};

/**
 * A publication seen this long after it happened came without an answer: reconciling with the network found it.
 * Milliseconds.
 */
const unansweredMs = 2_500;

/** The observed course of a target. */
const noteOf = (target: Target): string | null => {
  if (target.status === 'rate_limited') return 'rate-limited, then tried again';
  if (target.status === 'outcome_unknown') return 'accepted without an answer, found by asking';
  const { publishedAt } = target;
  const late = publishedAt !== null && Date.now() - Date.parse(publishedAt) > unansweredMs;
  return late ? 'accepted without an answer, found by asking' : null;
};

interface Watched {
  readonly post: Post;
  readonly notes: ReadonlyMap<string, string>;
}

/** Prints each change of a target until all targets, and the post, have ended. */
const watch = async (http: TourClient, postId: string, screen: Screen): Promise<Watched> => {
  const shown = new Map<string, string>();
  const notes = new Map<string, string>();
  const until = performance.now() + patienceMs;
  for (;;) {
    const post = await http.get<Post>(`/posts/${postId}`);
    for (const target of post.targets) {
      const said = `${target.status} ${target.attempts}`;
      if (shown.get(target.id) === said) continue;
      const note = noteOf(target);
      if (note !== null && !notes.has(target.id)) notes.set(target.id, note);
      if (shown.has(target.id) || target.status !== 'pending') show(target, screen, note);
      shown.set(target.id, said);
    }
    const settled =
      post.targets.every((target) => final.includes(target.status)) &&
      final.concat('partially_published').includes(post.status);
    if (settled || performance.now() > until) return { post, notes };
    await delay(150);
  }
};

const show = (target: Target, screen: Screen, note: string | null): void => {
  const why = target.failure === null ? '' : `${target.failure.code} `;
  const next = target.retryAt === null ? '' : `tried again at ${target.retryAt}`;
  const found = target.status === 'published' && note !== null ? `  (${note})` : '';
  screen.event(`${target.platform} ${target.status}`, `${target.permalink ?? `${why}${next}`}${found}`, target.status);
};
