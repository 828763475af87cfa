import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import sharp from 'sharp';
import { capabilities } from '#domain/platforms/index.ts';
import { platforms } from '#schemas/common.ts';
import type { Random } from '#test/support/seed.ts';
import { saysNoOther } from './builds.ts';
import type { Subject } from './desk.ts';
import { insist, patienceMs } from './insist.ts';
import type { Past } from './past.ts';

/**
 * Callers that continue through any fault: every call has its key, and a call with an unknown outcome is repeated under
 * the same key until the outcome is known. Acknowledged calls are kept, to be repeated afterwards.
 */

type Json = Readonly<Record<string, unknown>>;

/** A keyed call and its answer when its outcome became known. */
export interface Reported {
  readonly path: string;
  readonly key: string;
  readonly body: unknown;
  readonly data: Json & { readonly id: string };
  /** A repeat must give exactly the same answer; otherwise (a client that another key may have created) the same id. */
  readonly exact: boolean;
}

export interface AcknowledgedPost {
  readonly id: string;
  /** Null while it is a draft. */
  readonly targetIds: readonly string[] | null;
}

interface Account {
  readonly id: string;
  readonly platform: string;
}

interface Answered {
  readonly status: number;
  readonly code: string | null;
  readonly data: Json & { readonly id: string };
  /** The consistency token of a write. */
  readonly written: string | null;
}

/** The type of a problem names the address that answered, and a standalone that starts again has another port. */
const withoutOrigin = (data: Json): string =>
  JSON.stringify(data).replaceAll(/"type":"https?:\/\/[^/"]+\//g, '"type":"/');

export const actionNames = [
  'now',
  'at',
  'range',
  'draft',
  'move',
  'bulk',
  'shift',
  'campaign',
  'approve',
  'revise',
  'mend',
  'withdraw',
  'discard',
  'retry',
  'limited',
  'contained',
  'processed',
  'thread',
  'commented',
  'orphan',
  'lapse',
  'native',
  'archive',
  'disconnect',
  'race',
  'rename',
  'refer',
  'connect',
  'hear',
  'upload',
  'filled',
  'refresh',
  'restyle',
  'gone',
  'report',
  'planned',
  'recycled',
  'paced',
] as const;
export type ActionName = (typeof actionNames)[number];
/** Actions that the build before refuses: a load that meets it leaves them out. */
const sinceBefore: readonly ActionName[] = [
  'processed',
  'commented',
  'bulk',
  'shift',
  'campaign',
  'approve',
  'native',
  'revise',
  'mend',
  'withdraw',
  'discard',
  'disconnect',
  'refer',
  'restyle',
  'recycled',
  'paced',
];

/** Actions whose targets end minutes later. */
const ofLongRuns: readonly ActionName[] = ['paced'];

/** Behaviour of the network for a post, at most once each, so that every target can end. */
const directives = [
  'timeout_after once',
  'timeout_before once',
  'late once 700ms',
  'rate_limit once 300ms',
  'error_after once',
  'error_before once',
  'slow once 500ms',
  'hang once 400ms',
  'hang once 2500ms',
  'reject once',
  'duplicate once',
  'down once',
  'unreadable 800ms',
];
/** Behaviour of the network for a first comment. */
const ofComments = [
  'timeout_after once',
  'timeout_before once',
  'error_after once',
  'rate_limit once 300ms',
  'down once',
  'reject once',
];

/** Of a post for the network's own scheduler; none leaves its outcome open. */
const nativeDirectives = [
  '',
  '[[sandbox:timeout_after once]]',
  '[[sandbox:undo_timeout_after once]]',
  '[[sandbox:undo_timeout_before once]]',
];
/** What networks do that look at a post before they show it: each shows or refuses it in the end. */
const looking = [
  'processing 700ms',
  'processing once 2s',
  'processing 400ms]] [[sandbox:timeout_after once',
  'processing_failed once 500ms',
];
const contained = ['instagram', 'threads', 'youtube', 'tiktok', 'facebook'];

const required: Readonly<Record<string, Json>> = {
  tiktok: { privacyLevel: 'PUBLIC_TO_EVERYONE' },
  pinterest: { boardId: '918273645' },
  youtube: { title: 'Hello' },
};

const hourMs = 3_600_000;
/** Looks at a target after which its outcome is taken to stay unknown: its network was asked several times meanwhile. */
const maxUnknown = 15;

export interface LoadOptions {
  /** Origin of the api, null while it is down. */
  readonly origin: () => string | null;
  readonly token: string;
  /** A console token, for operations that a key may not call. */
  readonly session: () => Promise<string>;
  /** Advances the network's clock by some hours. */
  readonly passHours: () => Promise<void>;
  /** By the network's clock, milliseconds since the epoch. */
  readonly networkNow: () => Promise<number>;
  /** Makes a report about the subject: now, or by a schedule that is due. */
  readonly report: (about: Subject, planned: boolean) => Promise<void>;
  /** A post to the account that was published a day ago, and whose copy is due in a moment. */
  readonly recycled: Past['recycled'];
  /** A workspace of its own: the token of a key, and what makes its accounts wait between two posts. */
  readonly paced: () => Promise<{ readonly token: string; readonly pace: () => Promise<void> }>;
  readonly random: Random;
  /** Part of every name, so that two loads share nothing. */
  readonly tag: string;
  /** An asset for the networks without text-only posts. */
  readonly clipId: string;
  /** Two builds answer: a member that only one of them knows may be missing. */
  readonly mixed: () => boolean;
}

/** Networks without text-only posts. */
const visual = platforms.filter((platform) => !capabilities(platform).textOnly);
const takingComments: readonly string[] = platforms.filter((platform) => capabilities(platform).firstComment);

export class Load {
  readonly reported: Reported[] = [];
  readonly posts: AcknowledgedPost[] = [];
  readonly violations: string[] = [];
  /** Answers that reported an unavailable dependency. */
  unavailable = 0;
  /** Calls without an answer. */
  unanswered = 0;
  readonly #options: LoadOptions;
  #clientId = '';
  #accounts: readonly Account[] = [];
  #count = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** A client with an account on every platform. */
  async prepare(): Promise<void> {
    this.#clientId = await this.#client(this.#name('home'));
    this.#accounts = await this.#connect(
      this.#clientId,
      platforms.map((platform) => ({ platform, username: `${platform}-${this.#options.tag}` })),
    );
  }

  run(action: ActionName): Promise<void> {
    return this.#actions[action]();
  }

  /** A post to the account of one platform, due at once. Returns its target. */
  async one(platform: string, directive: string): Promise<string> {
    const accounts = this.#accounts.filter((account) => account.platform === platform);
    const [target] = this.#targetsOf(await this.#post({ type: 'now' }, accounts, directive));
    if (target === undefined) throw new Error(`a post to ${platform} was refused`);
    return target;
  }

  /** Posts that are due within these milliseconds. */
  async upcoming(count: number, low: number, high: number): Promise<void> {
    for (let n = 0; n < count; n += 1)
      await this.#post({ type: 'at', scheduledAt: this.#in(low, high) }, this.#some(4), '');
  }

  /**
   * Concurrent callers until the signal aborts; each ends its action first.
   * @param long whether the run has minutes until all is quiet
   */
  async keepGoing(callers: number, signal: AbortSignal, long = false): Promise<void> {
    const known = actionNames.filter((name) => !this.#options.mixed() || !sinceBefore.includes(name));
    const names = known.filter((name) => long || !ofLongRuns.includes(name));
    const one = async (): Promise<void> => {
      while (!signal.aborted) {
        await this.run(this.#options.random.pick(names));
        await delay(this.#options.random.int(20, 250));
      }
    };
    await Promise.all(Array.from({ length: callers }, one));
  }

  #isSame(first: Json, again: Json): boolean {
    if (!this.#options.mixed()) return withoutOrigin(first) === withoutOrigin(again);
    return saysNoOther(first, again) || saysNoOther(again, first);
  }

  /** Repeats acknowledged calls, under the same keys. */
  async repeat(most: number): Promise<void> {
    const some = this.#options.random.shuffle(this.reported).slice(0, most);
    for (const { path, key, body, data, exact } of some) {
      const again = await this.call('POST', path, body, key);
      if (again.status !== 200)
        this.#wrong(`${path} ${key}: acknowledged, then answered ${again.status} ${again.code}`);
      else if (again.data.id !== data.id) this.#wrong(`${path} ${key}: was ${data.id}, is ${again.data.id}`);
      else if (exact && !this.#isSame(data, again.data)) {
        this.#wrong(`${path} ${key}: another answer: ${JSON.stringify(data)} then ${JSON.stringify(again.data)}`);
      }
    }
    for (const { id, targetIds } of this.posts) {
      const found = await this.get(`/posts/${id}`);
      if (found.status !== 200) this.#wrong(`post ${id} was acknowledged and is answered with ${found.status}`);
      const shown = (found.data?.targets as readonly { id: string }[] | undefined)?.map((one) => one.id) ?? [];
      const lost = targetIds?.filter((one) => !shown.includes(one)) ?? [];
      if (lost.length > 0) this.#wrong(`post ${id} was acknowledged with targets that are not there: ${lost}`);
    }
  }

  /** @param after the token of the write that the answer must show, also from a process that did not make it */
  get(path: string, after: string | null = null): Promise<Answered> {
    return this.#call('GET', path, after === null ? {} : { 'x-consistency-token': after }, undefined);
  }

  readonly #actions: Readonly<Record<ActionName, () => Promise<void>>> = {
    now: async () => void (await this.#post({ type: 'now' }, this.#some(4))),
    at: async () => void (await this.#post({ type: 'at', scheduledAt: this.#in(400, 2_500) }, this.#some(3))),
    range: async () =>
      void (await this.#post({ type: 'range', from: this.#in(300, 600), to: this.#in(1_500, 3_000) }, this.#some(4))),
    limited: async () => void (await this.#post({ type: 'now' }, this.#some(4), '[[sandbox:rate_limit once 300ms]]')),
    contained: async () =>
      void (await this.#post(
        { type: 'now' },
        this.#accounts.filter((one) => contained.includes(one.platform)),
        '',
      )),
    processed: async () => {
      const accounts = this.#accounts.filter(({ platform }) => ['facebook', 'tiktok', 'youtube'].includes(platform));
      await this.#post({ type: 'now' }, accounts, `[[sandbox:${this.#options.random.pick(looking)}]]`);
    },
    thread: async () => {
      const accounts = this.#accounts.filter(({ platform }) => platform === 'x' || platform === 'threads');
      const segments = [1, 2, 3].map(() => ({ content: this.#text() }));
      const body = { clientId: this.#clientId, ...this.#body({ type: 'now' }, accounts, ''), thread: { segments } };
      const made = await this.#keyed('/posts', body);
      if (made !== null) this.#remember(made);
    },
    commented: async () => {
      const { random } = this.#options;
      const accounts = this.#accounts.filter(({ platform }) => takingComments.includes(platform));
      const body = this.#body({ type: 'now' }, accounts, this.#text(''));
      const variants = takingComments.map((platform) => {
        const directive = random.int(0, 2) > 0 ? '' : `[[sandbox:${random.pick(ofComments)}]]`;
        const firstComment = `${this.#name('first')} ${directive}`.trim();
        const own = body.variants.find((one) => one.platform === platform);
        return { platform, ...own, overrides: { ...required[platform], firstComment } };
      });
      const made = await this.#keyed('/posts', { clientId: this.#clientId, ...body, variants });
      if (made !== null) this.#remember(made);
    },
    // A long publish: a process that dies meanwhile leaves something to take over.
    orphan: async () => {
      await this.#post({ type: 'now' }, this.#accounts, '[[sandbox:slow 1500ms]]');
      // Only a pace: the death that needs the publish comes with this action or with its next run.
      await delay(500);
    },
    draft: async () => {
      const body = this.#body({ type: 'now' }, this.#some(3), this.#text());
      const draft = await this.#keyed('/posts', { ...body, clientId: this.#clientId, saveDraft: true });
      if (draft === null) return;
      this.posts.push({ id: draft.id, targetIds: null });
      if (this.#options.random.int(0, 1) === 1) {
        await this.call('PATCH', `/posts/${draft.id}`, { ...body, content: this.#text() });
      }
      const published = await this.#keyed(`/posts/${draft.id}/publish`, {});
      if (published !== null) this.#remember(published);
    },
    move: async () => {
      const post = await this.#post({ type: 'at', scheduledAt: this.#in(hourMs, hourMs) }, this.#some(3));
      const [first, second] = this.#targetsOf(post);
      if (first !== undefined)
        await this.#keyed(`/post-targets/${first}/reschedule`, { scheduledAt: this.#in(600, 1_500) });
      if (second !== undefined) await this.#keyed(`/post-targets/${second}/cancel`, undefined);
    },
    bulk: async () => {
      const one = (content: string) => ({
        clientId: this.#clientId,
        ...this.#body({ type: 'now' }, this.#some(2), content),
      });
      const own = { ...one(this.#text('')), idempotencyKey: randomUUID() };
      // Where a clip goes out, nothing must be said beside it.
      const textOnly = this.#accounts.filter(({ platform }) => platform === 'x');
      const empty = { clientId: this.#clientId, ...this.#body({ type: 'now' }, textOnly, ' ') };
      const posts = [one(this.#text('')), own, empty, own, one(this.#text(''))];
      const done = await this.#keyed('/posts/bulk', { posts });
      const results = (done?.results ?? []) as readonly { readonly status: string; readonly post?: Json }[];
      const reported = results.map(({ status }) => status).join();
      if (done !== null && reported !== 'created,created,rejected,created,created')
        this.#wrong(`a bulk ended as ${reported}`);
      for (const { post } of results) if (post !== undefined) this.#remember(post);
    },
    shift: async () => {
      const post = await this.#post({ type: 'at', scheduledAt: this.#in(hourMs, hourMs) }, this.#some(4));
      const targetIds = this.#targetsOf(post);
      if (targetIds.length === 0) return;
      const wanted = {
        action: 'reschedule',
        targetIds: [...targetIds, randomUUID()],
        scheduledAt: this.#in(600, 1_500),
      };
      const done = await this.#keyed('/post-targets/bulk', wanted);
      const results = (done?.results ?? []) as readonly { readonly ok: boolean }[];
      if (done !== null && results.filter(({ ok }) => ok).length !== targetIds.length)
        this.#wrong(`of ${targetIds.length} targets not all were moved: ${JSON.stringify(results)}`);
    },
    campaign: async () => {
      const hence = this.#in(hourMs + 20_000, hourMs + 20_000);
      const posts = [await this.#post({ type: 'at', scheduledAt: hence }, this.#some(3))];
      posts.push(await this.#post({ type: 'at', scheduledAt: hence }, this.#some(2)));
      const made = await this.#keyed('/campaigns', { name: 'Chaos' });
      const postIds = posts.flatMap((one) => one?.id ?? []);
      if (made === null || postIds.length === 0) return;
      const assigned = await this.#answered(`/campaigns/${made.id}/assign`, { postIds });
      if (assigned === null) return;
      const count = posts.flatMap((one) => this.#targetsOf(one)).length;
      // An api that died meanwhile has forgotten what it wrote: its successor needs the token, or may shift nothing yet.
      // The answer that it repeats has none.
      const { written } = assigned;
      for (const id of written === null ? postIds : [])
        await this.#untilKnown(`post ${id} in its campaign`, async () =>
          (await this.get(`/posts/${id}`)).data.campaignId === made.id ? true : null,
        );
      const shift = await this.#answered(`/campaigns/${made.id}/shift`, { minutes: -60 }, true, written);
      const done = shift?.data ?? null;
      if (done === null) return;
      // A slow, killed api may come to the shift so late that the new time is past. Only then a target stays.
      const isPast = Date.now() > Date.parse(hence) - hourMs;
      const skipped = (done.skipped ?? []) as readonly { readonly reason: string }[];
      const late = isPast ? skipped.filter(({ reason }) => reason === 'schedule_in_past').length : 0;
      if (Number(done.shifted) + late !== count)
        this.#wrong(`of ${count} targets of a campaign not all were moved: ${JSON.stringify(done)}`);
    },
    // People decide while the post comes due, is revised, or becomes a draft again.
    approve: async () => {
      const id = await this.#client(this.#name('strict'));
      await this.call('PATCH', `/clients/${id}`, { approvalRequired: true });
      const accounts = await this.#connect(id, [
        { platform: 'x', username: this.#name('e') },
        { platform: 'threads', username: this.#name('f') },
      ]);
      const schedule = { type: 'at', scheduledAt: this.#in(300, 2_500) };
      const made = await this.#keyed('/posts', { clientId: id, ...this.#body(schedule, accounts, this.#text('')) });
      if (made === null) return;
      this.posts.push({ id: made.id, targetIds: null });
      const first = String(made.approvalId);
      const way = this.#options.random.int(0, 3);
      if (way === 0) {
        const decisions = ['approve', 'reject', 'approve'].map((one) => this.#decide(first, one));
        const won = (await Promise.all(decisions)).filter(Boolean).length;
        if (won !== 1) this.#wrong(`of three deciders about ${first} ${won} won`);
        return;
      }
      if (way === 1) {
        const revise = this.#keyed(`/posts/${made.id}/revise`, { content: this.#text('') });
        await Promise.all([this.#decide(first, 'approve'), revise]);
      } else if (way === 2) {
        await this.#decide(first, 'request-changes');
        await this.#keyed(`/posts/${made.id}/publish`, {});
      }
      const { data } = await this.get(`/posts/${made.id}`);
      await this.#decide(String(data.approvalId), 'approve');
    },
    // Right before the post is due: its targets go out as they were, or as revised.
    revise: async () => {
      const post = await this.#post({ type: 'at', scheduledAt: this.#in(400, 2_500) }, this.#some(4));
      if (post === null) return;
      await delay(this.#options.random.int(0, 500));
      const schedule = { type: 'at', scheduledAt: this.#in(600, 1_500) };
      const isTimed = this.#options.random.int(0, 2) === 0;
      await this.#keyed(`/posts/${post.id}/revise`, { content: this.#text(), ...(isTimed ? { schedule } : {}) });
    },
    // A target that failed is tried again with another text.
    mend: async () => {
      const post = await this.#post({ type: 'now' }, this.#some(2), '[[sandbox:reject once]]');
      const targets = this.#targetsOf(post);
      if (post === null || targets.length === 0) return;
      const failed: string[] = [];
      for (const id of targets) if (await this.#status(id, 'failed')) failed.push(id);
      if (failed.length === 0) return;
      const done = await this.#keyed(`/posts/${post.id}/revise`, { content: this.#text('') });
      const { changed = [] } = (done?.revise ?? {}) as { readonly changed?: readonly string[] };
      if (done !== null && failed.some((id) => !changed.includes(id)))
        this.#wrong(`of the failed targets ${failed} of post ${post.id} only ${changed} were revised`);
    },
    withdraw: async () => {
      const post = await this.#post({ type: 'at', scheduledAt: this.#in(hourMs, hourMs) }, this.#some(3));
      if (post === null) return;
      const deleted = await this.call('DELETE', `/posts/${post.id}`);
      if (deleted.status !== 200) this.#wrong(`post ${post.id} was not canceled: ${deleted.status} ${deleted.code}`);
    },
    retry: async () => {
      const post = await this.#post({ type: 'now' }, this.#some(1), '[[sandbox:reject once]]');
      const [target] = this.#targetsOf(post);
      if (target === undefined || !(await this.#status(target, 'failed'))) return;
      await this.#keyed(`/post-targets/${target}/retry`, undefined);
    },
    lapse: async () => {
      const username = `token-death-once-${this.#name('')}`;
      const made = await this.#connect(this.#clientId, [{ platform: 'linkedin', username }]);
      const [target] = this.#targetsOf(await this.#post({ type: 'now' }, made, ''));
      if (target === undefined || !(await this.#status(target, 'failed'))) return;
      await this.#connect(this.#clientId, [{ platform: 'linkedin', username }]);
      await this.#keyed(`/post-targets/${target}/retry`, undefined);
    },
    // Handed to the network's own scheduler, then taken back: to cancel it, or to publish it soon.
    native: async () => {
      // Inside the windows of both networks.
      const dueAt = (await insist(() => this.#options.networkNow())) + this.#options.random.int(17, 20) * 60_000;
      const accounts = this.#accounts.filter(({ platform }) => platform === 'facebook' || platform === 'youtube');
      const directive = this.#options.random.pick(nativeDirectives);
      const schedule = { type: 'at', scheduledAt: new Date(dueAt).toISOString() };
      const post = await this.#post(schedule, accounts, directive, this.#clientId, { scheduleMode: 'native' });
      const [first, second] = this.#targetsOf(post);
      for (const id of [first, second]) if (id !== undefined) await this.#status(id, 'handed_to_platform');
      if (first !== undefined) await this.#keyed(`/post-targets/${first}/cancel`, undefined);
      if (second === undefined) return;
      // The network gives the same post another time; then it takes it back.
      const another = new Date(dueAt + 60_000).toISOString();
      const moved = await this.#keyed(`/post-targets/${second}/reschedule`, { scheduledAt: another });
      if (moved !== null) await this.#undone(second);
      // And another content.
      const revised = await this.#keyed(`/posts/${post?.id}/revise`, { content: `Better. ${this.#name('')}` });
      if (revised !== null) await this.#undone(second);
      await this.#keyed(`/post-targets/${second}/reschedule`, { scheduledAt: this.#in(600, 1_500) });
    },
    archive: async () => {
      const id = await this.#client(this.#name('leaving'));
      const accounts = await this.#connect(id, [
        { platform: 'x', username: this.#name('a') },
        { platform: 'threads', username: this.#name('b') },
      ]);
      await this.#seen([await this.#post({ type: 'at', scheduledAt: this.#in(hourMs, hourMs) }, accounts, '', id)]);
      const archived = await this.call('DELETE', `/clients/${id}`);
      if (archived.status !== 200)
        this.#wrong(`client ${id} could not be archived: ${archived.status} ${archived.code}`);
    },
    disconnect: async () => {
      const id = await this.#client(this.#name('parting'));
      const username = this.#name('c');
      const accounts = await this.#connect(id, [
        { platform: 'x', username },
        { platform: 'threads', username: this.#name('d') },
      ]);
      const schedule = { type: 'at', scheduledAt: this.#in(hourMs, hourMs) };
      const posts = [await this.#post(schedule, accounts, '', id), await this.#post(schedule, accounts, '', id)];
      await this.#seen(posts);
      const leaving = accounts.find(({ platform }) => platform === 'x');
      await this.#keyed(`/accounts/${leaving?.id}/disconnect`, undefined);
      if (this.#options.random.int(0, 1) === 1) await this.#connect(id, [{ platform: 'x', username }]);
    },
    race: async () => {
      const name = this.#name('raced');
      const made = await Promise.all([1, 2, 3].map(() => this.#client(name)));
      if (new Set(made).size !== 1) this.#wrong(`three creates of the client ${name} made ${made}`);
    },
    rename: async () => {
      const name = this.#name('before');
      const id = await this.#client(name);
      const renamed = await this.call('PATCH', `/clients/${id}`, { name: this.#name('after') });
      if (renamed.status !== 200) this.#wrong(`client ${id} could not be renamed: ${renamed.status} ${renamed.code}`);
      const next = await this.#client(name);
      if (next === id) this.#wrong(`client ${id} was given for the name it had left`);
    },
    // A draft with a reference, which another post has after it.
    discard: async () => {
      const externalRef = this.#name('ref');
      const draft = this.#body({ type: 'now' }, this.#some(1), this.#text(''));
      const body = { ...draft, clientId: this.#clientId, saveDraft: true, externalRef };
      const made = await this.#keyed('/posts', body);
      if (made === null) return;
      const deleted = await this.call('DELETE', `/posts/${made.id}`);
      if (deleted.status !== 200) this.#wrong(`post ${made.id} was not discarded: ${deleted.status} ${deleted.code}`);
      const gone = await this.get(`/posts/${made.id}`, deleted.written);
      if (gone.status !== 404) this.#wrong(`post ${made.id} was discarded and is answered with ${gone.status}`);
      const next = await this.#keyed('/posts', body);
      if (next !== null) this.posts.push({ id: next.id, targetIds: null });
    },
    // Two posts with one reference, then another post with the reference that the first one left.
    refer: async () => {
      const ref = this.#name('ref');
      const draft = this.#body({ type: 'now' }, this.#some(1), this.#text(''));
      const body = { ...draft, clientId: this.#clientId, saveDraft: true, externalRef: ref };
      const both = await Promise.all([1, 2].map(() => this.call('POST', '/posts', body, randomUUID())));
      const [made, refused] = both.toSorted((a, b) => a.status - b.status);
      if (made?.status !== 200 || refused?.code !== 'already_exists') {
        return this.#wrong(
          `two posts with the reference ${ref}: ${both.map(({ status, code }) => `${status} ${code}`)}`,
        );
      }
      this.posts.push({ id: made.data.id, targetIds: null });
      const left = await this.call('PATCH', `/posts/${made.data.id}`, { ...draft, externalRef: this.#name('ref') });
      if (left.status !== 200) this.#wrong(`post ${made.data.id} could not leave ${ref}: ${left.status} ${left.code}`);
      const next = await this.#keyed('/posts', body, false);
      if (next !== null) this.posts.push({ id: next.id, targetIds: null });
    },
    // An address that is never called: no event here matches `team`. The endpoint is caught up all the same.
    hear: async () =>
      void (await this.#keyed('/webhooks', { url: `https://1.1.1.1/${this.#name('hook')}`, events: ['team.*'] })),
    // No connected network accepts it unchanged.
    upload: async () => void (await this.#asset(['instagram'])),
    filled: async () => {
      const mediaId = await this.#asset(['x']);
      const accounts = this.#accounts.filter(({ platform }) => platform === 'instagram');
      const body = { clientId: this.#clientId, ...this.#body({ type: 'now' }, accounts, this.#text(''), mediaId) };
      const made = await this.#keyed('/posts', body);
      if (made !== null) this.#remember(made);
    },
    refresh: async () => {
      const [one] = this.#some(1);
      if (one !== undefined) await this.#refresh(one);
    },
    // Its network shows the account under another name than at its connection.
    restyle: async () => {
      const username = `renamed-${this.#name('e')}`;
      const [one] = await this.#connect(this.#clientId, [{ platform: 'bluesky', username }]);
      if (one !== undefined) await this.#refresh(one);
    },
    // The network no longer had it at the first observation, nor hours later.
    gone: async () => {
      const accounts = this.#accounts.filter(({ platform }) => platform === 'bluesky');
      await this.#post({ type: 'now' }, accounts, '[[sandbox:removed]]');
      // Only a pace: a post that is out or observed later is refreshed by the next run of this action.
      await delay(1_500);
      await insist(() => this.#options.passHours());
      for (const one of accounts) await this.#refresh(one);
    },
    report: () => this.#options.report(this.#subject(), false),
    planned: () => this.#options.report(this.#subject(), true),
    recycled: async () => {
      const [one] = this.#accounts.filter(({ platform }) => platform === 'bluesky');
      if (one === undefined) return;
      const account = { id: one.id, clientId: this.#clientId, platform: 'bluesky' } as const;
      await this.#options.recycled(account, this.#name('again'));
    },
    // Two posts for one instant, and then a rule that keeps them apart.
    paced: async () => {
      const { token, pace } = await insist(() => this.#options.paced());
      const made = await this.#untilKnown('the key of another workspace', async () => {
        const body = { name: this.#name('paced'), type: 'brand' };
        const { status, data } = await this.call('POST', '/clients', body, randomUUID(), token);
        return status === 200 ? data : null;
      });
      const accounts = await this.#connect(made.id, [{ platform: 'x', username: this.#name('g') }], token);
      // Publishers know the rule before.
      const schedule = { type: 'at', scheduledAt: this.#in(6_000, 10_000) };
      for (const _ of [1, 2]) {
        // Without media: those of the load are another workspace's.
        const body = { clientId: made.id, ...this.#body(schedule, accounts, this.#text('')), variants: [] };
        const { status, code } = await this.call('POST', '/posts', body, randomUUID(), token);
        if (status !== 200 && code !== 'schedule_in_past')
          this.#wrong(`a post of a paced workspace: ${status} ${code}`);
      }
      await pace();
    },
    connect: async () =>
      void (await this.#connect(this.#clientId, [{ platform: 'bluesky', username: this.#name('guest') }])),
  };

  #subject(): Subject {
    const [one] = this.#some(1);
    return this.#options.random.pick([
      {},
      { clientId: this.#clientId },
      { clientId: this.#clientId, ...(one === undefined ? {} : { accountId: one.id }) },
    ]);
  }

  async #refresh({ id }: Account): Promise<void> {
    const token = await insist(() => this.#options.session());
    const { status, code } = await this.call('POST', '/analytics/refresh', { accountIds: [id] }, randomUUID(), token);
    if (status !== 200) this.#wrong(`the figures of ${id} could not be refreshed: ${status} ${code}`);
  }

  /** Uploads, registers, and waits until the asset is publishable. */
  async #asset(own: readonly string[]): Promise<string> {
    const { random } = this.#options;
    const background = { r: random.int(0, 255), g: random.int(0, 255), b: random.int(0, 255) };
    const file = await sharp({ create: { width: 400, height: 400, channels: 3, background } })
      .png()
      .toBuffer();
    const wanted = { fileName: `${this.#name('photo')}.png`, contentType: 'image/png', bytes: file.length };
    const { status, data, code } = await this.call('POST', '/media/presign', wanted, randomUUID());
    if (status !== 200) throw new Error(`no place for a file: ${status} ${code}`);
    const url = new URL(String(data.url));
    await this.#untilKnown('the upload', async (origin, signal) => {
      // The URL names the api's public address.
      const to = `${origin}${url.pathname}${url.search}`;
      const answer = await fetch(to, { method: 'PUT', body: file, headers: { 'content-type': 'image/png' }, signal });
      await answer.text();
      if (answer.status >= 500) return null;
      if (answer.status >= 300) throw new Error(`a file was not taken: ${answer.status}`);
      return true;
    });
    const made = await this.#keyed('/media', { assetId: data.assetId, platforms: own }, false);
    if (made === null) throw new Error('a file was not registered');
    const assetId = String(data.assetId);
    await this.#untilKnown(`the asset ${assetId}`, async () => {
      const seen = await this.get(`/media/${assetId}`);
      const { status, failure } = seen.data;
      if (status === 'failed' || status === 'quarantined')
        throw new Error(`it is ${status}: ${JSON.stringify(failure)}`);
      return seen.data.publishable === true ? true : null;
    });
    return assetId;
  }

  /** @returns whether this decision was the one */
  async #decide(approvalId: string, decision: string): Promise<boolean> {
    const path = `/approvals/${approvalId}/${decision}`;
    const key = randomUUID();
    const body = { comment: 'Chaos.' };
    const { status, data, code } = await this.call('POST', path, body, key);
    if (status === 200) this.reported.push({ path, key, body, data, exact: true });
    else if (code !== 'approval_not_pending' && code !== 'approval_superseded')
      this.#wrong(`${path}: ${status} ${code}`);
    return status === 200;
  }

  async #client(name: string): Promise<string> {
    const made = await this.#keyed('/clients', { name, type: 'brand' }, false);
    if (made === null) throw new Error(`the client ${name} was refused`);
    return made.id;
  }

  async #connect(
    clientId: string,
    wanted: readonly { readonly platform: string; readonly username: string }[],
    token = this.#options.token,
  ): Promise<readonly Account[]> {
    const body = { platforms: [...new Set(wanted.map((one) => one.platform))], expiresInHours: 1 };
    const path = `/clients/${clientId}/connect-invites`;
    const key = randomUUID();
    const invite = await this.call('POST', path, body, key, token);
    if (invite.status !== 200) throw new Error(`no invite: ${invite.status} ${invite.code}`);
    if (token === this.#options.token) this.reported.push({ path, key, body, data: invite.data, exact: true });
    for (const one of wanted) {
      const form = new URLSearchParams({ ...one, timezone: '' });
      const page = new URL(String(invite.data.url)).pathname;
      const status = await this.#untilKnown('the invite page', async (origin, signal) => {
        const answer = await fetch(`${origin}${page}`, { method: 'POST', body: form, redirect: 'manual', signal });
        await answer.text();
        return answer.status >= 500 ? null : answer.status;
      });
      if (status !== 303) throw new Error(`connecting ${one.username} was answered with ${status}`);
    }
    const names = new Set(wanted.map((one) => one.username));
    return this.#untilKnown('the accounts just connected', async () => {
      const { status, data } = await this.call(
        'GET',
        `/accounts?clientId=${clientId}&limit=100`,
        undefined,
        undefined,
        token,
      );
      const rows = data as unknown as readonly (Account & { readonly username: string; readonly status: string })[];
      const mine = status === 200 ? rows.filter((row) => names.has(row.username) && row.status === 'connected') : [];
      return mine.length === wanted.length ? mine : null;
    });
  }

  async #post(
    schedule: Json,
    accounts: readonly Account[],
    directive: string | null = null,
    clientId = this.#clientId,
    more: Json = {},
  ): Promise<Json | null> {
    const body = { clientId, ...this.#body(schedule, accounts, this.#text(directive)), ...more };
    const made = await this.#keyed('/posts', body);
    if (made !== null) this.#remember(made);
    return made;
  }

  #body(schedule: Json, accounts: readonly Account[], content: string, mediaId = this.#options.clipId) {
    return {
      content,
      targets: { mode: 'selection', accountIds: accounts.map((one) => one.id) },
      variants: visual.map((platform) => ({
        platform,
        mediaIdsOverride: [mediaId],
        ...(required[platform] === undefined ? {} : { overrides: required[platform] }),
      })),
      schedule,
    };
  }

  #text(directive: string | null = null): string {
    const { random } = this.#options;
    const own = directive ?? (random.int(0, 2) > 0 ? '' : `[[sandbox:${random.pick(directives)}]]`);
    return `${this.#name('hello')} ${own}`.trim();
  }

  #remember(post: Json): void {
    this.posts.push({ id: String(post.id), targetIds: this.#targetsOf(post) });
  }

  #targetsOf(post: Json | null): readonly string[] {
    return ((post?.targets ?? []) as readonly { readonly id: string }[]).map((one) => one.id);
  }

  #some(most: number): readonly Account[] {
    const { random } = this.#options;
    return random.shuffle(this.#accounts).slice(0, random.int(1, most));
  }

  #in(low: number, high: number): string {
    return new Date(Date.now() + this.#options.random.int(low, high)).toISOString();
  }

  #name(what: string): string {
    this.#count += 1;
    return `${what}-${this.#options.tag}-${this.#count}`;
  }

  /** True when the target had this status within a while; false when it ended otherwise, or nobody knows how it ended. */
  async #status(id: string, status: string): Promise<boolean> {
    let unknown = 0;
    for (const until = performance.now() + 20_000; performance.now() < until; await delay(150)) {
      const shown = (await this.get(`/post-targets/${id}`)).data?.status;
      if (shown === status) return true;
      unknown = shown === 'outcome_unknown' ? unknown + 1 : 0;
      if (unknown > maxUnknown || shown === 'published' || shown === 'failed' || shown === 'canceled') return false;
    }
    return false;
  }

  /** Waits until the network has answered an undo or a change of time. */
  async #undone(id: string): Promise<void> {
    for (const until = performance.now() + 20_000; performance.now() < until; await delay(150)) {
      if ((await this.get(`/post-targets/${id}`)).data?.undo !== 'pending') return;
    }
  }

  /**
   * Every second time, waits until the read model shows the targets of these posts: what ends them then finds all of
   * them. The other times it races the read model.
   */
  async #seen(posts: readonly (Json | null)[]): Promise<void> {
    if (this.#options.random.int(0, 1) === 0) return;
    for (const id of posts.flatMap((one) => this.#targetsOf(one))) await this.#status(id, 'pending');
  }

  /** Null: refused, because an action of the network or of another caller came first. */
  async #keyed(path: string, body: unknown, exact = true): Promise<(Json & { readonly id: string }) | null> {
    return (await this.#answered(path, body, exact))?.data ?? null;
  }

  /** @param after as in `get` */
  async #answered(path: string, body: unknown, exact = true, after: string | null = null): Promise<Answered | null> {
    const key = randomUUID();
    const token = after === null ? {} : { 'x-consistency-token': after };
    const answered = await this.#call('POST', path, { 'idempotency-key': key, ...token }, body);
    const { status, data, code } = answered;
    if (status !== 200) {
      const overtaken = ['target_not_pending', 'target_not_retryable', 'account_disconnected', 'schedule_in_past'];
      if (!overtaken.includes(code ?? '')) this.#wrong(`POST ${path}: ${status} ${code} ${JSON.stringify(body)}`);
      return null;
    }
    this.reported.push({ path, key, body, data, exact });
    return answered;
  }

  call(method: string, path: string, body?: unknown, key?: string, token?: string): Promise<Answered> {
    return this.#call(method, path, key === undefined ? {} : { 'idempotency-key': key }, body, token);
  }

  #call(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: unknown,
    token = this.#options.token,
  ): Promise<Answered> {
    return this.#untilKnown(`${method} ${path}`, async (origin, signal) => {
      const answer = await fetch(`${origin}/v1${path}`, {
        method,
        signal,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const parsed = (await answer.json()) as { data?: Answered['data']; code?: string };
      const { status } = answer;
      const code = parsed.code ?? null;
      if (status === 503) {
        this.unavailable += 1;
        const type = answer.headers.get('content-type') ?? '';
        if (code !== 'unavailable' || !type.includes('application/problem+json') || !answer.headers.has('retry-after'))
          this.#wrong(`${method} ${path}: 503 as ${type} ${code}`);
        return null;
      }
      if (status >= 500) {
        this.#wrong(`${method} ${path}: ${status} ${JSON.stringify(parsed)}`);
        return null;
      }
      const written = answer.headers.get('x-consistency-token');
      return { status, code, data: parsed.data ?? ({} as Answered['data']), written };
    });
  }

  /** Repeats until the outcome is known; null and a missing answer are not. */
  async #untilKnown<T>(what: string, ask: (origin: string, signal: AbortSignal) => Promise<T | null>): Promise<T> {
    let last = 'nothing was asked';
    for (const until = performance.now() + patienceMs; ; await delay(100)) {
      const origin = this.#options.origin();
      if (origin === null) last = 'the api is down';
      else {
        try {
          const known = await ask(origin, AbortSignal.timeout(20_000));
          if (known !== null) return known;
          last = 'unavailable, or not yet';
        } catch (error) {
          // No listener, a broken connection, or no answer in time.
          if (!(error instanceof TypeError) && !(error instanceof DOMException) && !(error instanceof SyntaxError))
            throw error;
          this.unanswered += 1;
          last = `${error}`;
        }
      }
      if (performance.now() > until) throw new Error(`${what}: never known within ${patienceMs} ms, at last: ${last}`);
    }
  }

  #wrong(what: string): void {
    this.violations.push(what);
  }
}
